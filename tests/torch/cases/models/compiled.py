# SPDX-License-Identifier: Apache-2.0
"""Programs that are traced or compiled first."""

import torch
import torch.nn.functional as F
from torch import nn

from .dense import WIDTH, Blocks, copying
from .registry import model, train


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
