# SPDX-License-Identifier: Apache-2.0
"""Small models, each trained for three steps at a place that records what it did."""

import torch

STEPS = 3
MODELS = {}
# Autograd runs nodes by their numbers, which each thread counts for itself: those that a
# backward makes on its device's thread are numbered apart from the program's own. With
# the backward on the program's thread the bits are the CPU's.
ORDER = "a backward through a backward adds gradients up in another order on a device"
# A device's thread holds a task of a backward, with the gradient that it was given, until
# its next one (torch/csrc/autograd/engine.cpp, thread_main), and the program goes on
# before: of 3,000 gradients that autograd.grad returned, 380 had a second holder.
THREADS = "the backward's thread or the program's own is the last to let go"
CASTS = "autocast empties its table of casts by address"
# Of the first operator that draws in a capture, under values.
DRAWS = "the generator's two numbers are made before the operator's results, not behind"


class Model:
    """A function that trains at a place, and what may be expected of it.

    bound: the largest difference to the CPU, by the largest value there is; 0 is the same
        bits. why: the reason for any other.
    values: what it does depends on values: what an error under shapes says, if there is
        one.
    race: why two runs do not free in the same order, or, by DRAWS, not allocate so.
    compiled: inductor compiles it where nothing is computed, and allocates otherwise.
    """

    def __init__(self, train, bound=0.0, why="", values="", race="", compiled=False):
        assert bool(bound) == bool(why)
        self.train = train
        self.bound = bound
        self.why = why
        self.values = values
        self.race = race
        self.compiled = compiled


def model(function=None, **expected):
    def add(train):
        name = train.__name__.rstrip("_")
        assert name not in MODELS, f"two models are called {name}"
        MODELS[name] = Model(train, **expected)
        return train

    return add(function) if function else add


class Place:
    """A device, and what a training there gave.

    Numbers that a model draws on a device are kept; on the CPU, whose generator has
    others, those of the device are taken.
    """

    def __init__(self, device, drawn=None):
        self.device = device
        self.is_cpu = device == "cpu"
        self._generator = torch.Generator().manual_seed(0)
        self._given = iter(drawn or [])
        self._drawn, self._losses, self._gradients = [], [], []
        self._parameters = []

    def put(self, *modules):
        """Each on the device; one alone is not a tuple."""
        moved = [module.to(self.device) for module in modules]
        return moved[0] if len(moved) == 1 else moved

    def normal(self, *shape, dtype=torch.float32):
        return torch.randn(shape, generator=self._generator).to(self.device, dtype)

    def uniform(self, *shape):
        return torch.rand(shape, generator=self._generator).to(self.device)

    def whole(self, most, *shape):
        return torch.randint(0, most, shape, generator=self._generator).to(self.device)

    def draw(self, make):
        """What make() draws on the device."""
        if self.is_cpu:
            return next(self._given).clone()
        self._drawn.append(make().detach())
        return self._drawn[-1]

    def redraw(self, make):
        """As draw(), and the generator is put back: the next call draws the same."""
        if self.is_cpu:
            return next(self._given).clone()
        state = torch.cuda.get_rng_state()
        drawn = self.draw(make)
        torch.cuda.set_rng_state(state)
        return drawn

    def dropout(self, x, p):
        """Dropout, on the CPU with the device's mask. Exact for p = 0.5."""
        mask = self.redraw(lambda: torch.nn.functional.dropout(torch.ones_like(x), p))
        return x * mask if self.is_cpu else torch.nn.functional.dropout(x, p)

    def record(self, loss, *holders):
        """After backward, before the gradients are cleared."""
        self._losses.append(loss.detach().clone())
        for tensor in tensors_in(holders):
            if tensor.grad is not None:
                grad = tensor.grad.detach()
                self._gradients.append(
                    grad.to_dense() if grad.is_sparse else grad.clone()
                )

    def finish(self, *holders):
        """At the end: parameters and buffers as they are now."""
        for tensor in tensors_in(holders):
            self._parameters.append(tensor.detach().clone())

    def result(self):
        found = {
            "losses": self._losses,
            "gradients": self._gradients,
            "parameters": self._parameters,
            "drawn": self._drawn,
        }
        return {name: [t.cpu() for t in tensors] for name, tensors in found.items()}


def tensors_in(holders):
    for holder in holders:
        if isinstance(holder, torch.Tensor):
            yield holder
        else:
            yield from holder.parameters()
            yield from holder.buffers()


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.1, momentum=0.9)


def adamw(parameters):
    return torch.optim.AdamW(parameters, lr=1e-2)


def train(place, net, loss, optimizer=sgd, after=None):
    """The plain loop: loss(step) of `net`, which is put on the device."""
    place.put(net)
    stepping = optimizer(net.parameters())
    for step in range(STEPS):
        stepping.zero_grad()
        value = loss(step)
        value.backward()
        place.record(value, net)
        stepping.step()
        if after:
            after(step)
    place.finish(net)
