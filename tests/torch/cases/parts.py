# SPDX-License-Identifier: Apache-2.0
"""Makes activations of known sizes in known modules, all alive at the peak, and prints
{module: KiB} as it should be, and {what: whether it holds} of all else.

parts.py forward     models of many habits, one after the other
parts.py again       what is run again inside of a backward
"""

import copy
import io
import json
import sys
import threading

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

CLASSES = (nn.Linear, nn.Sequential, nn.ReLU)
BEFORE = {kind: vars(kind)["forward"] for kind in CLASSES}
KEPT = []  # by the case that runs
ALL = []
EXPECTED = {}
HELD = {}


def make(module, kib):
    """An activation of this size, kept by its own graph and by us."""
    KEPT.append(torch.exp(module.weight.expand(kib * 256)))


class Leaf(nn.Module):
    def __init__(self, kib, *children):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))
        self.kib = kib
        for n, child in enumerate(children):
            self.add_module("abcdefghijklmnopqrstuvwxyz"[n], child)

    def forward(self, x):
        make(self, self.kib)
        for child in self.children():
            x = child(x)
        return x


class Other(Leaf):
    pass


def run(model, x=None):
    x = torch.ones(1, device="cuda") if x is None else x
    return model.cuda()(x)


# --- Cases: each has a root of its own class, which names its rows


def nested():
    class Nested(Leaf):
        def forward(self, x):
            x = super().forward(x)
            make(self, 4)  # behind its children: it is its own again
            return x

    run(Nested(1, Leaf(2, Other(3)), Other(5)))
    return {"Nested": 5, "Nested.a": 2, "Nested.a.a": 3, "Nested.b": 5}


