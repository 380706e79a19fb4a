# SPDX-License-Identifier: Apache-2.0
"""Trains a small model over and over while the device refuses calls of libactswap's.

faults.py all | faults.py PICKS SEED: of the calls of each function all, or the first, the
last and PICKS of the others by chance, each refused once and from it on. Prints as JSON
how many calls a run has, how many runs had one refused, the digest of a run with none,
and the faults under which a run gave other bits, raised or left something behind.
faults.py once: one run, whose faults are in the environment.
"""

import ctypes
import gc
import hashlib
import json
import random
import sys
from typing import Any, Dict, Iterator, List

import torch
from torch import nn
from torch.nn import functional as F

from actswap_torch import _pack

runtime = ctypes.CDLL(None)
runtime.sim_faults_calls.restype = ctypes.c_ulong
PINS = "cudaHostAlloc"  # only what is larger than all before asks
FUNCTIONS = (
    "cudaMemcpyAsync",
    "cudaEventRecord",
    "cudaStreamWaitEvent",
    "cudaStreamIsCapturing",
    "cudaStreamQuery",
    "cudaGetDevice",
    "cudaThreadExchangeStreamCaptureMode",
    PINS,
)
# What the host does when the device does not, refused as well.
BEHIND = "@cudaMemcpyAsync:14+={error},@cudaStreamSynchronize:1+={error}"
ERROR = 46  # all devices are busy
ROWS = 32
PINNED = 4  # calls of PINS


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(64, 128), nn.Linear(128, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(F.gelu(self.up(x)))


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Block() for _ in range(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


def other_stream() -> torch.cuda.Stream:
    """One to be asked, and not the many that PyTorch would make."""
    stream = ctypes.c_void_p()
    assert runtime.cudaStreamCreate(ctypes.byref(stream)) == 0
    return torch.cuda.ExternalStream(stream.value)


def train(rows: int = ROWS) -> str:
    torch.manual_seed(0)
    model = Model().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, foreach=False)
    seen = hashlib.sha256()
    for _ in range(2):
        x = torch.randn(rows, 64).cuda()
        with torch.cuda.stream(side):
            torch.zeros(1, device="cuda")  # may still run when a block ends
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        for tensor in [loss, *(p.grad for p in model.parameters())]:
            seen.update(tensor.detach().cpu().numpy().tobytes())
        optimizer.zero_grad()
    return seen.hexdigest()


def attempt(fault: str, rows: int) -> str:
    runtime.sim_faults_set(fault.encode())
    try:
        return train(rows)
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:300]
    finally:
        runtime.sim_faults_set(b"")
        gc.collect()


def count(function: str) -> int:
    """Of a run's calls."""
    if function == PINS:
        return PINNED
    runtime.sim_faults_set(f"@{function}:1000000={ERROR}".encode())
    train()
    return runtime.sim_faults_calls()


def chosen(calls: int) -> List[int]:
    every = range(1, calls + 1)
    if sys.argv[1] == "all":
        return list(every)
    picks = random.Random(int(sys.argv[2])).sample(every, min(int(sys.argv[1]), calls))
    return sorted({1, calls, *picks})


def faults(calls: Dict[str, int]) -> Iterator[str]:
    for function, most in calls.items():
        for number in chosen(most):
            for on in ("", "+"):
                yield f"@{function}:{number}{on}={ERROR}"
    yield BEHIND.format(error=ERROR)


def all_faults() -> Dict[str, Any]:
    runtime.sim_faults_set(b"")
    train()
    known = {ROWS: train()}
    calls = {function: count(function) for function in FUNCTIONS}
    runs = dict.fromkeys(FUNCTIONS, 0)
    wrong: List[str] = []
    rows = ROWS
    for fault in faults(calls):
        function = fault[1 : fault.index(":")]
        rows += 8 if function == PINS else 0
        got = attempt(fault, rows)
        runs[function] += 1
        if rows not in known:
            known[rows] = train(rows)
        if got != known[rows]:
            wrong.append(f"{fault}: {got}")
        if _pack.stats()["pages"]:
            wrong.append(f"{fault}: pages are left")
    return {"calls": calls, "runs": runs, "wrong": wrong, "digest": known[ROWS]}


side = other_stream()
if sys.argv[1] == "once":
    print(json.dumps({"digest": train(), "pages": _pack.stats()["pages"]}))
else:
    print(json.dumps(all_faults()))
