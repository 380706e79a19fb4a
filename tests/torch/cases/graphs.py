# SPDX-License-Identifier: Apache-2.0
"""What autograd may do to a graph whose saved tensors have left. Prints JSON."""

import copy
import json
import pickle
import sys
import threading

import torch
from torch import nn

from actswap_torch import _pack

WIDTH = 256  # a saved tensor of 256 x 256 floats is above the floor that the test sets
RESULTS = {}


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(WIDTH, WIDTH)
        self.fails = False

    def forward(self, x):
        y = torch.tanh(self.inner(x))
        if self.fails:
            raise ValueError("the user's own")
        return x + y.sigmoid()


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(3))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x.sum()


def make(device):
    torch.manual_seed(0)
    return Model().to(device), torch.randn(WIDTH, WIDTH).to(device)


def pages():
    return _pack.stats()["pages"]


def case(function):
    try:
        RESULTS[function.__name__] = function()
    except Exception as error:
        RESULTS[function.__name__] = f"{type(error).__name__}: {error}"
    return function


def both(function):
    """True when the function's tensors on the device are the CPU's, bit for bit."""
    ours, right = function("cuda"), function("cpu")
    return [torch.equal(a.cpu(), b) for a, b in zip(ours, right)]


def gradients(model):
    return [p.grad.detach().clone() for p in model.parameters()]


@case
def pages_live_and_die_with_the_graph():
    model, x = make("cuda")
    before = pages()
    loss = model(x)
    during = pages()
    del loss
    unused = pages()
    model(x).backward()
    return {"before": before, "during": during, "unused": unused, "used": pages()}


@case
def twice_over_a_retained_graph():
    def run(device):
        model, x = make(device)
        loss = model(x)
        loss.backward(retain_graph=True)
        loss.backward()
        return gradients(model)

    return both(run)


@case
def gradient_of_a_gradient():
    def run(device):
        model, x = make(device)
        x.requires_grad_()
        (first,) = torch.autograd.grad(model(x), x, create_graph=True)
        first.square().sum().backward()
        return [x.grad, *gradients(model)]

    return both(run)


def held_after_forward(model, x):
    before = _pack.stats()["live_bytes"]
    loss = model(x)
    held = _pack.stats()["live_bytes"] - before
    del loss
    return held


@case
def an_exception_in_a_block():
    model, x = make("cuda")
    held = [held_after_forward(model, x)]
    model.blocks[1].fails = True
    try:
        model(x)
        return "nothing was raised"
    except ValueError as error:
        said = str(error)
    left = pages()
    model.blocks[1].fails = False
    held.append(held_after_forward(model, x))
    model(x).backward()
    right, x = make("cpu")
    right(x).backward()
    same = [torch.equal(a.cpu(), b) for a, b in zip(gradients(model), gradients(right))]
    return {"said": said, "left": left, "held": held, "same": same, "after": pages()}


@case
def views_of_one_storage():
    def run(device):
        torch.manual_seed(1)
        w = torch.randn(WIDTH, WIDTH).to(device).requires_grad_()
        h = w * 1
        parts = [
            h[3:, ::2].t(),
            h.view(-1)[1:-7],
            h.t(),
            h[:1].expand(WIDTH, WIDTH),
            h.unflatten(1, (16, -1)).permute(2, 0, 1),
        ]
        sum((part * part.sin()).sum() for part in parts).backward()
        return [w.grad]

    return both(run)


@case
def complex_conjugates_and_negatives():
    def run(device):
        torch.manual_seed(1)
        w = torch.randn(WIDTH, WIDTH, dtype=torch.complex64).to(device).requires_grad_()
        h = w * 2
        y = (h.conj() * h.imag) * h.conj().imag
        torch.view_as_real(y).sum().backward()
        return [w.grad]

    return both(run)


def changed_in_place(device):
    def try_one(build):
        try:
            build().backward()
            return "nothing was raised"
        except RuntimeError as error:
            return str(error)

    def output():
        w = torch.ones(WIDTH, WIDTH, device=device, requires_grad=True)
        h = w.exp()
        h.add_(1)
        return h.sum()

    def small():
        w = torch.ones(3, device=device, requires_grad=True)
        h = w.exp()
        h.add_(1)
        return h.sum()

    def parameter():
        w = torch.ones(WIDTH, WIDTH, device=device, requires_grad=True)
        loss = (w * w).sum()
        with torch.no_grad():
            w.mul_(2)
        return loss

    return [try_one(build) for build in (output, small, parameter)]


@case
def changed_on_the_cpu():
    torch._C._autograd._pop_saved_tensors_default_hooks()
    try:
        return changed_in_place("cpu")
    finally:
        torch._C._autograd._push_saved_tensors_default_hooks(_pack.pack, _pack.unpack)


@case
def changed_on_the_device():
    return changed_in_place("cuda")


class KeepsWeight(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(None, x, weight)
        return x * weight

    @staticmethod
    def backward(ctx, grad):
        _, x, weight = ctx.saved_tensors
        KeepsWeight.seen = weight
        return grad * weight, grad * x


@case
def a_custom_function_gets_its_parameter_back():
    weight = nn.Parameter(torch.ones(WIDTH, WIDTH, device="cuda"))
    weight.main_grad = torch.zeros(1)
    x = torch.ones(WIDTH, WIDTH, device="cuda") * 3
    KeepsWeight.apply(x, weight).sum().backward()
    return {
        "same": KeepsWeight.seen is weight,
        "gradient": weight.grad.cpu().unique().tolist(),
    }


@case
def another_thread():
    model, x = make("cuda")
    found = []

    def work():
        loss = model(x)
        found.append(pages())
        loss.backward()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    right, x = make("cpu")
    right(x).backward()
    same = [torch.equal(a.cpu(), b) for a, b in zip(gradients(model), gradients(right))]
    return {"pages": found[0], "same": same}


@case
def copies_hold_nothing_of_ours():
    model, x = make("cuda")
    names = list(model.state_dict())
    model(x).backward()
    twin = copy.deepcopy(model)
    stored = pickle.loads(pickle.dumps(model))
    with torch.no_grad():
        for parameter in twin.parameters():
            parameter.zero_()
    host = copy.deepcopy(twin).cpu()
    return {
        "names": list(model.state_dict()) == names,
        "attributes": [k for k in vars(model.blocks[0]) if k == "forward"],
        "twin": float(twin(x)) == float(host(x.cpu())) != float(model(x)),
        "stored": float(stored(x)) == float(model(x)),
        "actswap": b"actswap" in pickle.dumps(model),
    }


@case
def hooks_of_the_user_win():
    model, x = make("cuda")
    seen = []

    def pack(tensor):
        seen.append(tensor.numel())
        return tensor.detach()

    before = pages()
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        loss = model(x)
        during = pages()
    loss.backward()
    return {"seen": len(seen) > 0, "pages": during - before}


json.dump(RESULTS, sys.stdout)
print()
