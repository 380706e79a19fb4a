# SPDX-License-Identifier: Apache-2.0
"""torch.func with the adapter's hooks on the stack. Prints JSON."""

import json
import sys

import torch
from torch import func

DEVICE = sys.argv[1]
RESULTS = {}


def cube(x):
    return (x**3).sum()


def apply():
    x = torch.arange(1.0, 4.0).to(DEVICE)
    w = torch.ones(3).to(DEVICE).requires_grad_()
    yield "grad", lambda: func.grad(cube)(x)
    yield "nested grad", lambda: func.grad(lambda y: func.grad(cube)(y).sum())(x)
    yield "vjp", lambda: func.vjp(torch.sin, x)[1](x)[0]
    yield "jvp", lambda: func.jvp(torch.sin, (x,), (x,))[1]
    yield "jacrev", lambda: func.jacrev(torch.sin)(x)
    yield "jacfwd", lambda: func.jacfwd(torch.sin)(x)
    yield "hessian", lambda: func.hessian(cube)(x)
    yield "vmap", lambda: func.vmap(lambda row: row * w * row)(torch.outer(x, x))
    yield "per-sample", lambda: func.vmap(func.grad(cube))(torch.outer(x, x))


for name, run in apply():
    try:
        value = run()
        if value.requires_grad:
            value.sum().backward()
        RESULTS[name] = value.detach().cpu().flatten().tolist()
    except Exception as error:
        RESULTS[name] = f"{type(error).__name__}: {error}"

top = torch._C._autograd._top_saved_tensors_default_hooks(True)
RESULTS["hooks are back"] = top is not None
json.dump(RESULTS, sys.stdout)
print()
