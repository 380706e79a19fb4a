# SPDX-License-Identifier: Apache-2.0
"""A small model, twice the card's memory of it, and what is left: for PyTorch's ways to
take memory. Prints what was seen as JSON."""

import json

import torch
from torch import nn

MIB = 1 << 20
said = {"count": torch.cuda.device_count()}
free, total = torch.cuda.mem_get_info()
torch.manual_seed(0)
model = nn.Sequential(*[nn.Linear(256, 256) for _ in range(4)]).cuda()
loss = model(torch.randn(8, 256).cuda()).square().sum()
loss.backward()
said["loss"] = loss.item()
said["gradient"] = model[0].weight.grad.double().sum().item()

# Larger than one mapping, given back in another order than taken.
blocks = [torch.full((50 * MIB,), n, dtype=torch.uint8, device="cuda") for n in range(5)]
said["sums"] = [block.sum(dtype=torch.int64).item() for block in blocks]
taken = free - torch.cuda.mem_get_info()[0]
said["driver has what is reserved"] = taken == torch.cuda.memory_reserved()
said["expandable"] = any(s["is_expandable"] for s in torch.cuda.memory_snapshot())
del blocks[3], blocks[1]
again = torch.full((80 * MIB,), 7, dtype=torch.uint8, device="cuda")
said["again"] = again.sum(dtype=torch.int64).item() + blocks[1][0].item()
del blocks, again
torch.cuda.empty_cache()
said["given back"] = torch.cuda.memory_reserved() < 30 * MIB
try:
    torch.empty(2 * total, dtype=torch.uint8, device="cuda")
except torch.cuda.OutOfMemoryError:
    said["out of memory"] = True
said["peak"] = torch.cuda.max_memory_allocated()
print(json.dumps(said))
