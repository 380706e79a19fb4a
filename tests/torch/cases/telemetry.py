# SPDX-License-Identifier: Apache-2.0
"""Trains a small model of like blocks for some steps, as its arguments say.

    telemetry.py [profile] [first] [fork] [leave]

profile: the last steps under torch.profiler; first: it has been at work before the first
step, too; fork: a child comes and goes between two steps; leave: ends by os._exit().
Prints the losses' bits and the kernels and copies of the profile: JSON, in the last line.
"""

import json
import os
import sys
import tempfile
from typing import Any, Dict, List

import torch
from torch.profiler import ProfilerActivity, profile

STEPS, PROFILED = 4, 2
ACTIVITIES = [ProfilerActivity.CPU, ProfilerActivity.CUDA]


class Block(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up = torch.nn.Linear(64, 256)
        self.down = torch.nn.Linear(256, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(torch.nn.functional.gelu(self.up(x)))


def work_of(prof: Any) -> List[Any]:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        prof.export_chrome_trace(path)
        with open(path, encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
    wanted = ("kernel", "gpu_memcpy", "gpu_memset")
    found = sorted((e for e in events if e.get("cat") in wanted), key=lambda e: e["ts"])
    return [[e["name"], round(e["dur"] * 1e3), e["args"].get("bytes")] for e in found]


def child() -> None:
    pid = os.fork()
    if not pid:
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0


def main() -> None:
    options = sys.argv[1:]
    torch.manual_seed(0)
    model = torch.nn.Sequential(*(Block() for _ in range(3))).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    data = torch.randn(128, 64).pin_memory()
    told: Dict[str, Any] = {"losses": [], "work": None}

    def step() -> None:
        loss = model(data.to("cuda", non_blocking=True)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if os.environ["ACTSWAP_SIM_COMPUTE"] == "values":
            told["losses"].append(loss.item().hex())

    if "first" in options:
        with profile(activities=ACTIVITIES):
            torch.zeros(8, device="cuda")
    for _ in range(STEPS - PROFILED):
        step()
    if "fork" in options:
        child()
    if "profile" in options:
        torch.cuda.synchronize()
        with profile(activities=ACTIVITIES) as prof:
            for _ in range(PROFILED):
                step()
            torch.cuda.synchronize()
        told["work"] = work_of(prof)
    else:
        for _ in range(PROFILED):
            step()
    print(json.dumps(told), flush=True)
    if "leave" in options:
        os._exit(0)


if __name__ == "__main__":
    main()
