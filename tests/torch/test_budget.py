# SPDX-License-Identifier: Apache-2.0
"""The peak is held against a budget (ACTSWAP_BUDGET), whatever the policy."""

import json
from pathlib import Path
from typing import Any, Dict, Tuple

import pytest
from stack import Run, environment

SCRIPT = str(Path(__file__).parent / "cases" / "budget.py")
MIB = 1 << 20

# A budget for each policy, and where it is first exceeded.
BUDGETS = {
    "off": (3900 * MIB, 2, "forward"),
    "offload": (1200 * MIB, 0, "backward"),
    "recompute": (900 * MIB, 0, "backward"),
}


def run(
    tmp_path: Path, bytes_: int, **settings: str
) -> Tuple[Dict[str, Any], Dict[str, Any], str]:
    """What PyTorch says, what the report says, and the summary."""
    report = tmp_path / "report.json"
    env = environment(sim_compute="shapes", report=str(report), log="info", **settings)
    done = Run([SCRIPT, str(bytes_)], env)
    return done.result(), json.loads(report.read_text()), done.err


@pytest.mark.parametrize("policy", BUDGETS)
def test_the_first_excess_is_where_the_script_meets_it(
    tmp_path: Path, policy: str
) -> None:
    bytes_, step, phase = BUDGETS[policy]
    said, seen, err = run(tmp_path, bytes_, policy=policy, budget=str(bytes_))
    budget = seen["budget"]
    assert said["first"] == [step, phase] == [budget["step"], budget["phase"]]
    assert seen["run"]["settings"]["budget_bytes"] == budget["bytes"] == bytes_
    assert budget["over_bytes"] == said["peak"] - bytes_ > 0
    assert (budget["kept"], budget["spare_bytes"]) == (False, 0)
    assert f", first in step {step + 1}, {phase}" in err
    assert f"policy {policy}, budget " in err


def test_a_share_is_of_the_card_also_of_one_that_pretends(tmp_path: Path) -> None:
    said, seen, err = run(tmp_path, 20 << 30, memory="40GiB", budget="50%")
    assert said["first"] == []
    assert seen["budget"] == {
        "bytes": 20 << 30,
        "kept": True,
        "over_bytes": 0,
        "spare_bytes": (20 << 30) - said["peak"],
    }
    assert "  budget           20.0 GiB: kept, " in err and " to spare\n" in err
