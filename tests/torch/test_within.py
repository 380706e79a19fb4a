# SPDX-License-Identifier: Apache-2.0
"""Offload under a budget: the peak is below it, and no more moves than that takes."""

import json
from functools import lru_cache
from pathlib import Path
from tempfile import mkdtemp
from typing import List

import pytest
from stack import Run, environment

CASE = str(Path(__file__).parent / "cases" / "within.py")
FLOOR = "offload:min=64KiB"
STEPS = 4
# The share of what offload saves that the budget gives back.
BUDGETS = [("gpt", 10), ("gpt", 100), ("resnet", 50)]

budgets = pytest.mark.parametrize("name, percent", BUDGETS)


class Trained:
    def __init__(self, name: str, **settings: str) -> None:
        report = Path(mkdtemp(prefix="actswap-test-")) / "report.json"
        run = Run([CASE, name], environment(report=str(report), **settings))
        self.digest = run.result()
        self.report = json.loads(report.read_text())

    def steps(self, field: str) -> List[int]:
        return self.report["steps"][field]


@lru_cache(maxsize=None)
def off(name: str) -> Trained:
    return Trained(name, policy="off")


@lru_cache(maxsize=None)
def all_moved(name: str) -> Trained:
    return Trained(name, policy=FLOOR)


@lru_cache(maxsize=None)
def within(name: str, percent: int) -> Trained:
    lowest = max(all_moved(name).steps("peak_bytes"))
    saved = max(off(name).steps("peak_bytes")) - lowest
    return Trained(name, policy=FLOOR, budget=str(lowest + saved * percent // 100))


@budgets
def test_the_peak_is_below_the_budget(name: str, percent: int) -> None:
    run = within(name, percent)
    budget = run.report["budget"]

    assert budget["kept"] and max(run.steps("peak_bytes")) <= budget["bytes"]


@budgets
def test_no_bit_changes(name: str, percent: int) -> None:
    assert within(name, percent).digest == off(name).digest


@budgets
def test_the_first_step_moves_all_and_the_others_what_they_must(
    name: str, percent: int
) -> None:
    all_out = all_moved(name).steps("out_bytes")
    run = within(name, percent)
    out, budget = run.steps("out_bytes"), run.report["budget"]

    assert out == run.steps("in_bytes")
    assert out[0] == all_out[0] and out[1] < all_out[1]
    # The second step is planned from the first, which began without what it has made:
    # optimizer states, and gradients, which are alive when it ends.
    assert out[1] >= out[2] == out[3]
    assert (out[-1] == 0) == (percent == 100)
    if percent < 100:
        assert budget["spare_bytes"] < 1 << 20


def test_what_must_be_there_is_more_than_the_budget() -> None:
    lowest = all_moved("gpt").steps("peak_bytes")
    budget = max(lowest) - (1 << 20)
    run = Trained("gpt", policy=FLOOR, budget=str(budget))

    peaks = run.steps("peak_bytes")
    assert all(peak <= least for peak, least in zip(peaks, lowest))
    assert run.report["budget"]["over_bytes"] == max(peaks) - budget > 0
    assert run.report["budget"]["stayed_bytes"] == 0
    assert run.digest == off("gpt").digest
