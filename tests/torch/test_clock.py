# SPDX-License-Identifier: Apache-2.0
"""The virtual clock: formulas to the nanosecond, and the same in every order."""

from pathlib import Path
from typing import Any, Dict

import pytest
from stack import Run, environment

CASE = str(Path(__file__).parent / "cases" / "clock.py")
WAYS = (
    ("auto", "early"),
    ("auto", "late"),
    ("auto", "seed:5"),
    ("shapes", "late"),
    ("values", "early"),
    ("values", "seed:5"),
)


@pytest.fixture(scope="module")
def runs() -> Dict[Any, Any]:
    return {
        way: Run([CASE], environment(sim_compute=way[0], sim_order=way[1])).result()
        for way in WAYS
    }


def test_operators_and_copies_take_what_the_formulas_say(runs: Dict[Any, Any]) -> None:
    told = runs["auto", "early"]["told"]

    assert len(told) > 40
    assert {name: got for name, (got, _) in told.items()} == {
        name: want for name, (_, want) in told.items()
    }


def test_times_do_not_depend_on_the_order_nor_on_what_is_computed(
    runs: Dict[Any, Any],
) -> None:
    for compute in {way[0] for way in WAYS}:
        ends = [run["steps"][0] for way, run in runs.items() if way[0] == compute]
        assert all(one == ends[0] for one in ends), compute
    work = {way: run["steps"][1] for way, run in runs.items()}
    assert work == dict.fromkeys(runs, work[WAYS[0]])
    for way, run in runs.items():
        if way[0] != "values":
            assert run["told"] == runs[WAYS[0]]["told"], way
