# SPDX-License-Identifier: Apache-2.0
"""Where offloading code was reported to fail: the numbers of the plain run, nothing left,
and no more moved than that takes. tests/mutants/rows.toml says which report is which."""

from pathlib import Path
from typing import Any, Dict

import pytest
from stack import Run, environment

CASE = str(Path(__file__).parent / "cases" / "reported.py")
BLOCKS, STEPS = 3, 2
KIB = 1 << 10
WHOLE = 64 * KIB  # what most of them save of


def reported(policy: str) -> Dict[str, Any]:
    settings = {"sim_order": "late", "sim_check": "races", "sim_gpus": "4"}
    return Run([CASE], environment(policy=policy, **settings)).result()


@pytest.fixture(scope="module")
def plain() -> Dict[str, Any]:
    return reported("off")


@pytest.fixture(scope="module")
def moved() -> Dict[str, Any]:
    return reported("offload:min=0")


def test_all_compute_what_they_do_without_us(plain: Any, moved: Any) -> None:
    assert [text for text in plain["results"].values() if ": " in str(text)] == []
    assert moved["results"] == plain["results"]


def test_nothing_is_out_of_order(plain: Any, moved: Any) -> None:
    assert (plain["races"], moved["races"]) == (0, 0)


def test_one_storage_is_moved_once_and_released(moved: Any) -> None:
    found = moved["moved"]["saved_twice"]
    expected = BLOCKS * STEPS * WHOLE

    assert found["out_bytes"] == found["in_bytes"] == found["released_bytes"] == expected


def test_an_expanded_row_is_moved_as_a_row(moved: Any) -> None:
    rows = BLOCKS * STEPS * KIB

    assert moved["moved"]["expanded_from_a_row"]["in_bytes"] % WHOLE == rows


def test_no_more_is_pinned_than_is_moved(moved: Any) -> None:
    """Nor more in the second step."""
    found = moved["moved"]["of_a_size_behind_a_power_of_two"]

    assert found["pinned_bytes"] == BLOCKS * ((512 << 10) + 512)
    assert found["out_bytes"] == STEPS * found["pinned_bytes"]


def test_weights_stay(moved: Any) -> None:
    assert moved["moved"]["weights_alone"]["out_bytes"] == 0
    left_alone = ("subclasses_and_nested", "distributed_tensors")
    assert [moved["moved"][name]["out_bytes"] for name in left_alone] == [0, 0]
