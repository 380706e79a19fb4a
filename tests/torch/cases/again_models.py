# SPDX-License-Identifier: Apache-2.0
"""Models whose blocks are not simply run again."""

import collections
import dataclasses
import random
from typing import Any, Callable, Dict

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

WIDTH, BATCH, BLOCKS, STEPS = 16, 64, 3, 3  # an input is 4 KiB
KINDS: Dict[str, Callable] = {}
calls = 0  # of blocks that count in a global
drawn = np.random.default_rng(5)


def kind(maker: Callable) -> Callable:
    KINDS[maker.__name__] = maker
    return maker


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(WIDTH, 2 * WIDTH)
        self.down = nn.Linear(2 * WIDTH, WIDTH)

    def body(self, x: Any) -> Any:
        return x + self.down(torch.relu(self.up(x)).square())

    def forward(self, x: Any) -> Any:
        return self.body(x)


class Model(nn.Module):
    def __init__(self, make: Callable) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(make() for _ in range(BLOCKS))
        self.head = nn.Linear(WIDTH, 1)

    def forward(self, x: Any) -> Any:
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def model_of(block: Any, name: str, **more: Any) -> nn.Module:
    """A class of its own, whose name is in the report."""
    return type(name, (Model,), more)(block)


def block_of(name: str, forward: Callable, **more: Any) -> nn.Module:
    return model_of(type(name, (Block,), {"forward": forward, **more}), name + "Model")


@kind
def plain() -> Any:
    return block_of("Plain", lambda self, x: self.body(x))


@kind
def python_random() -> Any:
    return block_of("PythonRandom", lambda self, x: self.body(x * random.random()))


@kind
def numpy_random() -> Any:
    return block_of("NumpyRandom", lambda self, x: self.body(x * np.random.rand()))


@kind
def own_generator() -> Any:
    class OwnGenerator(Block):
        def __init__(self) -> None:
            super().__init__()
            self.generator = torch.Generator("cuda")

        def forward(self, x: Any) -> Any:
            noise = torch.empty_like(x).uniform_(generator=self.generator)
            return self.body(x * noise)

    return model_of(OwnGenerator, "OwnGeneratorModel")


@kind
def global_generator() -> Any:
    return block_of("GlobalGenerator", lambda self, x: self.body(x * drawn.random()))


@kind
def dropout() -> Any:
    return block_of("Dropout", lambda self, x: F.dropout(self.body(x), 0.3))


@kind
def counter() -> Any:
    class Counter(Block):
        def __init__(self) -> None:
            super().__init__()
            self.calls, self.seen = 0, []

        def forward(self, x: Any) -> Any:
            self.calls += 1
            self.seen.append(self.calls)
            return self.body(x) / (1 + self.calls + len(self.seen))

    model = model_of(Counter, "CounterModel")
    model.left = lambda: [(b.calls, b.seen) for b in model.blocks]
    return model


@kind
def global_counter() -> Any:
    def forward(self: Any, x: Any) -> Any:
        global calls
        calls += 1
        return self.body(x) / calls

    model = block_of("GlobalCounter", forward)
    model.left = lambda: calls
    return model


@kind
def iterator() -> Any:
    class Iterator(Block):
        def __init__(self) -> None:
            super().__init__()
            self.scales = iter(range(1, 1000))

        def forward(self, x: Any) -> Any:
            return self.body(x / next(self.scales))

    model = model_of(Iterator, "IteratorModel")
    model.left = lambda: [next(b.scales) for b in model.blocks]
    return model


@kind
def changed_input() -> Any:
    def forward(self: Any, x: Any) -> Any:
        return self.body(x.mul_(1.5))

    class ChangedInputModel(Model):
        def forward(self, x: Any) -> Any:
            x = self.first(x)
            return super().forward(x)

    model = ChangedInputModel(type("ChangedInput", (Block,), {"forward": forward}))
    model.first = nn.Linear(WIDTH, WIDTH)
    return model


@kind
def changed_later() -> Any:
    class ChangedLaterModel(Model):
        def forward(self, x: Any) -> Any:
            x = self.first(x)
            for block in self.blocks:
                x += block(x)
            return self.head(x)

    forward = lambda self, x: self.body(2 * x)  # noqa: E731
    model = ChangedLaterModel(type("ChangedLater", (Block,), {"forward": forward}))
    model.first = nn.Linear(WIDTH, WIDTH)
    return model


@kind
def batch_norm() -> Any:
    class Norm(Block):
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.BatchNorm1d(WIDTH, momentum=0.3)

        def forward(self, x: Any) -> Any:
            return self.body(self.norm(x))

    return model_of(Norm, "NormModel")


