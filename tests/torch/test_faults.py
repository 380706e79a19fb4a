# SPDX-License-Identifier: Apache-2.0
"""The device refuses calls of libactswap's: one, and all from one on. The run goes on
with the same bits, and the report says what was refused.

Which calls is a matter of chance here; `ACTSWAP_TEST_FAULTS=all` takes every one of them,
which takes some 14 minutes, and passed in all settings at e7d82d4.
"""

import json
import os
import random
import re
from pathlib import Path
from tempfile import gettempdir
from typing import Any, Dict, Tuple

import pytest
from stack import Run, environment

CASE = str(Path(__file__).parent / "cases" / "faults.py")
POLICY = "offload:min=0"
SETTINGS: Dict[str, Dict[str, str]] = {
    "host": {"sim_order": "late", "sim_check": "races"},
    "disk": {"host_memory": "48KiB", "disk": f"{gettempdir()}:1GiB"},
    "budget": {"budget": "260KiB"},
}
PICKS = "1"


def run(tmp_path: Path, *arguments: str, **settings: str) -> Tuple[Any, Dict[str, Any]]:
    report = tmp_path / "report.json"
    env = environment(report=str(report), **settings)
    done = Run([CASE, *arguments], env, seconds=1800)
    return done.result(), json.loads(report.read_text())


def refusals(report: Dict[str, Any]) -> Dict[str, int]:
    """By function, as the report names them."""
    texts = [row["what"] for row in report.get("degraded", [])]
    found = [re.match(r"pager: (\w+) was refused (\d+) time", text) for text in texts]
    return {match[1]: int(match[2]) for match in found if match}


@pytest.fixture(scope="module")
def plain(tmp_path_factory: Any) -> str:
    said, report = run(tmp_path_factory.mktemp("off"), "once", policy="off")
    assert "degraded" not in report
    return said["digest"]


@pytest.mark.parametrize("name", SETTINGS)
def test_refused_calls_cost_no_bit(plain: str, tmp_path: Path, name: str) -> None:
    whole = os.environ.get("ACTSWAP_TEST_FAULTS") == "all"
    seed = random.randrange(1 << 16)
    how = ["all"] if whole else [PICKS, str(seed)]
    said, report = run(tmp_path, *how, policy=POLICY, **SETTINGS[name])

    print(f"seed {seed}: {said['calls']}")
    assert said["wrong"] == [], seed
    assert said["digest"] == plain
    assert all(said["calls"].values())
    refused = refusals(report)
    assert {f for f, runs in said["runs"].items() if refused.get(f, 0) < runs} == set()
    assert report["device"].get("races", 0) == 0
    assert any("tensors that came back" in row["what"] for row in report["degraded"])


# What the process needs once: from the first call on.
@pytest.mark.parametrize(
    "function", ["cudaStreamCreateWithFlags:1+", "cudaEventCreateWithFlags:4+"]
)
def test_without_lanes_or_events_tensors_stay(
    plain: str, tmp_path: Path, function: str
) -> None:
    fault = f"@{function}=2"
    said, report = run(tmp_path, "once", policy=POLICY, sim_fault=fault)

    assert said == {"digest": plain, "pages": 0}
    assert refusals(report)[function.split(":")[0]] > 0
