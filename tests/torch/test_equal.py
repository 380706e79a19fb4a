# SPDX-License-Identifier: Apache-2.0
"""Losses, gradients and parameters are the same bits, whatever is done to activations."""

import json
from functools import lru_cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Dict, List, Tuple

import pytest
import torch

from stack import ROOT, Run, environment

GPT = ("train_gpt.py", "--layers=3", "--batch=4", "--vocab=512", "--foreach")
MLP = ("train_mlp.py", "--layers=4", "--batch=1024", "--foreach")
FLOOR = "offload:min=64KiB"

ORDERS = ("late", "early")
SCRIPTS = pytest.mark.parametrize("script", [GPT, MLP], ids=["gpt", "mlp"])


def train(script: Tuple[str, ...], device: str, **settings: str) -> Tuple[Any, Any]:
    """What the script saved, and the report."""
    folder = Path(mkdtemp(prefix="actswap-test-"))
    report, saved = folder / "report.json", folder / "saved.pt"
    env = environment(report=str(report), **settings)
    if device == "cpu":
        del env["LD_PRELOAD"]
    path = str(ROOT / "examples" / script[0])
    Run([path, *script[1:], f"--device={device}", f"--save={saved}"], env)
    return torch.load(saved), json.loads(report.read_text()) if report.exists() else None


@lru_cache(maxsize=None)
def on_cpu(script: Tuple[str, ...]) -> Any:
    return train(script, "cpu")[0]


@lru_cache(maxsize=None)
def simulated(script: Tuple[str, ...], policy: str, order: str) -> Tuple[Any, Any]:
    return train(script, "cuda", policy=policy, sim_order=order)


def differences(left: Dict[str, Any], right: Dict[str, Any]) -> List[Any]:
    found: List[Any] = []
    if left["losses"] != right["losses"]:
        found.append(("losses", left["losses"], right["losses"]))
    for step, pair in enumerate(zip(left["gradients"], right["gradients"])):
        for index, (a, b) in enumerate(zip(*pair)):
            if not torch.equal(a, b):
                found.append(("gradient", step, index))
    for index, (a, b) in enumerate(zip(left["parameters"], right["parameters"])):
        if not torch.equal(a, b):
            found.append(("parameter", index))
    return found


@SCRIPTS
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("policy", ["off", FLOOR, "recompute"])
def test_a_simulated_run_is_the_cpu_run(script: Any, policy: str, order: str) -> None:
    assert differences(on_cpu(script), simulated(script, policy, order)[0]) == []


@SCRIPTS
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("policy", [FLOOR, "recompute"])
def test_dropout_is_the_plain_run_s(script: Any, policy: str, order: str) -> None:
    script = (*script, "--dropout=0.25")
    plain = simulated(script, "off", "late")[0]

    assert differences(plain, simulated(script, policy, order)[0]) == []
    assert differences(plain, simulated(script[:-1], "off", "late")[0]) != []


@SCRIPTS
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("policy", [FLOOR, "recompute"])
def test_memory_falls_under_both_policies(script: Any, policy: str, order: str) -> None:
    plain = simulated(script, "off", order)[1]
    other = simulated(script, policy, order)[1]

    for before, after in zip(
        plain["steps"]["after_forward_bytes"], other["steps"]["after_forward_bytes"]
    ):
        assert after < before
    assert other["peak"]["bytes"] < plain["peak"]["bytes"]
    assert plain["moves"]["released_bytes"] == 0
    if policy == FLOOR:
        assert 0 < other["moves"]["released_bytes"] <= other["moves"]["out_bytes"]
        assert other["moves"]["in_bytes"] > 0
    else:
        assert other["moves"]["out_bytes"] == 0
