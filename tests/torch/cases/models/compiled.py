# SPDX-License-Identifier: Apache-2.0
"""Programs that are traced or compiled first."""

import torch
import torch.nn.functional as F
from torch import nn

from .dense import WIDTH, Blocks, copying
from .registry import CASTS, STEPS, model, sgd, train


def compile_on(place, function, **how):
    """As the device's programs do, by inductor if `how` names nothing else.

    The CPU runs what it was given.
    """
    torch.compiler.reset()
    return function if place.is_cpu else torch.compile(function, **how)


@model
def compiled(place):
    torch.compiler.reset()
    copying(place, torch.compile(Blocks(2), backend="aot_eager"))


@model
def compiled_checkpointed(place):
    torch.compiler.reset()

    def run(block, x):
        return torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)

    copying(place, torch.compile(Blocks(2, run=run), backend="aot_eager"))


@model
def compiled_part(place):
    """One function of a model, with sizes that change and a branch on a shape."""
    torch.compiler.reset()

    @torch.compile(backend="aot_eager", dynamic=True)
    def part(x, weight):
        y = x @ weight
        return y.relu() if y.shape[0] > 8 else y.sigmoid()

    net = nn.Linear(WIDTH, WIDTH)

    def loss(step):
        x = place.normal((5, 9, 13)[step], WIDTH)
        return F.mse_loss(part(net(x), net.weight), x)

    train(place, net, loss)


@model(compiled=True)
def compiled_by_inductor(place):
    copying(place, compile_on(place, Blocks(2)))


@model(compiled=True)
def compiled_into_graphs(place):
    """Inductor's own CUDA graphs."""
    copying(place, compile_on(place, Blocks(2), mode="reduce-overhead"))


@model(compiled=True)
def compiled_optimizer(place):
    """The forward and the optimizer's step, each by itself."""
    net = place.put(Blocks(1))
    optimizer = sgd(net.parameters())
    run = compile_on(place, net)
    step = optimizer.step if place.is_cpu else torch.compile(optimizer.step)
    for _ in range(STEPS):
        optimizer.zero_grad()
        x = place.normal(16, WIDTH)
        loss = F.mse_loss(run(x), x)
        loss.backward()
        place.record(loss, net)
        step()
    place.finish(net)


@model(compiled=True)
def compiled_of_any_size(place):
    """Sizes that change at each step, a picture's and a batch's."""
    net = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.GroupNorm(2, 4), nn.SiLU())
    run = compile_on(place, lambda x: net(x).mean((2, 3)), dynamic=True)

    def loss(step):
        count, side = ((3, 8), (5, 10), (4, 9))[step]
        return F.cross_entropy(
            run(place.normal(count, 1, side, side)), place.whole(4, count)
        )

    train(place, net, loss)


@model
def compiled_in_pieces(place):
    """The graph breaks in the middle, at a list of the program's and at a number."""
    net = nn.ModuleList([nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)])
    seen = []

    def forward(x):
        y = net[0](x).tanh()
        torch._dynamo.graph_break()
        seen.append(y.shape[0])
        return net[1](y * len(seen))

    run = compile_on(place, forward, backend="aot_eager")

    def loss(step):
        x = place.normal(8 + step, WIDTH)
        return F.mse_loss(run(x), x)

    train(place, net, loss)


@model(race=CASTS)
def compiled_autocast(place):
    run = compile_on(place, Blocks(2), backend="aot_eager", fullgraph=True)

    def loss(step):
        x = place.normal(16, WIDTH)
        with torch.autocast(place.device, torch.bfloat16):
            y = run(x)
        return F.mse_loss(y.float(), x)

    train(place, run, loss)


@model
def compiled_whole_loss(place):
    """What is compiled returns the loss and reads a buffer that it changes."""

    class Centred(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = Blocks(1)
            self.register_buffer("centre", torch.zeros(WIDTH))

        def forward(self, x):
            y = self.net(x)
            self.centre.lerp_(y.detach().mean(0), 0.1)
            return F.smooth_l1_loss(y - self.centre, x)

    net = place.put(Centred())
    run = compile_on(place, net, backend="aot_eager", fullgraph=True)
    train(place, net, lambda step: run(place.normal(16, WIDTH)))


@model
def scripted(place):
    """Of layers that have run as a list's before, so that their class is wrapped."""
    plain = place.put(nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)))
    plain(place.normal(2, WIDTH))
    net = torch.jit.script(
        nn.Sequential(nn.Linear(WIDTH, 64), nn.ReLU(), nn.Linear(64, WIDTH))
    )
    copying(place, net)


@model
def traced(place):
    layers = nn.Sequential(nn.Linear(WIDTH, 64), nn.GELU(), nn.Linear(64, WIDTH))
    copying(place, torch.jit.trace(layers, torch.randn(64, WIDTH)))


@model(bound=2e-6, why="on the CPU by the formula: it has no backward there")
def flexible_attention(place):
    """flex_attention, not compiled: a mask and a score by functions."""
    from torch.nn.attention.flex_attention import flex_attention

    net = nn.Linear(WIDTH, 3 * WIDTH)

    def score(s, batch, head, query, key):
        return torch.where(query >= key, s + 0.1 * (key - query), -float("inf"))

    def mix(query, key, value):
        if not place.is_cpu:
            return flex_attention(query, key, value, score_mod=score)
        line = torch.arange(8)
        scores = query @ key.mT / query.shape[-1] ** 0.5
        return score(scores, 0, 0, line[:, None], line).softmax(-1) @ value

    def loss(step):
        x = place.normal(2, 8, WIDTH)
        parts = net(x).unflatten(2, (3, 2, -1)).permute(2, 0, 3, 1, 4)
        return F.mse_loss(mix(*parts.unbind()).transpose(1, 2).flatten(2), x)

    train(place, net, loss)
