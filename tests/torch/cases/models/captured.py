# SPDX-License-Identifier: Apache-2.0
"""Steps captured into CUDA graphs and replayed; the CPU runs them as they are."""

import contextlib

import torch
import torch.nn.functional as F
from torch import nn, optim

from .dense import WIDTH, Block, Blocks
from .registry import DRAWS, STEPS, THREADS, model, sgd

ROWS = 16
WARM = 2  # steps before the capture


def aside(place):
    """A stream of its own, as PyTorch asks for what comes before a capture."""

    @contextlib.contextmanager
    def run():
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            yield
        torch.cuda.current_stream().wait_stream(stream)

    return contextlib.nullcontext() if place.is_cpu else run()


def captured(place, body, pool=None):
    """A function that does what body() does, and gives what it gave."""
    if place.is_cpu:
        return body
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=pool):
        given = body()

    def replay():
        graph.replay()
        return given

    replay.graph = graph
    return replay


def in_graphs(place, net, step, stepping=None):
    """The whole of step(x), given gradients to fill, is captured, then replayed."""
    x = torch.zeros(ROWS, WIDTH, device=place.device)
    with aside(place):
        for _ in range(WARM):
            x.copy_(place.normal(ROWS, WIDTH))
            net.zero_grad(set_to_none=True)
            step(x)
    net.zero_grad(set_to_none=True)

    def again():
        if place.is_cpu:
            net.zero_grad(set_to_none=True)
        return step(x)

    replay = captured(place, again)
    for _ in range(STEPS):
        x.copy_(place.normal(ROWS, WIDTH))
        loss = replay()
        if stepping:
            stepping()
        place.record(loss, net)
    place.finish(net)


def whole(place, net, optimizer):
    """Forward, backward and the optimizer's step in one graph."""
    place.put(net)
    stepping = optimizer(net.parameters())

    def step(x):
        loss = F.mse_loss(net(x), x)
        loss.backward()
        stepping.step()
        return loss

    in_graphs(place, net, step)


@model
def captured_step(place):
    whole(place, Blocks(2), sgd)


@model(bound=2e-4, why="1 - 0.999 ** step in fp32 tensors instead of Python's doubles")
def captured_adamw(place):
    capturable = not place.is_cpu
    whole(place, Blocks(2), lambda p: optim.AdamW(p, capturable=capturable))


@model
def captured_convolution(place):
    class Picture(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.Sequential(
                *(nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU()),
                *(nn.MaxPool2d(2), nn.Flatten(), nn.Linear(4 * 8, WIDTH)),
            )

        def forward(self, x):
            return self.layers(x.view(-1, 1, 4, 8))

    whole(place, Picture(), sgd)


@model
def captured_language(place):
    """Words, causal attention, and their loss, by static integers."""
    words, body = nn.Embedding(40, WIDTH), Block()
    mix, head = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, 40)
    net = place.put(nn.ModuleList([words, body, mix, head]))
    stepping = sgd(net.parameters())
    text = torch.zeros(2, 9, dtype=torch.long, device=place.device)

    def step(_):  # what it is given is not text
        y = words(text[:, :-1])
        query, key, value = mix(y).chunk(3, 2)
        later = torch.ones(8, 8, dtype=torch.bool, device=place.device).triu(1)
        scores = (query @ key.mT / WIDTH**0.5).masked_fill(later, -float("inf"))
        y = head(body(y + scores.softmax(2) @ value))
        loss = F.cross_entropy(y.flatten(0, 1), text[:, 1:].flatten())
        loss.backward()
        stepping.step()
        text.copy_(text.roll(1, 1))
        return loss

    text.copy_(place.whole(40, 2, 9))
    in_graphs(place, net, step)


