# SPDX-License-Identifier: Apache-2.0
"""Mode `auto`: a launch takes the values of what it may write, and of nothing else."""

import json
from pathlib import Path
from typing import Any, Tuple

import pytest

from stack import Run, environment

CASE = Path(__file__).parent / "cases" / "launches.py"
# Whether each tensor of a case has values at the end; False where a launch wrote.
HAVE_VALUES = {
    "a_store": [True, False, True],
    "all_of_the_storage": [True, False, False],
    "the_same_storage": [False],
    "an_atomic": [True, False],
    "one_of_two": [True, False, False],
    "a_pointer_that_moves": [False, True],
    "a_function": [True, False],
    "an_early_end": [False, True],
    "a_library_function": [True, False],
    "seen_as_another_type": [True, False],
    "compiled": [True, False, False],
    "compiled_of_the_user": [True, False, False, True],
    "replayed": [True, False, True, True],
    # What they write cannot be said: nothing has values.
    "hidden_in_a_tensor": [False, False],
    "hidden_in_a_number": [False, False],
    "replayed_and_hidden": [False, False],
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Tuple[Any, Any]:
    report = tmp_path_factory.mktemp("launches") / "report.json"
    env = environment(sim_compute="auto", report=str(report))
    ran = Run([str(CASE)], dict(env, TORCHINDUCTOR_COMPILE_THREADS="1"))
    return ran.result(), json.loads(report.read_text())


@pytest.mark.parametrize("name", sorted(HAVE_VALUES))
def test_what_has_values_after_a_launch(run: Tuple[Any, Any], name: str) -> None:
    assert run[0][name] == HAVE_VALUES[name]


def test_a_kernel_that_writes_to_the_host_is_refused(run: Tuple[Any, Any]) -> None:
    message = run[0]["memory_of_the_host"]

    assert message.startswith("simcuda: kernel add_one writes to memory of the host")


def test_launches_that_left_no_values_are_counted(run: Tuple[Any, Any]) -> None:
    # Two of the kernels, once before the graph, in its capture, and in its replay.
    assert run[1]["device"]["values_forgotten"] == 5
