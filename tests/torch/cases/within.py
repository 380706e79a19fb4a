# SPDX-License-Identifier: Apache-2.0
"""Trains one model: within.py NAME. Prints a digest of each step's loss, gradients and of
the parameters at the end, which equal bits alone have in common."""

import hashlib
import json
import sys

import torch
from torch import nn
from torch.nn import functional as F

STEPS = 4


class Residual(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.one = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.two = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.norms = nn.ModuleList(nn.BatchNorm2d(width) for _ in range(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.relu(self.norms[0](self.one(x)))
        return F.relu(x + self.norms[1](self.two(y)))


class ResNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, padding=1)
        self.layers = nn.ModuleList(Residual(16) for _ in range(4))
        self.head = nn.Linear(16, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stem(x)
        for layer in self.layers:
            x = layer(x)
        return self.head(x.mean((2, 3)))


class GPT(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(64, 128)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(128, 4, 256, 0.1, batch_first=True)
            for _ in range(4)
        )
        self.head = nn.Linear(128, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1], x.device)
        x = self.embedding(x)
        for layer in self.layers:
            x = layer(x, mask, is_causal=True)
        return self.head(x).flatten(0, 1)


def batch(name: str) -> "tuple[torch.Tensor, torch.Tensor]":
    if name == "resnet":
        return torch.randn(8, 3, 32, 32), torch.randint(0, 10, (8,))
    return torch.randint(0, 64, (8, 64)), torch.randint(0, 64, (512,))


def main() -> None:
    name = sys.argv[1]
    torch.manual_seed(0)
    model = (ResNet() if name == "resnet" else GPT()).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    digest = hashlib.sha256()
    for _ in range(STEPS):
        x, y = (t.cuda() for t in batch(name))
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        for tensor in [loss.detach(), *(p.grad for p in model.parameters())]:
            digest.update(tensor.cpu().numpy().tobytes())
        optimizer.step()
    for tensor in model.state_dict().values():
        digest.update(tensor.cpu().numpy().tobytes())
    print(json.dumps(digest.hexdigest()))


main()
