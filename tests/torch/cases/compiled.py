# SPDX-License-Identifier: Apache-2.0
"""torch.compile and Triton kernels of the user's on the simulated device. Prints JSON."""

import json
import os
import sys
import traceback

import torch
from torch import nn
from torch.nn import functional
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

RESULTS = {}
VALUES = os.environ["ACTSWAP_SIM_COMPUTE"] == "values"


def case(function):
    try:
        RESULTS[function.__name__] = function()
    except Exception:
        RESULTS[function.__name__] = traceback.format_exc()
    torch._dynamo.reset()
    return function


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(16, 64), nn.Linear(64, 4)
        self.norm = nn.LayerNorm(64)

    def forward(self, x):
        x = functional.gelu(self.norm(self.first(x)))
        x = functional.dropout(x, 0.2, self.training)
        return self.last(x * x.sigmoid())


def steps(make):
    """Three steps of training; what is left of them."""
    torch.manual_seed(0)
    net = Net().cuda()
    run = make(net)
    optimizer = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9)
    x = torch.randn(8, 16, generator=torch.Generator().manual_seed(1)).cuda()
    kept = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = run(x).square().mean()
        loss.backward()
        optimizer.step()
        kept += [loss.detach().clone(), *(p.grad.clone() for p in net.parameters())]
    kept += list(net.parameters())
    return [t.detach().cpu() for t in kept]


def equal(one, other):
    return [torch.equal(a, b) for a, b in zip(one, other)]


def compiled(**how):
    return equal(steps(lambda net: net), steps(lambda net: torch.compile(net, **how)))


@case
def aot_eager():
    return compiled(backend="aot_eager")


@case
def inductor():
    return compiled()


@case
def reduce_overhead():
    return compiled(mode="reduce-overhead")


@case
def kernels():
    from torch._inductor import metrics

    return metrics.generated_kernel_count


def attention(how):
    torch.manual_seed(2)
    q, k, v = (torch.randn(1, 2, 128, 16).cuda().requires_grad_() for _ in range(3))
    mask = create_block_mask(lambda b, h, i, j: i >= j, 1, 1, 128, 128, "cuda")
    how(q, k, v, block_mask=mask).square().sum().backward()
    return [t.grad.cpu() for t in (q, k, v)]


@case
def flex():
    ours = attention(torch.compile(flex_attention))
    if not VALUES:
        return [list(t.shape) for t in ours]
    right = attention(
        lambda q, k, v, block_mask: functional.scaled_dot_product_attention(
            q, k, v, is_causal=True
        )
    )
    return [float((a - b).abs().max()) for a, b in zip(ours, right)]


@case
def flex_in_a_graph():
    """Captured: what inductor compiles copies nothing from the host."""
    torch.manual_seed(3)
    q = torch.randn(1, 1, 128, 16).cuda()
    run = torch.compile(flex_attention)
    right = run(q, q, q)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = run(q, q, q)
    q.mul_(2)
    graph.replay()
    q.mul_(0.5)
    doubled, half = captured.clone(), run(q, q, q)
    graph.replay()
    return [
        torch.equal(captured, right),
        torch.equal(half, right),
        not doubled.eq(right).all().item(),
    ]


@case
def number_in_a_graph():
    """The same of a number that an operator takes from the host."""
    run = torch.compile(lambda x: torch.where(x > 0, x, torch.tensor(0.5)))
    x = torch.arange(-2.0, 3.0, device="cuda")
    graph = torch.cuda.CUDAGraph()
    run(x)
    with torch.cuda.graph(graph):
        captured = run(x)
    graph.replay()
    return captured.tolist()


@case
def copied_into_a_graph():
    """A script's own copy from the host cannot be captured, as on a card."""
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        torch.tensor(2.0, device="cuda")


@case
def kernel_of_the_user():
    import triton
    from triton import language as tl

    @triton.jit
    def scale_add(x, y, out, n, by, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        inside = at < n
        a = tl.load(x + at, inside)
        b = tl.load(y + at, inside)
        tl.store(out + at, a * by + b, inside)

    x, y = torch.arange(300.0, device="cuda"), torch.ones(300, device="cuda")
    out = torch.zeros(300, device="cuda")
    # Queued and not yet done when the kernel is called, under `late`.
    x.mul_(2)
    scale_add[(triton.cdiv(300, 128),)](x, y, out, 300, 3, BLOCK=128)
    y.fill_(0)
    out.add_(y)
    right = torch.arange(300.0) * 6 + 1
    return torch.equal(out.cpu(), right)


json.dump(RESULTS, sys.stdout)
print()
