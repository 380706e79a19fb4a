#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a small GPT on synthetic tokens. Plain PyTorch, nothing else.

Sizes are arguments, so that the same script is a test of seconds and a 7B model:

    python train_gpt.py
    python train_gpt.py --layers 32 --hidden 4096 --heads 32 --vocab 32000 --batch 4 \\
        --sequence 2048 --dtype bfloat16 --attention fused --init device
"""

import argparse
import math

import torch
import torch.nn.functional as F
from torch import nn


class Attention(nn.Module):
    """Causal self-attention with all heads in one projection."""

    def __init__(self, hidden, heads, sequence, dropout, fused):
        super().__init__()
        self.heads = heads
        self.dropout = dropout
        self.fused = fused
        self.project_in = nn.Linear(hidden, 3 * hidden)
        self.project_out = nn.Linear(hidden, hidden)
        if not fused:
            future = torch.ones(sequence, sequence, dtype=torch.bool).triu(1)
            self.register_buffer("future", future, persistent=False)

    def forward(self, x):
        batch, sequence, hidden = x.shape
        query, key, value = (
            part.view(batch, sequence, self.heads, -1).transpose(1, 2)
            for part in self.project_in(x).split(hidden, dim=2)
        )
        mixed = self.mix(query, key, value)
        mixed = mixed.transpose(1, 2).reshape(batch, sequence, hidden)
        return self.project_out(mixed)

    def mix(self, query, key, value):
        dropout = self.dropout if self.training else 0.0
        if self.fused:
            return F.scaled_dot_product_attention(
                query, key, value, dropout_p=dropout, is_causal=True
            )
        sequence = query.shape[2]
        scores = query @ key.transpose(2, 3) / math.sqrt(query.shape[3])
        scores = scores.masked_fill(self.future[:sequence, :sequence], -math.inf)
        return F.dropout(scores.softmax(dim=3), dropout) @ value


class Block(nn.Module):
    """One transformer layer: attention, then a two-layer perceptron."""

    def __init__(self, hidden, heads, sequence, dropout, fused):
        super().__init__()
        self.norm_attention = nn.LayerNorm(hidden)
        self.attention = Attention(hidden, heads, sequence, dropout, fused)
        self.norm_mlp = nn.LayerNorm(hidden)
        self.mlp = nn.Sequential(
            nn.Linear(hidden, 4 * hidden),
            nn.GELU(),
            nn.Linear(4 * hidden, hidden),
            nn.Dropout(dropout),
        )

    def forward(self, x):
        x = x + self.attention(self.norm_attention(x))
        return x + self.mlp(self.norm_mlp(x))


class GPT(nn.Module):
    def __init__(self, options):
        super().__init__()
        hidden, sequence = options.hidden, options.sequence
        self.tokens = nn.Embedding(options.vocab, hidden)
        self.positions = nn.Embedding(sequence, hidden)
        self.blocks = nn.ModuleList(
            Block(
                hidden,
                options.heads,
                sequence,
                options.dropout,
                options.attention == "fused",
            )
            for _ in range(options.layers)
        )
        self.norm = nn.LayerNorm(hidden)
        self.head = nn.Linear(hidden, options.vocab, bias=False)

    def forward(self, tokens, targets):
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.tokens(tokens) + self.positions(positions)
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def make_model(options):
    """On the host first, so that every device starts with the same bits."""
    dtype = getattr(torch, options.dtype)
    torch.manual_seed(options.seed)
    if options.init == "host":
        return GPT(options).to(device=options.device, dtype=dtype)
    torch.set_default_dtype(dtype)
    with torch.device(options.device):
        model = GPT(options)
    torch.set_default_dtype(torch.float32)
    return model


def make_optimizer(options, model):
    if options.optimizer == "sgd":
        return torch.optim.SGD(model.parameters(), lr=options.lr, momentum=0.9)
    return torch.optim.AdamW(
        model.parameters(),
        lr=options.lr,
        foreach=True if options.foreach else None,
        fused=True if options.fused else None,
    )


def make_batch(options, generator):
    """A batch of random walks through the vocabulary, and the same one token later."""
    shape = (options.batch, options.sequence + 1)
    walk = torch.randint(0, 7, shape, generator=generator).cumsum(dim=1)
    tokens = (walk % options.vocab).to(options.device)
    return tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()


def train(options):
    model = make_model(options)
    optimizer = make_optimizer(options, model)
    generator = torch.Generator().manual_seed(options.seed)
    torch.manual_seed(options.seed + 1)
    losses, gradients = [], []

    for step in range(1, options.steps + 1):
        tokens, targets = make_batch(options, generator)
        optimizer.zero_grad()
        loss = model(tokens, targets)
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
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--vocab", type=int, default=1024)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--sequence", type=int, default=256)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--dtype", default="float32", choices=["float32", "bfloat16"])
    parser.add_argument("--attention", default="explicit", choices=["explicit", "fused"])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--init", default="host", choices=["host", "device"])
    parser.add_argument("--optimizer", default="adamw", choices=["adamw", "sgd"])
    parser.add_argument("--foreach", action="store_true", help="AdamW over lists")
    parser.add_argument("--fused", action="store_true", help="AdamW in one kernel")
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save", help="file for losses, gradients and parameters")
    return parser.parse_args()


if __name__ == "__main__":
    train(parse_arguments())
