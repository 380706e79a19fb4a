# SPDX-License-Identifier: Apache-2.0
"""Losses, gradients and parameters are the same bits, whatever is done to activations."""

import json
from functools import lru_cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Dict, List

import pytest
import torch

from stack import Run, environment

TRAIN = str(Path(__file__).parent / "cases" / "train.py")
NAMES = ("gpt", "mlp", "gpt-dropout", "mlp-dropout")  # as train.py runs them
STEPS = 3
FLOOR = "offload:min=64KiB"

name = pytest.mark.parametrize("name", NAMES)
plain_name = pytest.mark.parametrize("name", ["gpt", "mlp"])
order = pytest.mark.parametrize("order", ["late", "early"])
policy = pytest.mark.parametrize("policy", [FLOOR, "recompute"])
any_policy = pytest.mark.parametrize("policy", ["off", FLOOR, "recompute"])


class Training:
    """One process that trained everything: what it saved, and the report."""

    def __init__(self, device: str, **settings: str) -> None:
        folder = Path(mkdtemp(prefix="actswap-test-"))
        report = folder / "report.json"
        env = environment(report=str(report), **settings)
        if device == "cpu":
            del env["LD_PRELOAD"]
        Run([TRAIN, str(folder), device], env)
        self.saved = {name: torch.load(folder / f"{name}.pt") for name in NAMES}
        self.report = json.loads(report.read_text()) if report.exists() else None

    def steps(self, name: str, field: str) -> List[int]:
        first = NAMES.index(name) * STEPS
        values = self.report["steps"][field]
        assert len(values) == STEPS * len(NAMES)
        return values[first : first + STEPS]


@lru_cache(maxsize=None)
def on_cpu() -> Training:
    return Training("cpu")


@lru_cache(maxsize=None)
def simulated(policy: str, order: str) -> Training:
    return Training("cuda", policy=policy, sim_order=order)


def differences(left: Dict[str, Any], right: Dict[str, Any]) -> List[Any]:
    """Where two runs differ by a bit."""
    found: List[Any] = []
    if left["losses"] != right["losses"] or len(left["losses"]) != STEPS:
        found.append(("losses", left["losses"], right["losses"]))
    for step, pair in enumerate(zip(left["gradients"], right["gradients"])):
        for index, (a, b) in enumerate(zip(*pair)):
            if not torch.equal(a, b):
                found.append(("gradient", step, index))
    for index, (a, b) in enumerate(zip(left["parameters"], right["parameters"])):
        if not torch.equal(a, b):
            found.append(("parameter", index))
    return found


@plain_name
@order
@any_policy
def test_a_simulated_run_is_the_cpu_run(name: str, policy: str, order: str) -> None:
    saved = simulated(policy, order).saved[name]

    assert differences(on_cpu().saved[name], saved) == []


@name
@order
@policy
def test_a_policy_changes_no_bit(name: str, policy: str, order: str) -> None:
    plain = simulated("off", "early").saved[name]

    assert differences(plain, simulated(policy, order).saved[name]) == []


def test_dropout_was_on() -> None:
    saved = simulated("off", "early").saved

    assert differences(saved["gpt"], saved["gpt-dropout"]) != []
    assert differences(saved["mlp"], saved["mlp-dropout"]) != []


@name
@order
@policy
def test_memory_falls(name: str, policy: str, order: str) -> None:
    plain, other = simulated("off", order), simulated(policy, order)

    for before, after in zip(
        *(r.steps(name, "after_forward_bytes") for r in (plain, other))
    ):
        assert after < before
    # Where PyTorch keeps workspaces (up to 2.14), the first peak is the optimizer's.
    before, after = plain.steps(name, "peak_bytes"), other.steps(name, "peak_bytes")
    assert all(x <= y for x, y in zip(after, before))
    assert max(after) < max(before)


@name
@order
def test_offload_releases_what_it_copies(name: str, order: str) -> None:
    plain, other = simulated("off", order), simulated(FLOOR, order)

    assert plain.steps(name, "released_bytes") == [0] * STEPS
    for out, back, released in zip(
        other.steps(name, "out_bytes"),
        other.steps(name, "in_bytes"),
        other.steps(name, "released_bytes"),
    ):
        assert released >= out == back > 0


@name
@order
def test_recompute_moves_nothing_after_its_trials(name: str, order: str) -> None:
    run = simulated("recompute", order)

    tried, *later = run.steps(name, "out_bytes")
    assert tried > 0
    assert run.steps(name, "out_bytes") == run.steps(name, "in_bytes")
    # In every eighth step of the process one block is tried again.
    assert later.count(0) >= STEPS - 2
    assert all(moved < tried for moved in later)
