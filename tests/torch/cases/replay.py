# SPDX-License-Identifier: Apache-2.0
"""Captured and replayed training beside the same steps without a graph. Prints JSON."""

import gc
import json
import sys
import traceback

import torch
from torch import nn
from torch.nn import functional

RESULTS = {}
WARM, STEPS = 3, 4


def case(function):
    try:
        RESULTS[function.__name__] = function()
    except Exception:
        RESULTS[function.__name__] = traceback.format_exc()
    return function


class Net(nn.Module):
    """Convolution, norms with buffers, attention, dropout."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.GELU())
        self.project = nn.Linear(36, 32)
        self.qkv = nn.Linear(32, 96)
        self.norm = nn.LayerNorm(32)
        self.drop = nn.Dropout(0.2)
        self.head = nn.Linear(32, 5)

    def forward(self, x):
        x = self.project(self.stem(x).flatten(2))
        q, k, v = self.qkv(self.norm(x)).unflatten(2, (2, 48)).transpose(1, 2).chunk(3, 3)
        x = x + functional.scaled_dot_product_attention(
            q, k, v, dropout_p=0.1, is_causal=True
        ).transpose(1, 2).flatten(2)
        return self.head(self.drop(x).mean(1))


def data(count):
    made = torch.Generator().manual_seed(5)
    images = [torch.randn(4, 3, 8, 8, generator=made) for _ in range(count)]
    labels = [torch.randint(5, (4,), generator=made) for _ in range(count)]
    return [(x.cuda(), y.cuda()) for x, y in zip(images, labels)]


class Training:
    def __init__(self, optimizer, autocast=False):
        torch.manual_seed(0)
        self.net = Net().cuda()
        self.optimizer = optimizer(self.net.parameters())
        self.autocast = autocast
        self.x, self.y = (torch.empty_like(t) for t in data(1)[0])

    def step(self):
        self.optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", torch.bfloat16, enabled=self.autocast):
            loss = functional.cross_entropy(self.net(self.x), self.y)
        loss.backward()
        self.optimizer.step()
        return loss

    def feed(self, batch):
        self.x.copy_(batch[0])
        self.y.copy_(batch[1])

    def state(self, losses):
        tensors = {**self.net.state_dict()}
        for i, p in enumerate(self.net.parameters()):
            tensors[f"gradient{i}"] = p.grad
            for name, value in self.optimizer.state[p].items():
                tensors[f"{name}{i}"] = torch.as_tensor(value)
        tensors["losses"] = torch.stack(losses)
        tensors["generator"] = torch.cuda.get_rng_state()
        return {name: t.detach().cpu().clone() for name, t in tensors.items()}


def train(captured, **how):
    training = Training(**how)
    batches = data(WARM + STEPS)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for batch in batches[:WARM]:
            training.feed(batch)
            training.step()
    torch.cuda.current_stream().wait_stream(stream)
    step = training.step
    if captured:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            loss = training.step()
        step = lambda: graph.replay() or loss  # noqa: E731
    losses = []
    for batch in batches[WARM:]:
        training.feed(batch)
        losses.append(step().detach().clone())
    return training.state(losses)


def differing(one, other):
    assert one.keys() == other.keys()
    return [name for name in one if not torch.equal(one[name], other[name])]


@case
def whole_steps():
    def adamw(p):
        return torch.optim.AdamW(p, 1e-2, capturable=True)

    def fused(p):
        return torch.optim.AdamW(p, 1e-2, capturable=True, fused=True)

    def sgd(p):
        return torch.optim.SGD(p, 1e-2, momentum=0.9)

    ways = {
        "adamw": dict(optimizer=adamw),
        "fused": dict(optimizer=fused),
        "sgd": dict(optimizer=sgd),
        "autocast": dict(optimizer=adamw, autocast=True),
    }
    found = {}
    for name, how in ways.items():
        eager = train(False, **how)
        moved = len(eager["losses"].unique())
        found[name] = [differing(eager, train(True, **how)), moved]
    return found


@case
def graphed_callables():
    def run(graphed):
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 2)).cuda()
        if graphed:
            example = torch.zeros(4, 8, device="cuda", requires_grad=True)
            net = torch.cuda.make_graphed_callables(net, (example,))
        out = []
        for i in range(3):
            net.zero_grad(set_to_none=True)
            x = torch.full((4, 8), i / 7, device="cuda", requires_grad=True)
            net(x).square().sum().backward()
            out += [x.grad.cpu(), *(p.grad.cpu().clone() for p in net.parameters())]
        return out

    return [torch.equal(a, b) for a, b in zip(run(False), run(True))]


def draws(shape, generator=None):
    """One of each kind that takes numbers from the device's generator."""
    base = torch.ones(shape, device="cuda")
    return [
        torch.rand(shape, device="cuda", generator=generator),
        torch.randn(shape, device="cuda", generator=generator),
        torch.bernoulli(base / 2, generator=generator),
        base.clone().exponential_(generator=generator),
        torch.randint(1000, shape, device="cuda", generator=generator),
        torch.randperm(100, device="cuda", generator=generator),
        functional.dropout(base, 0.3),
        torch.multinomial(base.flatten(), 5, generator=generator),
    ]


