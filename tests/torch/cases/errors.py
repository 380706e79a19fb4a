# SPDX-License-Identifier: Apache-2.0
"""Calls that PyTorch refuses.

python errors.py database   the database's wrong calls: how many there are, and those at
                            which the device raises something else than the CPU
python errors.py calls      each call's exception and the first line of its message
python errors.py values     exceptions on both, at calls with numbers that the CPU refuses
python errors.py later      what a program sees of one that is found when its work is done
All as JSON in the last line.
"""

from __future__ import annotations

import json
import sys
import warnings
from typing import Any, Callable, Dict, List, Optional

import torch
import torch.nn.functional as F
from op_calls import database
from survey import error_outcome, raised
from torch import nn


def wrong_calls() -> Any:
    found: List[List[Optional[str]]] = []
    count = 0
    for entry in database():
        if entry.error_inputs_func is None:
            continue
        for wrong in entry.error_inputs("cuda"):
            count += 1
            outcome = error_outcome(entry, wrong)
            if outcome != "equal":
                found.append([entry.name, outcome])
    return [count, found]


def convolve(**settings: Any) -> Callable[[], Any]:
    x, weight = torch.ones(2, 3, 8, 8, device="cuda"), torch.ones(4, 3, 3, 3)
    return lambda: F.conv2d(x, weight.cuda(), **settings)


def calls() -> Dict[str, Callable[[], Any]]:
    x, rows = torch.ones(2, 3, 8, 8, device="cuda"), torch.ones(5, 2, 3, device="cuda")
    square, mask = torch.eye(3, device="cuda"), torch.ones(3, 3, dtype=torch.bool)
    return {
        "stride": convolve(stride=0),
        "dilation": convolve(dilation=0),
        "padding": convolve(padding=-1),
        "groups": convolve(groups=2),
        "kernel": lambda: F.conv2d(x, torch.ones(4, 3, 9, 9, device="cuda")),
        "types": lambda: F.conv2d(x, torch.ones(4, 3, 3, 3, device="cuda").half()),
        "fill": lambda: square.masked_fill_(mask.cuda(), torch.ones(1, device="cuda")),
        "convolution on the host": lambda: nn.Conv2d(3, 4, 3)(x),
        "bias on the host": convolve(bias=torch.ones(4)),
        "norm on the host": lambda: nn.BatchNorm2d(3)(x),
        "lstm on the host": lambda: nn.LSTM(3, 4)(rows),
        "state on the host": lambda: nn.GRU(3, 4).cuda()(rows, torch.ones(1, 2, 4)),
        "right side on the host": lambda: torch.linalg.solve(square, torch.ones(3)),
        "mask on the host": lambda: square.masked_fill_(mask, square[0, 0]),
    }


def messages() -> Any:
    found = {}
    for name, call in calls().items():
        error = raised(call)
        found[name] = [type(error).__name__, str(error).splitlines()[0]]
    return found


def drawn(device: str) -> Dict[str, Callable[[], Any]]:
    def t(*numbers: float) -> torch.Tensor:
        return torch.tensor(numbers, dtype=torch.float32, device=device)

    return {
        "multinomial": lambda: torch.multinomial(t(-1, 2), 1),
        "multinomial again": lambda: torch.multinomial(t(float("nan"), 2), 3, True),
        "multinomial of nothing": lambda: torch.multinomial(t(0, 0), 1),
        "bernoulli": lambda: torch.bernoulli(t(0.5, 2)),
        "bernoulli_": lambda: t(1, 1).bernoulli_(t(-1, 0)),
        "normal": lambda: torch.normal(0.0, t(1, -1)),
        "poisson": lambda: torch.poisson(t(-1)),
        "embedding": lambda: F.embedding(t(9).long(), t(0, 1).view(2, 1)),
        "gather": lambda: torch.gather(t(0, 1), 0, t(5).long()),
        "cross entropy": lambda: F.cross_entropy(t(0, 1).view(1, 2), t(7).long()),
    }


def values() -> Any:
    on_device = drawn("cuda")
    return {
        name: [type(raised(call)).__name__, type(raised(on_device[name])).__name__]
        for name, call in drawn("cpu").items()
    }


def seen(call: Callable[[], Any]) -> List[str]:
    try:
        return ["nothing", str(call())]
    except Exception as error:
        return [type(error).__name__, str(error).splitlines()[0]]


def later() -> Any:
    table = torch.ones(4, 3, device="cuda", requires_grad=True)
    before, kept = torch.ones(3, device="cuda"), torch.zeros(3).pin_memory()
    torch.cuda.synchronize()
    rows = F.embedding(torch.tensor([1, 7], device="cuda"), table)  # the wrong line
    before.add_(1)
    found = {"the next calls": seen(lambda: (rows * 2).shape)}
    found["synchronize"] = seen(torch.cuda.synchronize)
    found["again"] = seen(torch.cuda.synchronize)
    found["a number"] = seen(lambda: before.sum().item())
    found["a copy"] = seen(lambda: kept.copy_(before, non_blocking=True))
    found["more memory"] = seen(lambda: torch.ones(1 << 28, device="cuda"))
    found["the host"] = seen(lambda: torch.ones(2).sum().item())
    return found


WHICH = {"database": wrong_calls, "calls": messages, "values": values, "later": later}

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(json.dumps(WHICH[sys.argv[1]]()))
