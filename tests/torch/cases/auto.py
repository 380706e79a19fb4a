# SPDX-License-Identifier: Apache-2.0
"""What mode `auto` computes, what it gives for the rest, and what it refuses.

python auto.py CHECK   prints the check's result as JSON in its last line
"""

from __future__ import annotations

import json
import math
import sys
from typing import Any, Callable, Dict

import torch
import torch.nn.functional as F

CUDA = "cuda"


def large() -> torch.Tensor:
    """Numbers that are not computed: too many of them."""
    return torch.randn(1024, 1024, device=CUDA)


def grouped(x: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
    """Its host code reads where the groups end."""
    groups = torch.ones(3, 1024, 8, device=CUDA)
    return torch._grouped_mm(x, groups, offs=ends.to(torch.int32))


def places() -> Any:
    """Sparse results whose numbers are not computed, where their places are known."""
    x = large()
    at = sparse(torch.tensor([5, 1, 5], device=CUDA), x[:3]).coalesce()
    results = {
        "mask": x.sparse_mask(at),
        "product": at * x,
        "softmax": torch.sparse.softmax(at, 0),
        "rows": at.index_select(0, torch.tensor([1, 2, 5], device=CUDA)),
        "half": x.half().sparse_mask(at.half()),
    }
    return {
        name: [made._indices().tolist(), list(made._values().shape), list(made.shape)]
        for name, made in results.items()
    }


def known() -> Any:
    """Control flow that hangs on integers, masks and scalars, as on the card."""
    x = large()
    labels = torch.arange(1024).remainder(10).to(CUDA)
    mask = torch.ones(512, 512, dtype=torch.bool, device=CUDA).tril()
    lengths = torch.tensor([3, 1, 2], device=CUDA)
    step = torch.zeros((), device=CUDA)
    for _ in range(3):
        step += 1
    return {
        "mask.all": mask.all().item() is False and torch.ones_like(mask).all().item(),
        "mask.sum": int(mask.sum()) == 512 * 513 // 2,
        "nonzero": mask.nonzero().shape[0] == 512 * 513 // 2,
        "unique": labels.unique().tolist() == list(range(10)),
        "bincount": labels.bincount().sum().item() == 1024,
        "cu_seqlens": F.pad(lengths.cumsum(0), (1, 0)).tolist() == [0, 3, 4, 6],
        "max length": lengths.max().item() == 3,
        "repeat_interleave": lengths.repeat_interleave(lengths).numel() == 6,
        "a known mask on unknown numbers": list(x[labels < 3].shape) == [309, 1024],
        "masked_select": x[0].masked_select(labels < 3).numel() == 309,
        "small float": torch.linspace(0, 1, 5, device=CUDA).sum().item() == 2.5,
        "counter": step.item() == 3,
        "grouped product": list(grouped(x, lengths.cumsum(0)).shape) == [1024, 8],
        "topk": labels.float().topk(2).values.tolist() == [9.0, 9.0],
        "tolist of a slice": labels[3:6].tolist() == [3, 4, 5],
        "known places of unknown numbers": sparse(labels, x).coalesce().indices().tolist()
        == [list(range(10))],
    }


def drawn(chances: torch.Tensor) -> torch.Tensor:
    return torch.multinomial(chances, 1)


def seeded(chances: torch.Tensor) -> torch.Tensor:
    torch.manual_seed(3)
    return drawn(chances)


def reads() -> Any:
    """What is read of numbers that are not computed."""
    x = large()
    labels = torch.zeros(1024, dtype=torch.int64, device=CUDA)
    loss = F.cross_entropy(x, labels)
    accuracy = (x.argmax(1) == labels).sum()
    return {
        "loss": loss.item(),
        "finite": math.isfinite(float(loss)),
        "host": x[0, :3].cpu().tolist(),
        "bfloat16": x.bfloat16()[0, :2].cpu().tolist(),
        "print": "1." in str(x) and str(loss) == "tensor(1., device='cuda:0')",
        "accuracy": accuracy.item() == 1024,
        "binary accuracy": ((x[0] > 0) == (labels > 0)).sum().item(),
        "uint8": (x[0] * 255).to(torch.uint8).cpu().sum().item(),
        "isnan": [loss.isnan().item(), x.isnan().any().item(), x.isinf().any().item()],
        "isfinite": [loss.isfinite().item(), x.isfinite().all().item()],
        "validated": torch.distributions.Normal(x, x.exp()).sample().shape[0] == 1024,
        "confusion": x.argmax(1).bincount(minlength=9).shape[0] == 9,
        "those that are finite": list(x[0][~x[0].isnan() & x[0].isfinite()].shape),
        "best so far": bool(loss < math.inf) and not bool(loss > 2),
        "sampled": 0 <= int(torch.multinomial(x.softmax(-1)[0], 1)) < 1024,
        "samples": drawn(x.softmax(-1)).unique().numel() > 500,
        "the same samples": torch.equal(*(seeded(x.softmax(-1)) for _ in range(2))),
    }


def sparse(places: torch.Tensor, numbers: torch.Tensor) -> torch.Tensor:
    return torch.sparse_coo_tensor(
        places[None], numbers, (1024, *numbers.shape[1:]), check_invariants=False
    )


def refused() -> Any:
    """Sizes and decisions by numbers that are not computed: the first line of each."""
    x = large()
    calls: Dict[str, Callable[[], Any]] = {
        "nonzero": lambda: (x > 0).nonzero(),
        "mask": lambda: x[x > 0],
        "masked_select": lambda: x.masked_select(x > 0),
        "unique": lambda: x.round().long().unique(),
        "bincount": lambda: x[0].long().bincount(),
        "repeat_interleave": lambda: x[0].long().repeat_interleave(x[0].long()),
        "sparse": lambda: sparse(x[0].long(), x).coalesce(),
        "an assumed index": lambda: x.argmax(1).unique(),
        "count": lambda: int((x > 0).sum()),
        "decision": lambda: bool((x[0] > 0)[3]),
        "count on the host": lambda: (x > 0).sum().cpu(),
        "inside an operator": lambda: grouped(x, x[0, :3].long().cumsum(0)),
    }
    found = {}
    for name, call in calls.items():
        try:
            found[name] = str(call())
        except RuntimeError as error:
            found[name] = str(error).splitlines()[0]
    return found


def parked() -> Any:
    """What goes to pinned memory and back does not come into values there."""
    x = large().mean(0)
    home = torch.empty(1024, pin_memory=True)
    home.copy_(x, non_blocking=True)
    back = home.to(CUDA, non_blocking=True)
    try:
        (back > 0).nonzero()
        unknown = False
    except RuntimeError:
        unknown = True
    torch.cuda.synchronize()
    home.copy_(torch.arange(1024.0))
    written = home.to(CUDA, non_blocking=True)
    return [unknown, int((written > 1000).sum()) == 23]


def scaler() -> Any:
    """Gradients are taken to be finite: the scale grows, and no step is skipped."""
    model = torch.nn.Linear(1024, 1024, device=CUDA)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaling = torch.amp.GradScaler(CUDA, init_scale=4.0, growth_interval=2)
    scales = []
    for _ in range(4):
        scaling.scale(model(large()).sum()).backward()
        scaling.step(optimizer)
        scaling.update()
        scales.append(scaling.get_scale())
    return scales


def sizes() -> None:
    """A script whose sizes depend on values; `small` of them are computed."""
    count = 16 if sys.argv[2] == "small" else 1024
    x = torch.linspace(-1, 1, count * count, device=CUDA).view(count, count)
    kept = x[x.sum(1) > 0]
    print(len(kept))


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]]()))