def blocks():
    class Stack(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = Other(7)
            self.layers = nn.ModuleList(
                Leaf(2, Other(3), Leaf(1, Leaf(6))) for _ in range(3)
            )
            self.head = nn.Sequential(Leaf(8), Other(9))

        def forward(self, x):
            x = self.embed(x)
            for layer in self.layers:
                x = layer(x)
            return self.head(x)

    class Holder(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = Stack()
            self.weight = nn.Parameter(torch.ones(1))

        def forward(self, x):
            make(self, 10)
            return self.body(x)

    run(Holder())
    rows = {"Holder": 10, "Holder.body.embed": 7}
    rows.update({"Holder.body.head.0": 8, "Holder.body.head.1": 9})
    for n in range(3):
        rows[f"Holder.body.layers.{n}"] = 2
        rows[f"Holder.body.layers.{n}.a"] = 3
        rows[f"Holder.body.layers.{n}.b"] = 7, "what is deeper belongs to it"
    return rows


def lists_in_blocks():
    class Listed(nn.Module):
        def __init__(self, members):
            super().__init__()
            self.layer = nn.ModuleList(Leaf(1 + n) for n in range(members))
            self.last = Other(3)

        def forward(self, x):
            for layer in self.layer:
                x = layer(x)
            return self.last(x)

    class Encoder(nn.Sequential):
        pass

    run(Encoder(Listed(2), Listed(2)))
    rows = {f"Encoder.{n}.layer.{i}": 1 + i for n in range(2) for i in range(2)}

    class Experts(nn.Sequential):
        pass

    run(Experts(Listed(40), Listed(40)))
    for n in range(2):
        rows.update({f"Encoder.{n}.last": 3, f"Experts.{n}.last": 3})
        rows[f"Experts.{n}"] = sum(range(1, 41)), "too many to name"
    return rows


def many():
    """64 are named: the root, 30 groups, and members of the first ones."""

    class Many(Leaf):
        pass

    class Deep(Leaf):
        pass

    kinds = [type(f"Group{n}", (Leaf,), {}) for n in range(26)]
    groups = [kind(1, Leaf(2), Other(3), Deep(4)) for kind in kinds]
    run(Many(1, *groups))
    rows = {"Many": 1}
    names = "abcdefghijklmnopqrstuvwxyz"
    left = 64 - 1 - len(groups)
    for name in names:
        rows[f"Many.{name}"] = 1
        for member, kib in zip("abc", (2, 3, 4)):
            if left:
                rows[f"Many.{name}.{member}"] = kib
                left -= 1
            else:
                rows[f"Many.{name}"] += kib
    return rows


def several_of_a_class():
    class Twin(Leaf):
        pass

    twins = [Twin(1, Other(2)), Twin(3)]
    for twin in twins:
        run(twin)
    run(twins[0].a)  # called alone, it is where it was
    KEPT.append(twins)
    return {"Twin": 1, "Twin.a": 4, "Twin 2": 3}


def made_anew():
    class Loss(Leaf):
        pass

    for _ in range(5):
        run(Loss(2))
    return {"Loss": 10}


def alone_before():
    class Whole(Leaf):
        pass

    inner = Other(3, Leaf(4))
    run(inner)
    run(Whole(1, inner))
    return {"Whole": 1, "Whole.a": 6, "Whole.a.a": 8}


def failing():
    class Fails(Leaf):
        def forward(self, x):
            make(self, 2)
            raise ArithmeticError

    class Catches(Leaf):
        def forward(self, x):
            try:
                super().forward(x)
            except ArithmeticError:
                make(self, 4)
            return x

    class Breaks(Leaf):
        pass

    run(Catches(1, Other(3, Fails(0))))
    try:
        run(Breaks(3, Fails(0)))
    except ArithmeticError:
        run(Other(0).cuda())
        KEPT.pop()
    return {"Catches": 5, "Catches.a": 3, "Catches.a.a": 2, "Breaks": 3, "Breaks.a": 2}


def itself():
    class Tree(Leaf):
        def forward(self, x, depth=2):
            if depth:
                self(x, depth - 1)
            make(self, 2)
            return super().forward(x)

    run(Tree(1, Other(3)))
    return {"Tree": 9, "Tree.a": 9}


def backward_inside():
    class Force(Leaf):
        def forward(self, x):
            x = super().forward(x)
            energy = (x.requires_grad_() * self.weight).sum()
            torch.autograd.grad(energy, x)
            make(self, 4)
            return self.a(x)

    run(Force(1, Other(3)))
    return {"Force": (5, "and 2 of 512 bytes"), "Force.a": 6}


def without_gradients():
    """A model that another one calls, but does not hold: its parts have their names."""

    class Teacher(Leaf):
        pass

    class Student(Leaf):
        def forward(self, x):
            x = super().forward(x)
            with torch.no_grad():
                x = teacher(x)
                make(self, 4)
            return x

    class Alone(Leaf):
        pass

    teacher = Teacher(0, Other(3)).cuda()
    alone = Alone(5, Other(6)).cuda()
    with torch.no_grad():
        run(teacher)
    KEPT.clear()
    run(Student(1))
    with torch.no_grad():
        run(alone)
    return {"Student": 5, "Teacher.a": 3, "Alone": 5, "Alone.a": 6}


def threads():
    together = threading.Barrier(2)

    class Waits(Leaf):
        def forward(self, x):
            together.wait()
            make(self, self.kib)
            together.wait()
            return x

    class East(Leaf):
        pass

    class West(Leaf):
        pass

    models = [East(1, Waits(2), Other(3)), West(4, Waits(5), Other(6))]
    running = [threading.Thread(target=run, args=[m.cuda()]) for m in models]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    rows = {"East": 1, "East.a": 2, "East.b": 3}
    rows.update({"West": 4, "West.a": 5, "West.b": 6})
    return rows


def lazy():
    class Lazy(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.LazyLinear(256)

        def forward(self, x):
            KEPT.append(self.first(x))
            return x

    run(Lazy(), torch.ones(4, 8, device="cuda"))
    return {"Lazy.first": 4}


def left_alone():
    """What is not entered bears the name of what is around it."""

    class Around(Leaf):
        pass

    class Static(nn.Module):
        @staticmethod
        def forward(x):
            return x

    inner = [Other(2), Leaf(3), Static()]
    inner[0].forward = inner[0].forward
    inner[1].compile(backend="eager")
    run(Around(1, *inner))
    return {"Around": 6}


def others():
    """That they work at all, on classes whose forward was exchanged."""
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2)).cuda()
    x = torch.ones(3, 4, device="cuda")
    right = model(x)
    HELD["scripts"] = torch.jit.script(model)(x).shape == right.shape
    HELD["traces"] = torch.jit.trace(model, x)(x).shape == right.shape
    graph = torch.fx.symbolic_trace(model)
    HELD["graphs"] = [n.op for n in graph.graph.nodes].count("call_module") == 3
    HELD["graphs run"] = graph(x).shape == right.shape
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    HELD["compiles"] = compiled(x).shape == right.shape
    each = torch.func.vmap(model)(x)
    HELD["vmap"] = each.shape == right.shape
    parameters = dict(model.named_parameters())

    def loss(values):
        return torch.func.functional_call(model, values, (x,)).sum()

    HELD["grad"] = torch.func.grad(loss)(parameters).keys() == parameters.keys()
    with torch._subclasses.FakeTensorMode(allow_non_fake_inputs=True):
        HELD["fake"] = model(torch.ones(3, 4, device="cuda")).shape == right.shape
    exported = torch.export.export(model, (x,))
    HELD["exports"] = "linear" in str(exported.graph)
    HELD["signature"] = (
        "input" in __import__("inspect").signature(nn.Linear.forward).parameters
    )
    written = io.BytesIO()
    torch.save(model, written)
    HELD["pickle"] = b"actswap" not in written.getvalue()
    HELD["copy"] = [vars(m).keys() for m in copy.deepcopy(model).modules()] == [
        vars(m).keys() for m in model.modules()
    ]
    HELD["hooks"] = not any(m._forward_hooks for m in model.modules())
    HELD["exchanged"] = vars(nn.ReLU)["forward"] is not BEFORE[nn.ReLU]
    return {}


def outside():
    weight = nn.Parameter(torch.ones(1, device="cuda"))
    KEPT.append(torch.exp(weight.expand(11 * 256)))
    return {"(outside)": 11}


def again():
    """Bytes that are there only while a part is run again."""

    class Part(Leaf):
        def forward(self, x):
            y = torch.exp((x * self.weight).expand(self.kib * 256))
            return self.a(x) + torch.exp(y).sum()

    class Again(Leaf):
        def forward(self, x):
            for child in (self.a, self.b):
                x = checkpoint(child, x, use_reentrant=False)
            return x

    y = run(Again(1, Part(64, Other(3)), Part(2, Other(2))))
    KEPT.clear()
    y.backward()


FORWARD = (
    *(nested, blocks, lists_in_blocks, many, several_of_a_class, made_anew),
    *(alone_before, failing, itself, backward_inside, without_gradients, threads),
    *(lazy, left_alone, others, outside),
)


def main():
    if sys.argv[1] == "again":
        return again()
    for case in FORWARD:
        EXPECTED.update(case())
        ALL.append(KEPT[:])
    peak = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
    del peak
    (torch.ones(1, device="cuda", requires_grad=True) * 2).backward()
    import actswap_torch

    actswap_torch._adapter.remove()
    HELD["undone"] = all(vars(kind)["forward"] is BEFORE[kind] for kind in CLASSES)
    print(json.dumps([EXPECTED, HELD]))


if __name__ == "__main__":
    main()
