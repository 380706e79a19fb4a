# SPDX-License-Identifier: Apache-2.0
"""Three steps whose batch grows. Prints the highest peak, and in which step and phase
PyTorch's allocator first had more than so many bytes, as JSON."""

import json
import sys

import torch
from torch import nn

budget = int(sys.argv[1])
first: list = []


def look(step: int, phase: str) -> None:
    if not first and torch.cuda.max_memory_allocated() > budget:
        first.extend([step, phase])


blocks = [nn.Sequential(nn.Linear(4096, 4096), nn.GELU()) for _ in range(12)]
model = nn.Sequential(*blocks).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for step in range(3):
    x = torch.randn(1024 << step, 4096, device="cuda")
    loss = model(x).square().mean()
    look(step, "forward")
    loss.backward()
    look(step, "backward")
    optimizer.step()
    optimizer.zero_grad()
    look(step, "optimizer")
print(json.dumps({"peak": torch.cuda.max_memory_allocated(), "first": first}))
