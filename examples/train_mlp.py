#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a residual MLP to copy its input. Plain PyTorch, nothing else."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn


class Layer(nn.Module):
    def __init__(self, width, dropout):
        super().__init__()
        self.wide = nn.Linear(width, 4 * width)
        self.narrow = nn.Linear(4 * width, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        return x + self.dropout(self.narrow(torch.relu(self.wide(x))))


class MLP(nn.Module):
    def __init__(self, width, layers, dropout):
        super().__init__()
        self.layers = nn.ModuleList(Layer(width, dropout) for _ in range(layers))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def train(options):
    torch.manual_seed(options.seed)
    model = MLP(options.width, options.layers, options.dropout).to(options.device)
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=options.lr, foreach=True if options.foreach else None
    )
    generator = torch.Generator().manual_seed(options.seed)
    losses, gradients = [], []

    for step in range(1, options.steps + 1):
        x = torch.randn(options.batch, options.width, generator=generator)
        x = x.to(options.device)
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), x)
        loss.backward()
        if options.save:
            gradients.append([p.grad.cpu() for p in model.parameters()])
        optimizer.step()
        losses.append(loss.item())
        print(f"step {step} loss {losses[-1]:.6f}", flush=True)

    if options.save:
        parameters = [p.detach().cpu() for p in model.parameters()]
        torch.save(
            {"losses": losses, "gradients": gradients, "parameters": parameters},
            options.save,
        )


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--batch", type=int, default=2048)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--foreach", action="store_true", help="AdamW over lists")
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save", help="file for losses, gradients and parameters")
    return parser.parse_args()


if __name__ == "__main__":
    train(parse_arguments())