@case
def numbers_of_each_replay():
    def run(captured, own):
        generator = torch.Generator("cuda") if own else None
        torch.cuda.manual_seed(3)
        if own:
            generator.manual_seed(4)
        out = []
        graph = torch.cuda.CUDAGraph()
        if captured:
            if own:
                graph.register_generator_state(generator)
            with torch.cuda.graph(graph):
                drawn = draws((5, 7), generator)
        for _ in range(3):
            if captured:
                graph.replay()
            else:
                drawn = draws((5, 7), generator)
            out += [t.cpu() for t in drawn]
            out.append(torch.rand(3, device="cuda").cpu())
        return out

    return {
        name: [torch.equal(a, b) for a, b in zip(run(False, own), run(True, own))]
        for name, own in [("default", False), ("own", True)]
    }


@case
def streams_within():
    torch.manual_seed(0)
    side = torch.cuda.Stream()
    x = torch.zeros(64, 64, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        a = x * 2
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            b = a @ a
        c = a + 1
        torch.cuda.current_stream().wait_stream(side)
        out = b + c
    x.copy_(torch.randn(64, 64))
    graph.replay()
    right = (x.cpu() * 2) @ (x.cpu() * 2) + (x.cpu() * 2 + 1)
    return torch.equal(out.cpu(), right)


@case
def pools():
    gc.collect()
    torch.cuda.empty_cache()
    before = torch.cuda.memory_reserved()
    pool = torch.cuda.graph_pool_handle()
    first, second = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
    x = torch.ones(1 << 20, device="cuda")
    with torch.cuda.graph(first, pool=pool):
        y = x + 1
    with torch.cuda.graph(second, pool=pool):
        z = y * 3
    first.replay()
    second.replay()
    shared = sum(
        segment["total_size"]
        for segment in torch.cuda.memory_snapshot()
        if tuple(segment["segment_pool_id"]) == tuple(first.pool())
    )
    right = z.cpu().unique().tolist()
    own = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(own):
        kept = torch.ones(1 << 20, device="cuda")
    inside = sum(s["allocated_size"] for s in own.snapshot())
    del y, z, first, second, x, kept, own
    torch.cuda.empty_cache()
    left = torch.cuda.memory_reserved() - before
    return {"value": right, "shared": shared, "inside": inside, "left": left}


@case
def pinned_copies_are_in_it():
    host = torch.zeros(5).pin_memory()
    back = torch.zeros(5).pin_memory()
    device = torch.zeros(5, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        device.copy_(host, non_blocking=True)
        device.mul_(2)
        back.copy_(device, non_blocking=True)
    seen = []
    for i in range(3):
        host.fill_(i)
        graph.replay()
        torch.cuda.synchronize()
        seen.append(back[0].item())
    return seen


@case
def a_value_is_not_to_be_had_in_a_capture():
    x = torch.ones(3, device="cuda")
    said = []
    for ask in (lambda: x.sum().item(), lambda: x.nonzero(), lambda: x.cpu()):
        try:
            with torch.cuda.graph(torch.cuda.CUDAGraph()):
                ask()
            said.append("nothing was raised")
        except Exception as error:
            said.append(str(error).splitlines()[0])
    torch.cuda.synchronize()
    return {"said": said, "after": (x + 1).sum().item()}


json.dump(RESULTS, sys.stdout)
print()
