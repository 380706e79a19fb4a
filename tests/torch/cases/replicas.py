# SPDX-License-Identifier: Apache-2.0
"""Several devices of one process: NCCL's collectives beside what the CPU computes, and
torch.nn.DataParallel beside the same replicas one after the other. Prints JSON.

usage: replicas.py collectives | train
"""

import json
import sys
from typing import Any, Callable, Dict, List

import torch
from torch import nn
from torch.cuda import nccl
from races import races

DEVICES = [torch.device("cuda", number) for number in range(3)]
TYPES = (
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.uint8,
    torch.int8,
    torch.int32,
    torch.int64,
)
FOLDS: Dict[int, Callable[[torch.Tensor], torch.Tensor]] = {
    0: lambda rows: rows[0] + rows[1] + rows[2],
    1: lambda rows: rows[0] * rows[1] * rows[2],
    2: lambda rows: rows.max(0).values,
    3: lambda rows: rows.min(0).values,
}


def inputs(dtype: torch.dtype, count: int = 6) -> List[torch.Tensor]:
    torch.manual_seed(count)
    rows = (torch.randn(3, count) * 30).to(dtype)
    return [row.to(device) for row, device in zip(rows, DEVICES)]


def outputs(dtype: torch.dtype, count: int) -> List[torch.Tensor]:
    return [torch.zeros(count, dtype=dtype, device=device) for device in DEVICES]


def on_host(tensors: List[torch.Tensor]) -> torch.Tensor:
    return torch.stack([tensor.cpu() for tensor in tensors])


def wrong_reductions() -> List[str]:
    wrong = []
    for dtype in TYPES:
        for op, fold in FOLDS.items():
            given, taken = inputs(dtype), outputs(dtype, 6)
            nccl.all_reduce(given, taken, op)
            one = torch.zeros(6, dtype=dtype, device=DEVICES[1])
            nccl.reduce(given, one, 1, op)
            sums = outputs(dtype, 2)
            nccl.reduce_scatter(given, sums, op)
            nccl.all_reduce(given, given, op)
            expected = fold(on_host(inputs(dtype)))
            whole = [*taken, *given, one, torch.cat([part.cpu() for part in sums])]
            if not all(torch.equal(each.cpu(), expected) for each in whole):
                wrong.append(f"{dtype} {op}")
    return wrong


def collectives() -> Dict[str, Any]:
    shared, gathered = inputs(torch.float32), outputs(torch.float32, 18)
    nccl.broadcast(shared, 2)
    nccl.all_gather(inputs(torch.float32), gathered)
    flat = on_host(inputs(torch.float32)).flatten()
    return {
        "wrong": wrong_reductions(),
        "broadcast": torch.equal(on_host(shared), flat[12:].repeat(3, 1)),
        "gathered": torch.equal(on_host(gathered), flat.repeat(3, 1)),
        "races": races(),
    }


def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        *(nn.Sequential(nn.Linear(64, 64), nn.Tanh()) for _ in range(4)),
        nn.Linear(64, 8),
    ).cuda()


def trained(parallel: bool) -> List[torch.Tensor]:
    net = model()
    run = nn.DataParallel(net, [0, 1])
    own = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9)
    torch.manual_seed(1)
    losses = []
    for _ in range(4):
        batch = torch.randn(16, 64, device="cuda")
        if parallel:
            out = run(batch)
        else:
            out = torch.cat([net(part) for part in batch.chunk(2)])
        loss = out.square().sum()
        own.zero_grad()
        loss.backward()
        own.step()
        losses.append(loss.detach())
    return [torch.stack(losses).cpu(), *(value.cpu() for value in net.parameters())]


def train() -> Dict[str, Any]:
    both = [trained(True), trained(False)]
    return {
        "equal": [torch.equal(one, other) for one, other in zip(*both)],
        "losses": [value.hex() for value in both[0][0].tolist()],
        "races": races(),
    }


print(json.dumps({"collectives": collectives, "train": train}[sys.argv[1]]()))
