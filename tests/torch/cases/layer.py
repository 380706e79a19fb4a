# SPDX-License-Identifier: Apache-2.0
"""The layer whose activations Korthikanti et al. count (arXiv 2205.05198, section 4).

An operator a line, so that a report's call sites are its operators. Run with the sizes:

    layer.py LAYERS HIDDEN HEADS BATCH SEQUENCE DTYPE
"""

import math
import sys

import torch
import torch.nn.functional as F
from torch import nn

DROPOUT = 0.1


class Layer(nn.Module):
    def __init__(self, hidden: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm_attention = nn.LayerNorm(hidden)
        self.query = nn.Linear(hidden, hidden)
        self.key = nn.Linear(hidden, hidden)
        self.value = nn.Linear(hidden, hidden)
        self.project = nn.Linear(hidden, hidden)
        self.norm_mlp = nn.LayerNorm(hidden)
        self.up = nn.Linear(hidden, 4 * hidden)
        self.down = nn.Linear(4 * hidden, hidden)

    def split(self, x: torch.Tensor) -> torch.Tensor:
        batch, sequence, _ = x.shape
        return x.view(batch, sequence, self.heads, -1).transpose(1, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        normed = self.norm_attention(x)
        query = self.query(normed)
        key = self.key(normed)
        value = self.value(normed)
        query, key, value = (self.split(part) for part in (query, key, value))
        scores = query @ key.transpose(2, 3)
        scores = scores / math.sqrt(query.shape[3])
        shares = F.softmax(scores, dim=3)
        shares = F.dropout(shares, DROPOUT)
        mixed = shares @ value
        mixed = mixed.transpose(1, 2).reshape(x.shape)
        mixed = self.project(mixed)
        x = x + F.dropout(mixed, DROPOUT)
        normed = self.norm_mlp(x)
        wide = self.up(normed)
        wide = F.gelu(wide)
        narrow = self.down(wide)
        return x + F.dropout(narrow, DROPOUT)


def main() -> None:
    layers, hidden, heads, batch, sequence = map(int, sys.argv[1:6])
    with torch.device("cuda"):
        torch.set_default_dtype(getattr(torch, sys.argv[6]))
        model = nn.ModuleList(Layer(hidden, heads) for _ in range(layers))
        x = torch.empty(batch, sequence, hidden).requires_grad_()
    y = x.clone()  # so that the first layer, too, saves what a layer made
    for layer in model:
        y = layer(y)
    # More than any operator's workspace for a moment: the peak is here, with all saved.
    torch.empty(64 << 30, dtype=torch.uint8, device="cuda")
    y.sum().backward()


if __name__ == "__main__":
    main()
