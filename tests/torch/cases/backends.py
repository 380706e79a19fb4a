# SPDX-License-Identifier: Apache-2.0
"""Trains a small model on one of PyTorch's ways to take memory, and says as JSON the
losses and what PyTorch itself and the device count at the end.

usage: backends.py cache | plug LIBRARY | pool | graph
"""

import json
import sys
from typing import Any, Callable, Dict

import torch
from torch import nn

HOW = sys.argv[1]
if HOW == "plug":
    own = torch.cuda.memory.CUDAPluggableAllocator(sys.argv[2], "take", "give")
    torch.cuda.memory.change_current_allocator(own)


def model() -> nn.Module:
    torch.manual_seed(0)
    blocks = [nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64))]
    blocks += [nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64))]
    return nn.Sequential(*blocks, nn.Linear(64, 8)).cuda()


def step_of(net: nn.Module, batch: torch.Tensor) -> Callable[[], torch.Tensor]:
    optimizer = torch.optim.SGD(net.parameters(), 0.1)

    def step() -> torch.Tensor:
        optimizer.zero_grad(set_to_none=True)
        loss: torch.Tensor = net(batch).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def captured(step: Callable[[], torch.Tensor]) -> Callable[[], torch.Tensor]:
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = step()

    def replay(holds: Any = step) -> torch.Tensor:  # a graph holds no parameters
        graph.replay()
        return loss.clone()

    return replay


def train() -> Dict[str, Any]:
    batch = torch.linspace(-1, 1, 512 * 64, device="cuda").reshape(512, 64)
    step = step_of(model(), batch)
    if HOW == "graph":
        step = captured(step)
    count = 3 if HOW == "graph" else 4  # the first was not captured
    said: Dict[str, Any] = {"losses": [step().item().hex() for _ in range(count)]}
    torch.cuda.synchronize()
    free, total = torch.cuda.mem_get_info()
    said["gone"] = total - free
    if HOW != "plug":
        said["reserved"] = torch.cuda.memory_reserved()
        said["peak"] = torch.cuda.max_memory_allocated()
        said["reserved_peak"] = torch.cuda.max_memory_reserved()
    return said


if HOW == "pool":
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        print(json.dumps(train()), flush=True)
else:
    print(json.dumps(train()), flush=True)
