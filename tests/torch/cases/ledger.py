# SPDX-License-Identifier: Apache-2.0
"""Trains a few steps and prints what torch.cuda says of each: peak, reserve, alive.

The sizes grow, tensors are freed out of order and the cache is emptied, so that the two
ways of counting have every chance to part.

ledger.py elementwise|gpt
"""

import json
import sys
from pathlib import Path

import torch
from torch import nn

STEPS = 4


class Scale(nn.Module):
    """Only what needs no matrix product."""

    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width, width))

    def forward(self, x):
        return nn.functional.gelu(x * self.weight) * self.weight + x


class Scales(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Scale(128) for _ in range(4))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x.sum()


def elementwise():
    return Scales().to("cuda"), lambda step: (torch.empty(step + 1, 128, 128).cuda(),)


def gpt():
    sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "examples"))
    import train_gpt

    sys.argv[1:] = ["--layers=3", "--vocab=512"]
    options = train_gpt.parse_arguments()
    generator = torch.Generator().manual_seed(0)

    def batch(step):
        options.batch = step + 1
        return train_gpt.make_batch(options, generator)

    return train_gpt.make_model(options), batch


def main():
    model, batch = {"elementwise": elementwise, "gpt": gpt}[sys.argv[1]]()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=True)
    told = []
    torch.cuda.reset_peak_memory_stats()
    for step in range(STEPS):
        odd = [torch.empty(1000 * (n + 1), device="cuda") for n in range(10)]
        del odd[2:7]
        loss = model(*batch(step))
        loss.backward()
        optimizer.step()
        # The step is over here for libactswap as well.
        told.append([torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()])
        torch.cuda.reset_peak_memory_stats()
        optimizer.zero_grad(set_to_none=True)
        del loss, odd
        if step == 2:
            torch.cuda.empty_cache()
    print(json.dumps(told))


main()
