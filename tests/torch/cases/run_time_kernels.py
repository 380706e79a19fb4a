# SPDX-License-Identifier: Apache-2.0
"""What PyTorch compiles when it first runs: complex operators, torch.jit. Prints JSON."""

import json
import os
import warnings

import torch
from torch import nn

UNARY = (
    "abs angle acos acosh asin asinh atan atanh cos cosh exp expm1 log log2 log10 log1p "
    "sigmoid sin sinh sqrt rsqrt tan tanh reciprocal sgn neg square sum prod mean"
).split()
BINARY = (torch.add, torch.mul, torch.div, torch.sub, torch.pow)


def operators(x):
    yield from (getattr(x, name)() for name in UNARY)
    yield from (function(x, x) for function in BINARY)
    yield from torch._foreach_mul([x, x], 2)
    yield from (torch.addcmul(x, x, x), torch.addcdiv(x, x, x), torch.lerp(x, x, 0.5))
    yield from (x.cumsum(0), x.cumprod(0), x * 2, x**2)


def differing(dtype):
    here = torch.tensor([1 + 2j, 0.5 - 1j, 0.25 + 0.125j], dtype=dtype)
    pairs = zip(operators(here), operators(here.cuda()))
    return [i for i, (a, b) in enumerate(pairs) if not torch.equal(a, b.cpu())]


def scripted():
    net = torch.jit.script(nn.Sequential(nn.Linear(4, 4), nn.ReLU())).cuda()
    for _ in range(4):  # the fuser compiles what it has seen
        net(torch.ones(2, 4, device="cuda")).sum().backward()
    traced = torch.jit.trace(nn.Linear(4, 4).cuda(), torch.ones(2, 4, device="cuda"))
    return [list(traced(torch.ones(3, 4, device="cuda")).shape) for _ in range(4)]


warnings.simplefilter("ignore")
found = {str(dtype): differing(dtype) for dtype in (torch.complex64, torch.complex128)}
found["scripted"] = scripted()
found["peak"] = torch.cuda.max_memory_allocated()
found["cache"] = os.environ.get("USE_PYTORCH_KERNEL_CACHE")
print(json.dumps(found))
