# SPDX-License-Identifier: Apache-2.0
"""What the simulated device computes where no CPU kernel of the same name does.

python bodies.py CHECK [ARGUMENT...]   prints the check's result as JSON in its last line
"""

from __future__ import annotations

import json
import resource
import sys
from typing import Any, Callable, Dict, List

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

CUDA = "cuda"
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


def philox() -> Any:
    """Known from real GPUs: torch.manual_seed(0), then ten and five numbers."""
    torch.manual_seed(0)
    uniform = torch.rand(10, device=CUDA)
    torch.manual_seed(0)
    normal = torch.randn(5, device=CUDA)
    return [[round(x, 4) for x in t.tolist()] for t in (uniform, normal)]


SAMPLERS: Dict[str, Callable[[], torch.Tensor]] = {
    "rand": lambda: torch.rand(3000, device=CUDA),
    "randn": lambda: torch.randn(3001, device=CUDA),
    "randn bf16": lambda: torch.randn(100, device=CUDA, dtype=torch.bfloat16),
    "randint": lambda: torch.randint(0, 1000, (100,), device=CUDA),
    "randperm": lambda: torch.randperm(100, device=CUDA),
    "multinomial": lambda: torch.multinomial(torch.ones(100, device=CUDA), 50),
    "bernoulli": lambda: torch.bernoulli(torch.full((100,), 0.5, device=CUDA)),
    "exponential": lambda: torch.empty(100, device=CUDA).exponential_(),
    "dropout": lambda: F.dropout(torch.ones(4096, device=CUDA), 0.5),
    "dropout odd": lambda: F.dropout(torch.ones(4097, device=CUDA), 0.5),
}


def generator() -> Any:
    """By sampler: the same seed gives the same numbers, and each call others."""
    found = {}
    torch.cuda.init()
    before = torch.get_rng_state()
    own = torch.cuda.default_generators[0]
    for name, sample in SAMPLERS.items():
        torch.cuda.manual_seed(3)
        first, offset = sample(), own.get_offset()
        second = sample()
        torch.cuda.manual_seed(3)
        again = sample()
        found[name] = [
            torch.equal(first, again),
            not torch.equal(first, second),
            offset > 0 and own.get_offset() == offset,
        ]
    found["the CPU's generator"] = [torch.equal(before, torch.get_rng_state())]
    return found


def dropout_share() -> Any:
    """Of a large tensor, how much is dropped; and what is kept is scaled."""
    kept = F.dropout(torch.ones(1 << 20, device=CUDA), 0.25)
    return [(kept == 0).float().mean().item(), kept.max().item()]


def recompute() -> Any:
    """Gradients with and without checkpointing, dropout on, as one list of booleans."""
    torch.manual_seed(0)
    layers = [nn.Linear(64, 64), nn.Dropout(0.5), nn.Linear(64, 64), nn.Dropout(0.3)]
    model, x = nn.Sequential(*layers).to(CUDA), torch.randn(4, 64, device=CUDA)

    def attention(t: torch.Tensor) -> torch.Tensor:
        heads = model(t).view(1, 4, 4, 16)
        mixed = F.scaled_dot_product_attention(heads, heads, heads, dropout_p=0.2)
        return mixed.square()

    def gradients(again: bool) -> List[torch.Tensor]:
        torch.cuda.manual_seed(1)
        model.zero_grad()
        y = checkpoint(attention, x, use_reentrant=False) if again else attention(x)
        y.sum().backward()
        return [p.grad.clone() for p in model.parameters() if p.grad is not None]

    return [torch.equal(a, b) for a, b in zip(gradients(False), gradients(True))]


def attend(case: str, dtype: str) -> Any:
    """The largest difference to the CPU of result and gradients, by the largest value."""
    torch.manual_seed(0)
    keys = 20 if case == "longer" else 16
    heads = 2 if case == "grouped" else 4
    query = torch.randn(2, 4, 16, 16).to(DTYPES[dtype])
    key, value = (torch.randn(2, heads, keys, 16).to(DTYPES[dtype]) for _ in "kv")
    mask = torch.randn(1, 1, 16, keys).to(DTYPES[dtype])
    if case == "mask":
        mask = mask > -1
    results = []
    for device in ("cpu", CUDA):
        inputs = [
            t.detach().clone().to(device).requires_grad_() for t in (query, key, value)
        ]
        keywords: Dict[str, Any] = {}
        if case in ("mask", "bias"):
            keywords["attn_mask"] = mask.clone().to(device)
        if case == "bias":
            inputs.append(keywords["attn_mask"].requires_grad_())
        if case in ("causal", "grouped"):
            keywords["is_causal"] = True
        if case == "grouped":
            keywords["enable_gqa"] = True
        y = F.scaled_dot_product_attention(*inputs[:3], **keywords)
        y.float().square().sum().backward()
        results.append([t.detach().cpu().float() for t in (y, *(i.grad for i in inputs))])
    return max(((a - b).abs().max() / a.abs().max()).item() for a, b in zip(*results))


def values() -> Any:
    """Results whose size depends on values."""
    torch.manual_seed(0)
    x = torch.randint(-3, 3, (5, 7))
    calls: List[Callable[[torch.Tensor], Any]] = [
        lambda t: t.nonzero(),
        lambda t: t[t > 0],
        lambda t: torch.where(t > 0),
        lambda t: t.masked_select(t > 0),
        lambda t: t.unique(return_counts=True),
        lambda t: t.unique_consecutive(),
        lambda t: torch.bincount(t.flatten() + 3),
        lambda t: torch.repeat_interleave(t.flatten() + 3),
        lambda t: t.index_put((t > 0,), torch.tensor(9, device=t.device)),
        lambda t: [torch.tensor(torch.equal(t, t.clone() + 1))],
        lambda t: [torch.tensor(torch.equal(t, t.clone()))],
    ]
    found = []
    for call in calls:
        pairs = [call(t) for t in (x, x.to(CUDA))]
        left, right = (p if isinstance(p, (tuple, list)) else [p] for p in pairs)
        found.append(all(torch.equal(a, b.cpu()) for a, b in zip(left, right)))
    return found


