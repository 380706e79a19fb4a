# SPDX-License-Identifier: Apache-2.0
"""Models whose blocks read or change what lies elsewhere than in their own attributes."""

import contextvars
import itertools
import random
import types
from typing import Any

import torch
import torch.nn.functional as F
from again_faults import KINDS
from again_models import BATCH, WIDTH, Block, Model, block_of, kind, model_of
from torch import nn

__all__ = ["KINDS"]

turn = contextvars.ContextVar("turn", default=0)
level = 1.0  # that the script changes
elsewhere = types.ModuleType("elsewhere")  # a helper module of the script
elsewhere.calls = 0  # type: ignore[attr-defined]
losses = torch.zeros(())  # written in place


class Log:
    """A global object of the script's."""

    def __init__(self) -> None:
        self.calls = 0
        self.seen: Any = []

    def write(self, value: Any) -> int:
        self.calls += 1
        self.seen.append(value.shape[0])
        return self.calls


log = Log()


@kind
def global_object() -> Any:
    model = block_of("GlobalObject", lambda s, x: s.body(x / log.write(x)))
    model.left = lambda: [log.calls, log.seen]
    return model


def helper(x: Any) -> Any:
    return x / log.write(x)


@kind
def global_object_in_helper() -> Any:
    model = block_of("InHelper", lambda s, x: s.body(helper(x)))
    model.left = lambda: [log.calls, log.seen]
    return model


@kind
def helper_module() -> Any:
    def forward(self: Any, x: Any) -> Any:
        elsewhere.calls += 1  # type: ignore[attr-defined]
        return self.body(x / elsewhere.calls)  # type: ignore[attr-defined]

    model = block_of("HelperModule", forward)
    model.left = lambda: elsewhere.calls  # type: ignore[attr-defined]
    return model


@kind
def closure_count() -> Any:
    count = 0

    def forward(self: Any, x: Any) -> Any:
        nonlocal count
        count += 1
        return self.body(x / count)

    model = block_of("ClosureCount", forward)
    model.left = lambda: count
    return model


@kind
def closure_generator() -> Any:
    drawn, seen = random.Random(3), []

    def forward(self: Any, x: Any) -> Any:
        seen.append(drawn.random())
        return self.body(x * seen[-1])

    model = block_of("ClosureGenerator", forward)
    model.left = lambda: [seen, drawn.random()]
    return model


@kind
def closure_tensor() -> Any:
    """Closes over a tensor that the script changes in place after the forward."""
    scale = torch.ones(WIDTH, device="cuda")
    model = block_of("ClosureTensor", lambda self, x: self.body(x + scale))
    model.between = lambda: scale.mul_(0.9)
    return model


@kind
def host_generator() -> Any:
    class HostGenerator(Block):
        def __init__(self) -> None:
            super().__init__()
            self.generator = torch.Generator().manual_seed(9)

        def forward(self, x: Any) -> Any:
            noise = torch.rand(x.shape, generator=self.generator)
            return self.body(x * noise.cuda())

    return model_of(HostGenerator, "HostGeneratorModel")


@kind
def class_count() -> Any:
    def forward(self: Any, x: Any) -> Any:
        type(self).calls += 1
        return self.body(x / type(self).calls)

    model = block_of("ClassCount", forward, calls=0)
    model.left = lambda: type(model.blocks[0]).calls
    return model


@kind
def function_count() -> Any:
    def forward(self: Any, x: Any) -> Any:
        forward.calls += 1  # type: ignore[attr-defined]
        return self.body(x / forward.calls)  # type: ignore[attr-defined]

    forward.calls = 0  # type: ignore[attr-defined]
    model = block_of("FunctionCount", forward)
    model.left = lambda: forward.calls  # type: ignore[attr-defined]
    return model


@kind
def default_count() -> Any:
    seen: Any = []

    def forward(self: Any, x: Any, seen: Any = seen) -> Any:
        seen.append(1)
        return self.body(x / len(seen))

    model = block_of("DefaultCount", forward)
    model.left = lambda: len(seen)
    return model


@kind
def tensor_count() -> Any:
    """A tensor that is an attribute, and no buffer, written in place."""

    class TensorCount(Block):
        def __init__(self) -> None:
            super().__init__()
            self.calls = torch.zeros((), device="cuda")

        def forward(self, x: Any) -> Any:
            self.calls += 1
            return self.body(x / self.calls)

    model = model_of(TensorCount, "TensorCountModel")
    model.left = lambda: [float(block.calls) for block in model.blocks]
    return model


