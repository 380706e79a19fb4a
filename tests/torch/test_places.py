# SPDX-License-Identifier: Apache-2.0
"""Which blocks and lines hold the activations, and what is said when memory runs out."""

import json
from pathlib import Path
from typing import Any

from stack import Run, environment

SCRIPT = """
import sys
import torch
from torch import nn

class Wide(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(256, 256)

    def forward(self, x):
        return torch.exp(self.linear(x))  # line 12

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Wide() for _ in range(3))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)  # line 21
        return x

model = Net().cuda()
optimizer = torch.optim.Adam(model.parameters())
holes = [torch.empty(8 << 20, dtype=torch.uint8, device="cuda") for _ in range(7)]
del holes[1:6:2]
for _ in range(2):
    x = torch.empty(1024, 256, device="cuda")
    y = model(x)  # line 30
    if len(sys.argv) > 1:
        try:
            torch.empty(1 << 40, device="cuda")
        except torch.OutOfMemoryError:
            pass
    y.sum().backward()
    if len(sys.argv) > 1:
        del y
        optimizer.step()
"""
PARAMETERS = 3 * (256 * 256 * 4 + 1024)


def run(folder: Path, *arguments: str, libraries: str = "", **settings: str) -> Any:
    script = folder / "script.py"
    script.write_text(SCRIPT)
    env = environment(
        report=str(folder / "report.json"), sim_compute="shapes", **settings
    )
    env["LD_LIBRARY_PATH"] = libraries
    return Run([str(script), *arguments], env)


def read(folder: Path, name: str = "report.json") -> Any:
    return json.loads((folder / name).read_text())


def test_activations_by_line_and_by_block(tmp_path: Path) -> None:
    run(tmp_path)
    report = read(tmp_path)
    (site,) = report["sites"]
    assert report["stacks"][site["stack"]] == [
        "script.py:30 <module>",
        "script.py:21 Net.forward",
        "script.py:12 Wide.forward",
    ]
    assert (site["category"], site["count"]) == ("activation", 3)
    assert site["peak_bytes"] == 3 * 1024 * 256 * 4
    assert site["idle_ns"]["p10"] <= site["idle_ns"]["p50"] <= site["idle_ns"]["p90"]

    modules = {row["module"]: row["peak_bytes"] for row in report["modules"]}
    assert modules.pop("(outside)", 0) <= 2 * 512, "sums"
    assert modules == {f"layers.{i}": 1024 * 256 * 4 for i in range(3)}
    gaps = report["idle_gap"]
    assert len(gaps["edges_ns"]) == len(gaps["bytes"]) + 1
    assert sum(gaps["count"]) == 2 * 3
    assert sum(gaps["bytes"]) == 2 * site["peak_bytes"]
    # 1 MiB out and in again over the card's link.
    assert 2 * 2**20 / 64e9 < gaps["break_even_ns"] / 1e9 < 2 * 2**20 / 20e9


def test_offload_waits_as_long(tmp_path: Path) -> None:
    run(tmp_path, policy="offload")
    report = read(tmp_path)
    assert sum(report["idle_gap"]["count"]) == 2 * 3
    assert sum(report["idle_gap"]["bytes"]) == 2 * 3 * 1024 * 256 * 4


def test_without_stacks_there_are_blocks(tmp_path: Path) -> None:
    run(tmp_path, stacks="none")
    report = read(tmp_path)
    assert report["stacks"] == report["sites"] == []
    assert {row["module"] for row in report["modules"]} >= {"layers.0", "layers.2"}


def test_native_frames_alone_and_inside_of_python(tmp_path: Path) -> None:
    run(tmp_path)
    lines = read(tmp_path)["stacks"]
    run(tmp_path, stacks="all")
    (both,) = read(tmp_path, "report.2.json")["stacks"]
    run(tmp_path, stacks="native")
    (native,) = read(tmp_path, "report.3.json")["stacks"]
    # torch.exp, that is to say from Python's binding to autograd's own function.
    inside = both[len(lines[0]) :]
    assert [both[: len(lines[0])]] == lines
    assert inside[0].startswith("libtorch_python.so ")
    assert inside[-1].startswith("libtorch_cpu.so torch::autograd::VariableType::")
    assert inside[-1].endswith("::exp")
    assert "libtorch_cpu.so at::_ops::exp::call" in inside
    assert native[-len(inside) :] == inside
    assert len(native) > len(inside) and not set(native) & set(lines[0])
    assert not [f for f in native if "(anonymous namespace)" not in f and "(" in f]


def test_without_libunwind_stacks_are_of_python(tmp_path: Path) -> None:
    (tmp_path / "libunwind.so.8").write_text("not a library")
    said = run(tmp_path, stacks="all", libraries=str(tmp_path)).err
    assert "no native stacks: libunwind.so.8 is not there" in said
    assert read(tmp_path)["stacks"][0][-1] == "script.py:12 Wide.forward"


def test_out_of_memory_says_who_and_what_comes(tmp_path: Path) -> None:
    said = run(tmp_path, "oom").err
    first, second = read(tmp_path, "report.oom.json"), read(tmp_path, "report.oom.2.json")
    oom = first["oom"]
    held = {row["category"]: row["bytes"] for row in oom["held_by"]}
    to_come = {row["category"]: row["bytes"] for row in oom["to_come"]}

    assert (oom["step"], oom["phase"], oom["asked_bytes"]) == (0, "forward", 1 << 42)
    assert held["parameter"] == PARAMETERS
    assert held["activation"] == 3 * 1024 * 256 * 4
    assert held["input"] == 1024 * 256 * 4
    assert sum(held.values()) == oom["in_use_bytes"]
    assert to_come == {"gradient": PARAMETERS, "optimizer_state": 2 * PARAMETERS}
    assert "still to come: gradient 771.0 KiB, optimizer_state 1.5 MiB" in said
    # Of seven pieces of 8 MiB three are free again, none beside another.
    assert 8 << 20 <= oom["largest_free_bytes"] < 16 << 20
    assert oom["free_bytes"] == oom["reserved_bytes"] - oom["in_use_bytes"]
    assert "is free, but in pieces of at most" in said

    assert second["oom"]["step"] == 1
    there = {row["category"]: row["bytes"] for row in second["oom"]["held_by"]}
    assert there["optimizer_state"] >= 2 * PARAMETERS
    assert read(tmp_path)["ended"] == "exit", "the script got over it"
