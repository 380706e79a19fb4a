# SPDX-License-Identifier: Apache-2.0
"""Every kind of saved tensor comes back as it was, whatever is done to it meanwhile."""

import json
from pathlib import Path
from tempfile import gettempdir, mkdtemp
from typing import Any, Dict

import pytest
from stack import Run, environment

CASE = str(Path(__file__).parent / "cases" / "saved.py")
SETTINGS: Dict[str, Dict[str, str]] = {
    "host": {"sim_order": "late", "sim_check": "races"},
    "disk": {
        "sim_order": "late",
        "host_memory": "32KiB",
        "disk": f"{gettempdir()}:1GiB",
    },
    "budget": {"sim_order": "early", "budget": "200KiB"},
}


def saved(**settings: str) -> Dict[str, Any]:
    report = Path(mkdtemp(prefix="actswap-test-")) / "report.json"
    said = Run([CASE], environment(report=str(report), **settings)).result()
    said["report"] = json.loads(report.read_text())
    return said


@pytest.fixture(scope="module")
def plain() -> Dict[str, Any]:
    return saved(policy="off")


@pytest.fixture(scope="module", params=SETTINGS)
def moved(request: Any) -> Dict[str, Any]:
    return saved(policy="offload:min=0", **SETTINGS[request.param])


def test_gradients_are_those_of_the_plain_run(plain: Any, moved: Any) -> None:
    assert moved["digests"] == plain["digests"]
    assert len(set(plain["digests"].values())) > len(plain["digests"]) / 2


def test_it_is_the_same_tensor_but_for_its_address(moved: Any) -> None:
    """Shape, strides, offset, dtype, device, layout, conjugate and negative bits, and the
    address modulo 512, by which kernels choose how they read."""
    assert moved["changed"] == []


def test_nothing_is_left(moved: Any) -> None:
    assert moved["pages"] == 0
    assert moved["report"]["moves"]["out_bytes"] > 0
    assert moved["report"]["device"].get("races", 0) == 0
