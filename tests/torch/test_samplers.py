# SPDX-License-Identifier: Apache-2.0
"""Random numbers are those of PyTorch's public CUDA algorithm, and so is their state."""

from pathlib import Path
from typing import Any

import pytest

from stack import Run, environment

CASE = Path(__file__).parent / "cases" / "samplers.py"
EXACT = (
    "rand",
    "randint",
    "randint, 64 bits",
    "random_ int32",
    "bernoulli_",
    "geometric_",
    "bernoulli",
    "rows",
    "columns",
)


def check(name: str, **settings: str) -> Any:
    return Run([str(CASE), name], environment(**settings)).result()


@pytest.mark.parametrize("card", ["h100-80gb", "a100-80gb"])
def test_samplers_draw_what_the_algorithm_says(card: str) -> None:
    found = check("numbers", sim_gpu=card)

    assert {name: found[name] for name in EXACT} == dict.fromkeys(EXACT, 0)
    # float32's rounding, of a logarithm, a sine or a tangent.
    assert max(found.values()) < 2e-6


def test_multinomial_draws_what_the_algorithm_says() -> None:
    assert check("multinomial") == [True, True, True]


def test_the_offset_moves_by_the_policy() -> None:
    for moved, said in check("policy"):
        assert moved == said


def test_the_generator_moves_alike_in_all_ways_to_compute() -> None:
    shapes, auto, values = (
        check("offsets", sim_compute=way) for way in ("shapes", "auto", "values")
    )

    assert shapes == auto == values
    assert all(a < b for a, b in zip(values, values[1:]))


@pytest.mark.parametrize("compute", ["values", "auto"])
def test_states_are_kept_and_come_back(compute: str) -> None:
    assert set(check("states", sim_compute=compute).values()) == {True}


@pytest.mark.parametrize("compute", ["values", "auto"])
def test_each_device_has_a_generator_of_its_own(compute: str) -> None:
    found = check("devices", sim_gpus="2", sim_compute=compute)

    assert len(found) == 5 and set(found.values()) == {True}


@pytest.mark.parametrize("compute", ["values", "auto"])
def test_dropout_repeats_under_both_checkpoints(compute: str) -> None:
    found = check("checkpoints", sim_compute=compute)

    assert len(found) > 8 and set(found.values()) == {True}
