# SPDX-License-Identifier: Apache-2.0
"""Saves tensors of many kinds, asked in C and then in Python: what is moved of them and
the gradients."""

import hashlib
import json
from typing import Any, Dict

import torch

from actswap_torch import _pack


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        out = x * 2
        ctx.save_for_backward(x, out, x[0])
        return out

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        x, out, row = ctx.saved_tensors
        return grad * 2 + 0 * (x + out + row)


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(64, 64)
        self.lstm = torch.nn.LSTM(64, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.linear(x).exp()
        a, b = Twice.apply(x).sigmoid().chunk(2, dim=1)
        x = torch.cat([b.t().contiguous().t().tanh(), a.double().exp().float()], 1)
        x = x + x[:1].expand_as(x).sin() + x[:0].exp().sum()
        x = (x.to(torch.complex64) * 1j).conj().mul(2 + 1j).abs()
        x, _ = self.lstm(x.bfloat16().float().unsqueeze(0))
        y = x.sigmoid()
        with torch.no_grad():
            y.detach().view(-1)[::3].clone().mul_(2)
        return y.pow(2).relu_().sum() + torch.stack([y.mean(), y.var()]).prod()


def run() -> Dict[str, Any]:
    torch.manual_seed(0)
    net = Net().cuda()
    before = _pack.stats()
    seen = hashlib.sha256()
    for _ in range(2):
        net.zero_grad()
        net(torch.randn(32, 64, device="cuda")).backward()
        for parameter in net.parameters():
            assert parameter.grad is not None
            seen.update(parameter.grad.cpu().numpy().tobytes())
    after = _pack.stats()
    moved = {key: after[key] - before[key] for key in ("out_bytes", "in_bytes")}
    return {"gradients": seen.hexdigest(), "pages": after["pages"], **moved}


def modified() -> str:
    x = torch.ones(64, 64, device="cuda", requires_grad=True)
    y = x.exp()
    y.add_(1)
    try:
        y.sum().backward()
    except RuntimeError as error:
        return str(error)
    return ""


said = {"C": run(), "words": modified()}
said["proven"] = _pack.in_python()
said.update({"Python": run(), "words in Python": modified()})
print(json.dumps(said))
