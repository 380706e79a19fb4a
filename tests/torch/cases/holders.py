# SPDX-License-Identifier: Apache-2.0
"""A script that keeps what forward saves, in many ways. Prints for each, as JSON, the
bytes that were released, brought in and copied out in each of its steps."""

import json

import torch
from torch import nn

from actswap_torch import _pack

STEPS = 3

hold = drop_between = drop_before_backward = None
held = []


class Block(nn.Module):
    """Saves the result of exp, of 1 MiB."""

    def forward(self, x):
        y = x.exp()
        if hold:
            held.append(hold(y))
        return y + 1


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(4))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
            if drop_between:
                held.clear()
        return x.sum()


def moved():
    stats = _pack.stats()
    return [stats["released_bytes"], stats["in_bytes"], stats["out_bytes"]]


def train():
    model = Model()
    x = torch.zeros(256, 1024, device="cuda", requires_grad=True)
    optimizer = torch.optim.SGD([x], lr=0.1)
    steps = []
    for _ in range(STEPS):
        before = moved()
        loss = model(x)
        if drop_before_backward:
            held.clear()
        loss.backward()
        held.clear()
        optimizer.step()
        steps.append([now - then for now, then in zip(moved(), before)])
    return steps


RESULTS = {"nobody": train()}
for name, hold in {
    "storage": lambda y: y.untyped_storage(),
    "view": lambda y: y[1:],
    "detached": lambda y: y.detach(),
    "tensor": lambda y: y,
}.items():
    RESULTS[name] = train()
drop_between = True
RESULTS["between"] = train()
drop_between, drop_before_backward = False, True
RESULTS["before backward"] = train()
print(json.dumps(RESULTS))