def nonzero() -> Any:
    try:
        torch.ones(3, device=CUDA).nonzero()
    except RuntimeError as error:
        return str(error).splitlines()[0]
    return "no error"


def changed_after() -> Any:
    """A CPU number that the program changes after the call that was given it."""
    x, number = torch.ones(4, device=CUDA), torch.tensor(2.0)
    index = torch.tensor([1, 3])
    y, z = x * number, torch.arange(4.0, device=CUDA)[index]
    number.fill_(9)
    index.fill_(0)
    return [y.tolist(), z.tolist()]


def scaler() -> Any:
    """Mixed precision: the scale after an overflow, and that nothing was updated."""
    torch.manual_seed(0)
    model = nn.Linear(4, 4).to(CUDA)
    optimizer = torch.optim.AdamW(model.parameters())
    scaling = torch.amp.GradScaler(CUDA, init_scale=1024.0)
    before = model.weight.detach().clone()
    found = []
    for factor in (1e30, 1.0):
        with torch.autocast(CUDA, torch.float16):
            loss = model(torch.ones(2, 4, device=CUDA)).float().sum() * factor
        scaling.scale(loss * factor).backward()
        scaling.step(optimizer)
        scaling.update()
        optimizer.zero_grad()
        found.append([scaling.get_scale(), torch.equal(before, model.weight)])
    return found


def softmax_widens() -> Any:
    """Half in, fp32 out and back, as autocast has it: against fp32 on the CPU."""
    found = {}
    for name in ("softmax", "log_softmax"):
        function = getattr(torch, name)
        x = torch.randn(3, 5, generator=torch.Generator().manual_seed(0)).half()
        grad = torch.randn(3, 5, generator=torch.Generator().manual_seed(1))
        ours, theirs = x.to(CUDA).requires_grad_(), x.float().requires_grad_()
        result, expected = function(ours, 1, dtype=torch.float32), function(theirs, 1)
        result.backward(grad.to(CUDA))
        expected.backward(grad)
        same = torch.equal(ours.grad.cpu(), theirs.grad.half())
        found[name] = [torch.equal(result.cpu(), expected), same]
    return found


NORMS: Dict[str, Callable[[], nn.Module]] = {
    "batch": lambda: nn.BatchNorm2d(4),
    "batch of rows": lambda: nn.Sequential(nn.Flatten(), nn.BatchNorm1d(36)),
    "instance": lambda: nn.InstanceNorm2d(4, affine=True),
    "group": lambda: nn.GroupNorm(2, 4),
    "layer": lambda: nn.LayerNorm([4, 3, 3]),
    "convolution": lambda: nn.Conv2d(4, 4, 3),
}


def gradients(make: Callable[[], nn.Module], frozen: List[str], device: str) -> Any:
    torch.manual_seed(0)
    layer, x = make(), torch.randn(2, 4, 3, 3)
    layer.requires_grad_(True).to(device)
    for name, parameter in layer.named_parameters():
        parameter.requires_grad_(name.split(".")[-1] not in frozen)
    x = x.to(device).requires_grad_(True)
    layer(x).square().sum().backward()
    found = [x.grad] + [parameter.grad for parameter in layer.parameters()]
    return [None if grad is None else grad.tolist() for grad in found]


def frozen() -> Any:
    """The layers, by frozen parameters, whose gradients are not those of the CPU."""
    return [
        [name, without]
        for name, make in NORMS.items()
        for without in (["weight"], ["bias"], ["weight", "bias"])
        if gradients(make, without, CUDA) != gradients(make, without, "cpu")
    ]


def histc_of_integers() -> Any:
    """The counts of a few integers, which the CPU has no kernel for."""
    x = torch.tensor([0, 3, 7, 7, 29, 100, -1, 101], device=CUDA)
    found = [torch.histc(x.int(), 100, 0, 100).nonzero().flatten().tolist()]
    found.append(torch.histc(x.long(), 4, 0, 0).tolist())
    found.append(torch.histc(torch.full((3,), 5, device=CUDA), 3, 5, 5).tolist())
    return found


LARGE = 16 << 20  # elements: 64 MiB


def host_memory() -> Any:
    """By operator, how much the process grew, in bytes, whose result has its memory."""
    x, half = torch.ones(LARGE, device=CUDA), torch.ones(1, device=CUDA)
    calls: Dict[str, Callable[[], torch.Tensor]] = {
        "add": lambda: x + half,
        "mul": lambda: x * 2,
        "relu": lambda: x.relu(),
        "exp": lambda: x.exp(),
        "gelu": lambda: F.gelu(x),
        "softmax": lambda: x.view(-1, 64).softmax(-1),
        "cat": lambda: torch.cat([x[: LARGE // 2], x[LARGE // 2 :]]),
    }
    torch.zeros(LARGE, device=CUDA)
    torch.cuda.synchronize()
    found = {}
    for name, call in calls.items():
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        call()
        torch.cuda.synchronize()
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        found[name] = (after - before) << 10
    return found


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]](*sys.argv[2:])))
