# SPDX-License-Identifier: Apache-2.0
"""Trains with more and more memory until a card is full, empties the cache and goes on.
Prints each call of PyTorch's allocator, the messages and what the card says, as JSON."""

import json

import torch
from torch import nn

GIB = 1 << 30
said: dict = {"messages": [], "depths": [], "refused": []}
properties = torch.cuda.get_device_properties(0)
said["total"] = [properties.total_memory, torch.cuda.mem_get_info()[1]]
said["free"] = torch.cuda.mem_get_info()[0]
pools = torch.cuda.get_allocator_backend() == "cudaMallocAsync"
if not pools:
    torch.cuda.memory._record_memory_history(stacks="python", context=None)


# Element by element: matrix products and sums have workspaces that are the card's own.
weights = [nn.Parameter(torch.ones(64 << 20, device="cuda")) for _ in range(4)]
optimizer = torch.optim.AdamW(weights)


def step(depth: int) -> None:
    x = weights[0]
    for layer in range(depth):
        x = torch.tanh(x * weights[layer % 4]) * x
    x.backward(torch.ones_like(x))
    optimizer.step()
    optimizer.zero_grad()


def grow(stride: int) -> None:
    """Until the card is full."""
    depth = stride
    while True:
        try:
            step(depth)
        except torch.cuda.OutOfMemoryError as error:
            said["messages"].append(str(error))
            said["refused"].append(depth)
            return
        said["depths"].append(depth)
        depth += stride


grow(9)
optimizer.zero_grad()
torch.cuda.empty_cache()
said["left"] = torch.cuda.mem_get_info()
grow(7)
optimizer.zero_grad()
torch.cuda.empty_cache()

# What was refused fits once the room is there again.
held = torch.empty(said["total"][0] - 6 * GIB, dtype=torch.int8, device="cuda")
try:
    more = torch.empty(4 * GIB, dtype=torch.int8, device="cuda")
except torch.cuda.OutOfMemoryError as error:
    said["messages"].append(str(error))
del held
torch.cuda.empty_cache()
more = torch.empty(4 * GIB, dtype=torch.int8, device="cuda")
said["peak"] = torch.cuda.max_memory_allocated()
if not pools:
    trace = torch.cuda.memory._snapshot()["device_traces"][0]
    said["calls"] = [[entry["action"], entry["size"]] for entry in trace]
print(json.dumps(said))
