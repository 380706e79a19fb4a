# SPDX-License-Identifier: Apache-2.0
"""Mode `auto`: what is small or an integer is computed, and nothing is made up."""

import json
from pathlib import Path
from typing import Any, Dict

import pytest

from stack import Run, environment

CASE = Path(__file__).parent / "cases" / "auto.py"
WAY_OUT = "use values (actswap rehearse --compute values)"
SIZE = "makes a result whose size depends on values"
DECISION = "to decide by"


def check(name: str, **settings: str) -> Any:
    env = environment(sim_compute="auto", **settings)
    return Run([str(CASE), name], env).result()


@pytest.mark.parametrize("order", ["early", "late"])
def test_integers_masks_and_small_numbers_have_values(order: str) -> None:
    found = check("known", sim_order=order)

    assert [name for name, right in found.items() if right is not True] == []


def test_sparse_places_do_not_need_the_numbers() -> None:
    at = [[[1, 5]], [2, 1024], [1024, 1024]]

    assert check("places") == {
        "mask": at,
        "product": at,
        "softmax": at,
        "rows": [[[0, 2]], [2, 1024], [3, 1024]],
        "half": at,
    }


def test_a_number_that_is_not_computed_reads_as_one() -> None:
    found = check("reads")

    assert found == {
        "loss": 1.0,
        "finite": True,
        "host": [1.0] * 3,
        "bfloat16": [1.0] * 2,
        "print": True,
        "accuracy": True,
        "binary accuracy": 0,
        "uint8": 0,
        "isnan": [False] * 3,
        "isfinite": [True] * 2,
        "validated": True,
        "confusion": True,
        "those that are finite": [1024],
        "best so far": True,
        "sampled": True,
        "samples": True,
        "the same samples": True,
    }


def test_sizes_and_decisions_are_refused_by_name() -> None:
    found: Dict[str, str] = check("refused")
    expected = {
        "nonzero": ("aten::nonzero", SIZE),
        "mask": ("aten::nonzero", SIZE),
        "masked_select": ("aten::masked_select", SIZE),
        "unique": ("aten::_unique2", SIZE),
        "bincount": ("aten::bincount", SIZE),
        "repeat_interleave": ("aten::repeat_interleave.Tensor", SIZE),
        "sparse": (
            "aten::_coalesce",
            "makes a sparse result whose size depends on values",
        ),
        "an assumed index": ("aten::_unique2", SIZE),
        "count": ("aten::_local_scalar_dense", DECISION),
        "decision": ("aten::_local_scalar_dense", DECISION),
        "count on the host": ("aten::copy_", DECISION),
        "inside an operator": ("aten::_grouped_mm", DECISION),
    }

    assert set(found) == set(expected)
    for name, (operator, why) in expected.items():
        assert found[name].startswith(f"simcuda: {operator} (auto.py:"), name
        assert why in found[name] and found[name].endswith(WAY_OUT), name


@pytest.mark.parametrize("order", ["early", "late"])
def test_no_values_come_out_of_pinned_memory(order: str) -> None:
    assert check("parked", sim_order=order) == [True, True]


def test_a_scale_grows_as_on_the_card() -> None:
    assert check("scaler") == [4.0, 8.0, 8.0, 16.0]


def test_sizes_from_values_that_are_there(tmp_path: Path) -> None:
    env = environment(sim_compute="auto")

    assert Run([str(CASE), "sizes", "small"], env).out.splitlines()[0] == "8"


def test_sizes_from_values_that_are_not_there(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    env = environment(sim_compute="auto", report=str(report), log="info")

    run = Run([str(CASE), "sizes", "large"], env, status=1)

    line = next(line for line in run.err.splitlines() if "simcuda: " in line)
    assert "RuntimeError: simcuda: aten::nonzero (auto.py:" in line
    assert line.endswith(WAY_OUT)
    assert "refused          1 operator: " in run.err
    assert json.loads(report.read_text())["device"]["refused"] == 1


def test_the_report_counts_what_was_read(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    env = environment(sim_compute="auto", report=str(report), log="info")

    run = Run([str(CASE), "reads"], env)

    device = json.loads(report.read_text())["device"]
    assert device["compute"] == "auto"
    assert device["reads_not_computed"] >= 6
    assert device["reads_assumed"] >= 8
    assert f"{device['reads_not_computed']} reads gave a placeholder" in run.err
