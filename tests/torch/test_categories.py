# SPDX-License-Identifier: Apache-2.0
"""What the library says of memory is what the models' own storages sum up to."""

import json
from functools import lru_cache
from pathlib import Path
from typing import Any, Dict, List

import pytest

from stack import Run, environment

CASES = Path(__file__).parent / "cases"
HABITS = [
    "plain",
    "gpt",
    "targets_apart",
    "accumulation",
    "zeroed",
    "tied",
    "lora",
    "flat",
    "flat_gradients",
    "averages",
    "eight_bit",
    "buffers",
    "key_value_cache",
    "there_and_back",
    "checkpointed",
    "two_optimizers",
    "sparse",
    "evaluated",
    "updated_in_backward",
]
ALIKE = ["plain", "gpt", "accumulation", "checkpointed"]
REST = ("unknown", "temporary")
OUTSIDE = ("cached", "context", "comm", "other")


def tensors(rows: List[Any]) -> Dict[str, int]:
    return {
        row["category"]: row["bytes"] for row in rows if row["category"] not in OUTSIDE
    }


@lru_cache(maxsize=None)
def train(policy: str, *habits: str) -> Dict[str, List[Any]]:
    env = environment(policy=policy, sim_compute="values")
    told: Dict[str, List[Any]] = Run(
        [str(CASES / "categories.py"), *habits], env
    ).result()
    return told


def check(told: List[Any]) -> None:
    assert len(told) >= 3
    for ours, theirs in told:
        assert theirs
        assert {name: ours[name] for name in theirs} == theirs
        assert [ours[name] for name in REST] == [0, 0]


@pytest.mark.parametrize("habit", HABITS)
def test_each_step_sums_up(habit: str) -> None:
    check(train("off", *HABITS)[habit])


@pytest.mark.parametrize("policy", ["offload:min=1KiB", "recompute"])
@pytest.mark.parametrize("habit", ALIKE)
def test_under_every_policy(habit: str, policy: str) -> None:
    check(train(policy, *ALIKE)[habit])


def report_of(folder: Path, script: str, **settings: str) -> Any:
    report = folder / "report.json"
    Run(["-c", script], environment(report=str(report), **settings))
    return json.loads(report.read_text())


def test_nothing_at_the_peak_is_unknown(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    env = environment(report=str(report), sim_compute="shapes")
    arguments = ["--layers=3", "--vocab=512", "--steps=3"]
    Run([str(CASES.parents[2] / "examples" / "train_gpt.py"), *arguments], env)

    told = json.loads(report.read_text())
    named = tensors(told["peak"]["by_category"])
    assert sum(named.values()) == told["peak"]["bytes"]
    assert "unknown" not in named
    assert named["activation"] > named["temporary"] > 0
    ends = told["steps"]["end_by_category"]
    assert set(ends) == {
        "parameter",
        "gradient",
        "optimizer_state",
        "activation",
        "input",
    }
    assert ends["activation"] == [512, 512, 512], "the loss"
    assert ends["parameter"] == [named["parameter"]] * 3
    after = tensors(told["peak"]["after"]["by_category"])
    assert told["peak"]["after"]["bytes"] == sum(after.values())
    step = told["peak"]["step"]
    assert after == {name: rows[step] for name, rows in ends.items() if rows[step]}
    assert "activations are" in told["advice"][0]


def test_the_timeline_has_the_peak(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    env = environment(report=str(report), sim_compute="shapes")
    Run([str(CASES.parents[2] / "examples" / "train_mlp.py")], env)

    told = json.loads(report.read_text())
    timeline, peak = told["timeline"], told["peak"]
    assert max(timeline["total_bytes"]) == peak["bytes"]
    at = timeline["total_bytes"].index(peak["bytes"])
    assert timeline["t_ns"][at] == peak["t_ns"]
    columns = timeline["series"]
    for name, bytes in tensors(peak["by_category"]).items():
        assert columns[name][at] == bytes
    assert timeline["step"][at] == peak["step"]
    assert timeline["phase"][at] == peak["phase"]
    sums = [sum(row) for row in zip(*columns.values())]
    assert sums == timeline["reserved_bytes"]
    cached = columns.pop("cached")
    assert [a - b for a, b in zip(sums, cached)] == timeline["total_bytes"]
    assert timeline["t_ns"] == sorted(timeline["t_ns"])
    assert all(
        a <= b for a, b in zip(timeline["total_bytes"], timeline["reserved_bytes"])
    )
    assert "unknown" not in columns


PLANTED = """
import ctypes, torch
w = torch.nn.Parameter(torch.zeros(8, device="cuda"))
address = ctypes.c_void_p()
assert not ctypes.CDLL(None).cudaMalloc(ctypes.byref(address), 123 << 20)
w.grad = torch.zeros_like(w)
torch.optim.SGD([w], lr=1.0).step()
"""


def test_what_is_not_of_pytorch_is_told_apart(tmp_path: Path) -> None:
    told = report_of(tmp_path, PLANTED, sim_compute="shapes")
    outside = {row["category"]: row["bytes"] for row in told["peak"]["by_category"]}
    assert outside["other"] == 123 << 20
    assert outside["cached"] == told["peak"]["reserved_bytes"] - told["peak"]["bytes"]
    total, context = told["device"]["total_bytes"], outside["context"]
    assert 0 < context < total // 50


LOOKS = """
import gc
import torch

model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh()).cuda()
x = torch.randn(4, 8, device="cuda", requires_grad=True)
model(x).sum().backward()
original, looks = gc.get_objects, 0

def counted():
    global looks
    looks += 1
    return original()

gc.get_objects = counted
for _ in range(256):
    (g,) = torch.autograd.grad(model(x).sum(), x)
    x = (x + 0.01 * g).detach().requires_grad_()
print(looks)
"""


def test_a_first_step_of_many_backwards_is_looked_at_a_few_times() -> None:
    """Each look goes through all of Python's objects; two moments of each backward."""
    looks: int = Run(["-c", LOOKS], environment(sim_compute="shapes")).result()

    assert 0 < looks <= 2 * 8