@kind
def tensor_sum() -> Any:
    """The same, where nothing that is saved hangs on it."""

    class TensorSum(Block):
        def __init__(self) -> None:
            super().__init__()
            self.sums = [torch.zeros((), device="cuda")]

        def forward(self, x: Any) -> Any:
            out = self.body(x)
            self.sums[0] += out.detach().sum()
            return out

    model = model_of(TensorSum, "TensorSumModel")
    model.left = lambda: [float(block.sums[0]) for block in model.blocks]
    return model


@kind
def global_tensor_sum() -> Any:
    def forward(self: Any, x: Any) -> Any:
        out = self.body(x)
        losses.add_(out.detach().mean().cpu())
        return out

    model = block_of("GlobalTensor", forward)
    model.left = lambda: float(losses)
    return model


@kind
def array_sum() -> Any:
    """Of NumPy's, in place."""
    import numpy as np

    class ArraySum(Block):
        def __init__(self) -> None:
            super().__init__()
            self.sums = np.zeros(3)

        def forward(self, x: Any) -> Any:
            self.sums[1] += x.shape[0]
            return self.body(x)

    model = model_of(ArraySum, "ArraySumModel")
    model.left = lambda: [list(block.sums) for block in model.blocks]
    return model


@kind
def written_late() -> Any:
    """A buffer that is written only from the third step on."""

    class WrittenLate(Block):
        def __init__(self) -> None:
            super().__init__()
            self.calls = 0
            self.register_buffer("total", torch.zeros(()))

        def forward(self, x: Any) -> Any:
            self.calls += 1
            out = self.body(x)
            if self.calls > 2:
                self.total += out.detach().mean()
            return out

    model = model_of(WrittenLate, "WrittenLateModel")
    model.steps = 5
    return model


@kind
def read_global() -> Any:
    model = block_of("ReadGlobal", lambda self, x: self.body(x * level))

    def between() -> None:
        global level
        level *= 0.9

    model.between = between
    return model


@kind
def counted_global() -> Any:
    counts = itertools.count(1)
    model = block_of("CountedGlobal", lambda self, x: self.body(x / next(counts)))
    model.left = lambda: next(counts)
    return model


@kind
def context_variable() -> Any:
    def forward(self: Any, x: Any) -> Any:
        turn.set(turn.get() + 1)
        return self.body(x / turn.get())

    model = block_of("ContextVariable", forward)
    model.left = turn.get
    return model


@kind
def list_given() -> Any:
    """Appends to a list that it is given by keyword."""

    class ListGivenModel(Model):
        def forward(self, x: Any) -> Any:
            self.all: Any = []
            for block in self.blocks:
                x = block(x, all_hidden=self.all)
            return self.head(x + sum(self.all))

    def forward(self: Any, x: Any, all_hidden: Any) -> Any:
        out = self.body(x)
        all_hidden.append(out)
        return out / len(all_hidden)

    model = ListGivenModel(type("ListGiven", (Block,), {"forward": forward}))
    model.left = lambda: len(model.all)
    return model


