# SPDX-License-Identifier: Apache-2.0
"""Two steps of layers that need cuDNN or have no CPU kernel, for their allocations."""

import torch
from torch import nn

torch.manual_seed(0)
image = torch.randn(2, 3, 8, 8, device="cuda")
words = torch.randn(6, 4, 5, device="cuda")
layers = nn.ModuleDict(
    {
        "lstm": nn.LSTM(5, 8, 2, dropout=0.5, bidirectional=True),
        "gru": nn.GRU(16, 8, 2, bias=False),
        "cell": nn.LSTMCell(8, 8),
        "table": nn.Embedding(10, 5, sparse=True),
        "norm": nn.BatchNorm2d(3),
    }
).cuda()
steps = torch.optim.SGD(layers.parameters(), lr=0.1)

for _ in range(2):
    with torch.autocast("cuda", torch.bfloat16):
        mixed, _ = layers["lstm"](words)
    hidden, _ = layers["gru"](mixed.float())
    state, _ = layers["cell"](hidden[-1])
    turned = nn.functional.affine_grid(state[:2, :6].view(2, 2, 3), [2, 3, 8, 8], True)
    seen = nn.functional.grid_sample(layers["norm"](image), turned, align_corners=True)
    told = nn.functional.ctc_loss(
        hidden.log_softmax(2), torch.ones(8, dtype=torch.int32), (6,) * 4, (2,) * 4
    )
    looked = layers["table"](torch.arange(4, device="cuda")).sum()
    (seen.sum() + told + looked).backward()
    steps.step()
    steps.zero_grad()