@kind
def spectral() -> Any:
    class Spectral(Block):
        def __init__(self) -> None:
            super().__init__()
            self.up = nn.utils.parametrizations.spectral_norm(self.up)
            self.down = nn.utils.spectral_norm(self.down)

    return model_of(Spectral, "SpectralModel")


@kind
def replaced_buffer() -> Any:
    class ReplacedBuffer(Block):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("mean", torch.zeros(WIDTH))

        def forward(self, x: Any) -> Any:
            self.mean = 0.9 * self.mean + 0.1 * x.detach().mean(0)
            return self.body(x - self.mean)

    return model_of(ReplacedBuffer, "ReplacedBufferModel")


@kind
def remembers() -> Any:
    class Remembers(Block):
        last = None

        def forward(self, x: Any) -> Any:
            before = 0 if self.last is None else self.last
            self.last = x.detach()
            return self.body(x + 0.1 * before)

    return model_of(Remembers, "RemembersModel")


@kind
def makes_anew() -> Any:
    """Its dictionary gives out new objects, as that of Transformers' activations."""

    class Makers(collections.OrderedDict):
        def __getitem__(self, key: str) -> Any:
            return super().__getitem__(key)(1)

    class MakesAnew(Block):
        def __init__(self) -> None:
            super().__init__()
            self.makers = Makers(a=int, b=float)
            self.makers["calls"] = lambda n: 0

        def forward(self, x: Any) -> Any:
            calls = self.makers["calls"] + 1
            self.makers["calls"] = lambda n: calls
            return self.body(x / (self.makers["a"] + calls))

    model = model_of(MakesAnew, "MakesAnewModel")
    model.left = lambda: [block.makers["calls"] for block in model.blocks]
    return model


@kind
def cache() -> Any:
    class Cache:
        def __init__(self) -> None:
            self.keys: Any = [None] * BLOCKS

        def update(self, number: int, x: Any) -> Any:
            before = self.keys[number]
            self.keys[number] = x if before is None else torch.cat([before, x])
            return self.keys[number]

    class Cached(Block):
        number = 0

        def forward(self, x: Any, past: Any = None) -> Any:
            return self.body(past.update(self.number, x).mean(0) + x)

    class CachedModel(Model):
        def forward(self, x: Any) -> Any:
            self.past = Cache()
            for number, block in enumerate(self.blocks):
                block.number = number
                x = block(x, past=self.past)
            return self.head(x)

    model = CachedModel(Cached)
    model.left = lambda: [tuple(key.shape) for key in model.past.keys]
    return model


@kind
def user_hooks() -> Any:
    seen = []

    def see(module: Any, args: Any, output: Any) -> None:
        seen.append(float(output.sum()))

    model = block_of("UserHooks", lambda self, x: self.body(x))
    for block in model.blocks:
        block.up.register_forward_hook(see)
    model.left = lambda: seen
    return model


@kind
def outer_hooks() -> Any:
    seen = []

    def see(module: Any, args: Any, output: Any) -> Any:
        seen.append(1)
        return output * 2

    model = block_of("OuterHooks", lambda self, x: self.body(x))
    for block in model.blocks:
        block.register_forward_hook(see)
    model.left = lambda: len(seen)
    return model


@kind
def called_twice() -> Any:
    class TwiceModel(Model):
        def forward(self, x: Any) -> Any:
            for block in self.blocks:
                x = block(block(x))
            return self.head(x)

    return TwiceModel(type("Twice", (Block,), {"forward": lambda s, x: s.body(x)}))


@kind
def shared() -> Any:
    model = block_of("Shared", lambda self, x: self.body(F.dropout(x, 0.2)))
    model.blocks[2] = model.blocks[0]
    return model


@kind
def grad_switched() -> Any:
    def forward(self: Any, x: Any) -> Any:
        with torch.no_grad():
            self.scale = 0.9 * getattr(self, "scale", 1) + self.up(x).abs().mean()
        with torch.set_grad_enabled(self.training):
            return self.body(x / self.scale)

    return block_of("GradSwitched", forward)


@kind
def frozen_first() -> Any:
    model = block_of("FrozenFirst", lambda self, x: self.body(x))
    model.blocks[0].requires_grad_(False)
    return model


@dataclasses.dataclass
class Result:
    hidden: Any
    extra: Any = None


