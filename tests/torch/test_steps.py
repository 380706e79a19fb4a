# SPDX-License-Identifier: Apache-2.0
"""Steps are found without help, however a training loop is written."""

from pathlib import Path

from stack import Run, environment

CASE = Path(__file__).parent / "cases" / "steps.py"


def test_each_iteration_is_a_step() -> None:
    told = Run([str(CASE)], environment(sim_compute="shapes")).result()
    # An optimizer that never steps is found out when another one comes again.
    assert told.pop("one_that_is_never_used") in (3, 4)
    assert told == dict.fromkeys(told, 4)
    assert len(told) == 6
