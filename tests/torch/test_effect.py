# SPDX-License-Identifier: Apache-2.0
"""A policy that changes nothing says so; one that can help without blocks does."""

import json
from pathlib import Path
from typing import Any

import pytest
from stack import Run, environment

# No two children in a row are alike, so there is no list of blocks.
SCRIPT = """
import torch
from torch import nn
torch.manual_seed(0)
layers = []
for _ in range(8):
    layers += [nn.Linear({width}, {width}), nn.Tanh()]
net = nn.Sequential(*layers).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(2):
    x = torch.ones({rows}, {width}, device="cuda")
    net(x).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def train(
    folder: Path, policy: str, rows: int = 4096, width: int = 64, **settings: str
) -> Any:
    report = folder / f"{policy}.json"
    env = environment(policy=policy, report=str(report), digest="1", **settings)
    run = Run(["-c", SCRIPT.format(rows=rows, width=width)], env)
    return run, json.loads(report.read_text())


def test_offload_without_blocks_lowers_what_is_left_after_forward(tmp_path: Path) -> None:
    _, off = train(tmp_path, "off")
    _, offload = train(tmp_path, "offload")

    for key in ("loss_bits", "gradient_digest"):
        assert off["steps"][key] == offload["steps"][key]
    # Eight of the sixteen saved outputs may be waiting for the next turn.
    for plain, evicted in zip(
        *(r["steps"]["after_forward_bytes"] for r in (off, offload))
    ):
        assert evicted < 0.7 * plain
    assert offload["moves"]["released_bytes"] >= offload["moves"]["out_bytes"] > 0
    assert offload["warnings"] == []


def test_recompute_without_blocks_says_that_it_changes_nothing(tmp_path: Path) -> None:
    run, report = train(tmp_path, "recompute")

    (sentence,) = report["warnings"]
    assert sentence.startswith("policy recompute changes nothing: no list of like blocks")
    assert run.err.count(sentence) == 1


def test_offload_of_too_small_tensors_says_that_it_moved_nothing(tmp_path: Path) -> None:
    run, report = train(tmp_path, "offload", rows=8, width=8)

    (sentence,) = report["warnings"]
    assert sentence.startswith("policy offload moved nothing in the first step")
    assert run.err.count(sentence) == 1
    assert [entry["reason"] for entry in report["kept"]]


def test_offload_from_memory_that_is_the_hosts_is_refused(tmp_path: Path) -> None:
    run, report = train(tmp_path, "offload", sim_gpu="gh200")

    (sentence,) = report["warnings"]
    assert sentence.startswith("policy offload changes nothing: the device shares its")
    assert run.err.count(sentence) == 1
    assert report["moves"]["out_bytes"] == 0
    kept = {entry["reason"]: entry["count"] for entry in report["kept"]}
    assert kept["the device shares its memory with the host"] > 0


HELD = """
import torch
from torch import nn
layers = nn.ModuleList(nn.Sequential(nn.Linear(64, 64), nn.Tanh()) for _ in range(4))
layers.cuda()
optimizer = torch.optim.SGD(layers.parameters(), lr=0.1)
for _ in range(2):
    x, outputs = torch.ones(4096, 64, device="cuda"), []
    for layer in layers:
        x = layer(x)
        outputs.append(x)
    x.square().mean().backward()
    optimizer.step()
"""


def test_offload_of_what_the_script_holds_says_so(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    run = Run(["-c", HELD], environment(policy="offload", report=str(report), log="info"))
    said = json.loads(report.read_text())

    (sentence,) = said["warnings"]
    assert sentence.startswith("policy offload released nothing in the first step")
    kept = {entry["reason"]: entry for entry in said["kept"]}
    held = kept["held by the program as well"]
    assert (held["count"], held["bytes"]) == (2 * 4, 2 * 4 << 20)
    assert f"{held['count']} x held by the program as well, 8.0 MiB" in run.err


@pytest.mark.parametrize("policy, warned", [("", True), ("off", False)])
def test_a_disk_without_a_policy_is_a_warning(
    tmp_path: Path, policy: str, warned: bool
) -> None:
    settings = {"policy": policy} if policy else {}
    report = tmp_path / "report.json"
    env = environment(disk=f"{tmp_path}:1GiB", report=str(report), **settings)
    Run(["-c", SCRIPT.format(rows=8, width=8)], env)

    said = json.loads(report.read_text())["warnings"]
    assert any(text.startswith("ACTSWAP_DISK does nothing") for text in said) == warned