@kind
def view_of_input() -> Any:
    def forward(self: Any, x: Any) -> Any:
        return x.view(BATCH // 2, 2, WIDTH).transpose(0, 1)[:, : BATCH // 2], self.body(x)

    class ViewModel(Model):
        def forward(self, x: Any) -> Any:
            for block in self.blocks:
                view, x = block(x)
                x = x + view.transpose(0, 1).reshape(x.shape)
            return self.head(x)

    return ViewModel(type("View", (Block,), {"forward": forward}))


@kind
def returns_input() -> Any:
    """The input itself in one of its outputs."""

    class ReturnsModel(Model):
        def forward(self, x: Any) -> Any:
            first = x
            for block in self.blocks:
                x, first = block(x, first)
            return self.head(x + first)

    forward = lambda self, x, first: (self.body(x * first), first)  # noqa: E731
    return ReturnsModel(type("Returns", (Block,), {"forward": forward}))


@kind
def functional() -> Any:
    """The weights of one block, made by the script, in all."""

    class FunctionalModel(Model):
        def forward(self, x: Any) -> Any:
            block = self.blocks[0]
            for n, _ in enumerate(self.blocks):
                named = {k: v * (1 + n) for k, v in block.named_parameters()}
                x = torch.func.functional_call(block, named, (x,))
            return self.head(x)

    return FunctionalModel(type("Functional", (Block,), {}))


@kind
def own_seed() -> Any:
    class OwnSeed(Block):
        def __init__(self) -> None:
            super().__init__()
            self.seed = 5

        def forward(self, x: Any) -> Any:
            self.seed += 1
            with torch.random.fork_rng(devices=[0]):
                torch.manual_seed(self.seed)
                return self.body(F.dropout(x, 0.4))

    return model_of(OwnSeed, "OwnSeedModel")


@kind
def gradient_hooks() -> Any:
    """Registered in the forward, on what it makes and on a weight."""

    class GradientHooks(Block):
        def __init__(self) -> None:
            super().__init__()
            self.seen: Any = []

        def forward(self, x: Any) -> Any:
            out = self.body(x)
            out.register_hook(lambda g: self.seen.append(float(g.sum())))
            self.up.bias.register_hook(lambda g: 2 * g)
            return out

    model = model_of(GradientHooks, "GradientHooksModel")
    model.left = lambda: [block.seen for block in model.blocks]
    return model


@kind
def gradient_inside() -> Any:
    """As of models of energies, whose forces are gradients."""

    def forward(self: Any, x: Any) -> Any:
        x = x.detach().requires_grad_()
        energy = self.body(torch.tanh(x)).square().sum()
        return torch.autograd.grad(energy, x, create_graph=True)[0]

    return block_of("GradientInside", forward)


@kind
def transform_inside() -> Any:
    def forward(self: Any, x: Any) -> Any:
        slope = torch.func.grad(lambda y: torch.tanh(y).square().sum())(x)
        return self.body(x + slope)

    return block_of("TransformInside", forward)


@kind
def hooks_inside() -> Any:
    """Saved tensor hooks of the script's, within the block."""

    class HooksInside(Block):
        def __init__(self) -> None:
            super().__init__()
            self.packed = 0

        def pack(self, tensor: Any) -> Any:
            self.packed += 1
            return tensor

        def forward(self, x: Any) -> Any:
            with torch.autograd.graph.saved_tensors_hooks(self.pack, lambda t: t):
                y = torch.tanh(x + self.down.bias)
            return self.body(y / self.packed)

    model = model_of(HooksInside, "HooksInsideModel")
    model.left = lambda: [block.packed for block in model.blocks]
    return model


@kind
def side_stream() -> Any:
    side = torch.cuda.Stream()

    def forward(self: Any, x: Any) -> Any:
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            y = torch.tanh(x)
            x.record_stream(side)
        out = self.body(x)
        torch.cuda.current_stream().wait_stream(side)
        y.record_stream(torch.cuda.current_stream())
        return out + y * y

    return block_of("SideStream", forward)


@kind
def own_state_in_context() -> Any:
    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, log: Any) -> Any:
            log.append("forward")
            ctx.log, ctx.kept = log, x * 2
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            ctx.log.append("backward")
            return ctx.kept * gradient, None

    class Context(Block):
        def __init__(self) -> None:
            super().__init__()
            self.log: Any = []

        def forward(self, x: Any) -> Any:
            return self.body(Scale.apply(torch.tanh(x), self.log))

    model = model_of(Context, "ContextModel")
    model.left = lambda: [block.log for block in model.blocks]
    return model


@kind
def side_output() -> Any:
    """A loss of its own that the model takes from an attribute."""

    class SideOutput(Block):
        def forward(self, x: Any) -> Any:
            out = self.body(x)
            self.extra = torch.tanh(out).mean()
            return out

    class SideModel(Model):
        def forward(self, x: Any) -> Any:
            return super().forward(x) + sum(block.extra for block in self.blocks)

    return SideModel(SideOutput)


@kind
def branch_without_gradient() -> Any:
    """The teacher's branch in a block that trains."""

    class Branch(Block):
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.LayerNorm(WIDTH)

        def forward(self, x: Any) -> Any:
            with torch.no_grad():
                target = self.norm(self.body(x))
            return self.body(x) - target

    return model_of(Branch, "BranchModel")