@model
def captured_autocast(place):
    """Forward and backward of half precision are captured; the scaler steps outside."""
    net = place.put(Blocks(2))
    optimizer = sgd(net.parameters())
    scaler = torch.amp.GradScaler(place.device, init_scale=64.0, growth_interval=2)

    def step(x):
        with torch.autocast(place.device, torch.float16, cache_enabled=False):
            loss = F.mse_loss(net(x).float(), x)
        scaler.scale(loss).backward()
        return loss

    def stepping():
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(net.parameters(), 0.1)
        scaler.step(optimizer)
        scaler.update()

    in_graphs(place, net, step, stepping)


@model(race=DRAWS)
def captured_dropout(place):
    """Each replay draws other numbers: the mask is a result of the graph, too."""
    net = place.put(nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh(), Block()))
    optimizer = sgd(net.parameters())
    x, ones = torch.zeros(2, ROWS, WIDTH, device=place.device)
    ones.fill_(1)

    def step():
        mask = place.draw(None) if place.is_cpu else F.dropout(ones, 0.5)
        net.zero_grad(set_to_none=place.is_cpu)
        loss = F.mse_loss(net(x * mask), x)
        loss.backward()
        return loss, mask

    def keep(mask):
        if not place.is_cpu:
            place.draw(mask.clone)

    with aside(place):
        for _ in range(WARM):
            x.copy_(place.normal(ROWS, WIDTH))
            _, mask = step()
            keep(mask)
    replay = captured(place, step)
    for _ in range(STEPS):
        x.copy_(place.normal(ROWS, WIDTH))
        loss, mask = replay()
        keep(mask)
        place.record(loss, net)
        optimizer.step()
    place.finish(net)


@model
def captured_sizes(place):
    """A graph for each length in one pool, gradients added up over them."""
    net = place.put(Blocks(2))
    optimizer = sgd(net.parameters())
    for parameter in net.parameters():
        parameter.grad = torch.zeros_like(parameter)
    steps, inputs, pool = {}, {}, None
    for rows in (16, 8, 4):
        x = inputs[rows] = torch.zeros(rows, WIDTH, device=place.device)

        def step(x=x):
            loss = F.mse_loss(net(x), x)
            loss.backward()
            return loss

        with aside(place):
            step()
        steps[rows] = captured(place, step, pool)
        pool = pool or (None if place.is_cpu else steps[rows].graph.pool())
    for _ in range(STEPS):
        optimizer.zero_grad(set_to_none=False)
        for rows, replay in steps.items():
            inputs[rows].copy_(place.normal(rows, WIDTH))
            loss = replay()
        place.record(loss, net)
        optimizer.step()
    place.finish(net)


@model(race=THREADS)
def captured_part(place):
    """torch.cuda.make_graphed_callables of two of a model's parts, the rest eager."""
    first, last = place.put(Blocks(2), nn.Linear(WIDTH, 3))
    net = nn.ModuleList([first, nn.Linear(WIDTH, WIDTH).to(place.device), last])
    sample = torch.zeros(ROWS, WIDTH, device=place.device)
    if not place.is_cpu:
        given = sample.clone().requires_grad_()
        first, last = torch.cuda.make_graphed_callables(
            (first, last), ((sample,), (given,))
        )
    optimizer = sgd(net.parameters())
    for _ in range(STEPS):
        optimizer.zero_grad()
        y = F.relu(net[1](first(place.normal(ROWS, WIDTH))))
        loss = F.cross_entropy(last(y), place.whole(3, ROWS))
        loss.backward()
        place.record(loss, net)
        optimizer.step()
    place.finish(net)


@model
def captured_inference(place):
    """Trained eagerly; between the steps a graph says what the parameters give now."""
    net = place.put(Blocks(2))
    optimizer = sgd(net.parameters())
    x = place.normal(ROWS, WIDTH)

    def look():
        with torch.no_grad():
            return F.mse_loss(net(x), x)

    with aside(place):
        look()
    replay = captured(place, look)
    for _ in range(STEPS):
        optimizer.zero_grad()
        F.mse_loss(net(x), x).backward()
        optimizer.step()
        place.record(replay(), net)
    place.finish(net)
