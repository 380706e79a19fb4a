# SPDX-License-Identifier: Apache-2.0
"""Training loops of several shapes; prints how many steps the library counted in each.

steps.py      one line of JSON: {case: steps}
"""

import json
import sys

import torch
from torch import nn

ITERATIONS = 4


def counted():
    return sys.modules["actswap_torch._pack"].stats()["steps"]


def net():
    return nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4)).cuda()


def batch():
    return torch.randn(8, 16, device="cuda")


def one_optimizer():
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(ITERATIONS):
        model(batch()).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


def accumulation_and_evaluation():
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(ITERATIONS):
        for _ in range(3):
            model(batch()).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        with torch.no_grad():
            model(batch()).sum().item()


def split_parameters():
    model = net()
    one = torch.optim.SGD(model[0].parameters(), lr=0.1)
    two = torch.optim.AdamW(model[2].parameters())
    for _ in range(ITERATIONS):
        model(batch()).sum().backward()
        for optimizer in (one, two):
            optimizer.step()
            optimizer.zero_grad()


def two_in_turn():
    first, second = net(), net()
    pairs = [(m, torch.optim.SGD(m.parameters(), lr=0.1)) for m in (first, second)]
    for _ in range(ITERATIONS):
        for model, optimizer in pairs:
            model(batch()).sum().backward()
            optimizer.step()
            optimizer.zero_grad()


def one_that_is_never_used():
    model, other = net(), net()
    unused = torch.optim.SGD(other.parameters(), lr=0.1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(ITERATIONS):
        model(batch()).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    del unused


class Around(torch.optim.Optimizer):
    """An optimizer that has another one do the work."""

    def __init__(self, inner):
        self.inner = inner
        super().__init__(inner.param_groups, {})

    def step(self, closure=None):
        self.inner.step()


def one_inside_another():
    model = net()
    optimizer = Around(torch.optim.SGD(model.parameters(), lr=0.1))
    for _ in range(ITERATIONS):
        model(batch()).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


CASES = [
    accumulation_and_evaluation,
    one_optimizer,
    split_parameters,
    two_in_turn,
    one_that_is_never_used,
    one_inside_another,
]


def by_hand():
    model = net()
    for _ in range(ITERATIONS):
        for _ in range(2):
            model(batch()).sum().backward()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter -= 0.1 * parameter.grad
                parameter.grad = None
    model(batch())


def main():
    told = {}
    # By hand first: it holds only as long as no optimizer was seen.
    for case in (by_hand, *CASES):
        before = counted()
        case()
        told[case.__name__] = counted() - before
    print(json.dumps(told))


main()
