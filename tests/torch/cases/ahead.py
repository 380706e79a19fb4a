# SPDX-License-Identifier: Apache-2.0
"""Steps of like blocks on the simulated clock: ahead.py WIDTH ROWS BLOCKS.

Prints, in ms of the last step, what its blocks took forward and backward and what all of
it took, as JSON.
"""

import json
import sys

import torch
from torch import nn
from torch.nn import functional as F

width, rows, blocks = map(int, sys.argv[1:])
STEPS = 4


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


def now():
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event


torch.set_default_dtype(torch.bfloat16)
with torch.device("cuda"):
    layers = nn.ModuleList(Block() for _ in range(blocks))
    x = torch.zeros(rows, width).requires_grad_()
optimizer = torch.optim.SGD(layers.parameters(), lr=0.1)
for step in range(STEPS):
    times = [now()]
    y = x.clone()  # so that the first block, too, takes what a block made
    times.append(now())
    for layer in layers:
        y = layer(y)
    times.append(now())
    y = y.square().mean()
    times.append(now())
    y.backward()
    times.append(now())
    optimizer.step()
    optimizer.zero_grad()
    times.append(now())
    torch.cuda.synchronize()
whole, forward, backward = (
    times[a].elapsed_time(times[b]) for a, b in ((0, 5), (1, 2), (3, 4))
)
print(json.dumps({"whole": whole, "forward": forward, "backward": backward}))
