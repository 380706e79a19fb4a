# SPDX-License-Identifier: Apache-2.0
"""Steps are found without help, however a training loop is written."""

import json
from pathlib import Path

import pytest

from stack import Run, environment

CASE = Path(__file__).parent / "cases" / "steps.py"


def test_each_iteration_is_a_step() -> None:
    told = Run([str(CASE)], environment(sim_compute="shapes")).result()
    # An optimizer that never steps is found out when another one comes again.
    assert told.pop("one_that_is_never_used") in (3, 4)
    assert told == dict.fromkeys(told, 4)
    assert len(told) == 6


LOOP = """
import sys, torch
optimized = sys.argv[1] == "optimizer"
model = torch.nn.Linear(4, 4).cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.1) if optimized else None
try:
    for step in range(1, 9):
        model(torch.ones(2, 4, device="cuda")).sum().backward()
        if optimizer:
            optimizer.step()
        else:
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter -= 0.1 * parameter.grad
        model.zero_grad()
        print("step", step)
    print("not reached")
finally:
    print("closed")
"""
# No module is called: the next update is the first sign of a step.
BARE = """
import torch
weight = torch.ones(4, 4, device="cuda", requires_grad=True)
optimizer = torch.optim.SGD([weight], 0.1)
for step in range(1, 9):
    (weight @ torch.ones(4, 2, device="cuda")).sum().backward()
    optimizer.step()
    print("step", step)
"""


@pytest.mark.parametrize("way", ["optimizer", "by hand"])
def test_a_run_ends_where_the_step_after_the_last_begins(
    way: str, tmp_path: Path
) -> None:
    path = tmp_path / "report.json"
    run = Run(["-c", LOOP, way], environment(report=str(path), steps="3"))
    report = json.loads(path.read_text())

    assert run.out.splitlines() == ["step 1", "step 2", "step 3", "closed"]
    assert (report["steps"]["count"], report["run"]["settings"]["steps"]) == (3, 3)
    assert report["ended"] == "exit"
    ends = [n for n in report["notes"] if n["what"].startswith("ended after as many")]
    assert len(ends) == 1


def test_a_run_without_modules_ends_at_an_update() -> None:
    run = Run(["-c", BARE], environment(steps="3"))

    assert run.out.splitlines() == ["step 1", "step 2", "step 3"]