@kind
def odd_outputs() -> Any:
    def forward(self: Any, x: Any, nothing: Any = None) -> Any:
        out = self.body(x["hidden"] if isinstance(x, dict) else x)
        return {"hidden": out, "result": Result(out), "none": None, "number": 3}

    class OddModel(Model):
        def forward(self, x: Any) -> Any:
            for block in self.blocks:
                x = block(x, None)
            return self.head(x["result"].hidden)

    return OddModel(type("Odd", (Block,), {"forward": forward}))


@kind
def routing() -> Any:
    class Routing(Block):
        def __init__(self) -> None:
            super().__init__()
            self.gate = nn.Linear(WIDTH, 4)
            self.experts = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(4))
            self.register_buffer("load", torch.zeros(4))

        def forward(self, x: Any) -> Any:
            weight, chosen = (self.gate(x) - self.load / 100).softmax(-1).max(-1)
            self.load += torch.bincount(chosen, minlength=4)
            out = torch.zeros_like(x)
            for number, expert in enumerate(self.experts):
                rows = (chosen == number).nonzero().flatten()
                out = out.index_add(0, rows, expert(x[rows]) * weight[rows, None])
            return self.body(out + x)

    return model_of(Routing, "RoutingModel")


@kind
def autocast_inside() -> Any:
    def forward(self: Any, x: Any) -> Any:
        with torch.autocast("cuda", torch.bfloat16):
            return self.body(x).float()

    return block_of("AutocastInside", forward)


@kind
def autocast_outside() -> Any:
    model = block_of("AutocastOutside", lambda self, x: self.body(x))
    model.around = lambda: torch.autocast("cuda", torch.bfloat16)
    return model


@kind
def checkpointed() -> Any:
    def forward(self: Any, x: Any) -> Any:
        return checkpoint(self.body, x, use_reentrant=False)

    return block_of("Checkpointed", forward)


@kind
def checkpointed_reentrant() -> Any:
    def forward(self: Any, x: Any) -> Any:
        return checkpoint(self.body, x, use_reentrant=True)

    return block_of("Reentrant", forward)


@kind
def checkpointed_outside() -> Any:
    class OutsideModel(Model):
        def forward(self, x: Any) -> Any:
            x = x.requires_grad_()
            for number, block in enumerate(self.blocks):
                x = checkpoint(block, x, use_reentrant=number == 1)
            return self.head(x)

    return OutsideModel(type("Outside", (Block,), {"forward": lambda s, x: s.body(x)}))


@kind
def compiled() -> Any:
    model = block_of("Compiled", lambda self, x: self.body(x))
    model.blocks[1] = torch.compile(model.blocks[1], backend="eager")
    return model


@kind
def compiled_inside() -> Any:
    class CompiledInside(Block):
        def __init__(self) -> None:
            super().__init__()
            self.whole = torch.compile(self.body, backend="eager")

        def forward(self, x: Any) -> Any:
            return self.whole(x)

    return model_of(CompiledInside, "CompiledInsideModel")


@kind
def accumulated() -> Any:
    class AccumulatedModel(Model):
        def forward(self, x: Any) -> Any:
            first, second = x.chunk(2)
            return super().forward(first) * super().forward(second.exp())

    class Accumulated(Block):
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.BatchNorm1d(WIDTH)

        def forward(self, x: Any) -> Any:
            return self.body(F.dropout(self.norm(x), 0.1))

    return AccumulatedModel(Accumulated)


@kind
def twice_backward() -> Any:
    model = block_of("TwiceBackward", lambda self, x: torch.tanh(self.body(x)))

    def loss_of(x: Any) -> Any:
        x = x.requires_grad_()
        out = model(x).square().mean()
        gradient = torch.autograd.grad(out, x, create_graph=True)[0]
        return out + gradient.square().sum()

    model.loss_of = loss_of
    return model


@kind
def own_function() -> Any:
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, weight: Any) -> Any:
            ctx.save_for_backward(x, weight)
            return x * x * weight

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            x, weight = ctx.saved_tensors
            assert ctx.saved_tensors[1].note == 7 and isinstance(weight, nn.Parameter)
            return 2 * x * weight * gradient, (gradient * x * x).sum(0)

    class OwnFunction(Block):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(WIDTH))

        def forward(self, x: Any) -> Any:
            self.weight.note = 7
            return self.body(Square.apply(torch.tanh(x), self.weight))

    return model_of(OwnFunction, "OwnFunctionModel")


@kind
def sequential() -> Any:
    layers = [nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh()) for _ in range(3)]
    return type("Chain", (nn.Sequential,), {})(*layers)


@kind
def encoder() -> Any:
    layer = nn.TransformerEncoderLayer(WIDTH, 2, 32, batch_first=True)
    return nn.TransformerEncoder(layer, 3)
