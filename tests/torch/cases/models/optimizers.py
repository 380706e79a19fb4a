# SPDX-License-Identifier: Apache-2.0
"""One network, every optimizer of PyTorch, in the forms it has."""

import torch
import torch.nn.functional as F
from torch import nn, optim

from .dense import Blocks, copying
from .registry import STEPS, MODELS, Model, model

KINDS = {
    "sgd_nesterov": (optim.SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    "sgd_fused": (optim.SGD, {"lr": 0.1, "momentum": 0.9, "fused": True}),
    "adam_amsgrad": (optim.Adam, {"amsgrad": True}),
    "adam_fused": (optim.Adam, {"fused": True, "weight_decay": 0.1}),
    "adam_one_by_one": (optim.Adam, {"foreach": False}),
    "adamw_fused": (optim.AdamW, {"fused": True, "amsgrad": True}),
    "adamw_foreach": (optim.AdamW, {"foreach": True, "maximize": True}),
    "adagrad": (optim.Adagrad, {"lr_decay": 0.1}),
    "adadelta": (optim.Adadelta, {}),
    "adamax": (optim.Adamax, {}),
    "asgd": (optim.ASGD, {"foreach": True}),
    "nadam": (optim.NAdam, {"decoupled_weight_decay": True, "foreach": True}),
    "radam": (optim.RAdam, {"foreach": True}),
    "rmsprop": (optim.RMSprop, {"centered": True, "momentum": 0.9}),
    "rprop": (optim.Rprop, {}),
    "adafactor": (optim.Adafactor, {"lr": 0.01}),
}


def trained_with(kind, options):
    def train_it(place):
        copying(place, Blocks(2), optimizer=lambda p: kind(p, **options))

    return train_it


for name, (kind, options) in KINDS.items():
    MODELS[name] = Model(trained_with(kind, options))


@model(bound=2e-4, why="1 - 0.999 ** step in fp32 tensors instead of Python's doubles")
def capturable(place):
    """The step counts live on the device; the CPU has no such form."""
    capturable = not place.is_cpu
    copying(place, Blocks(2), optimizer=lambda p: optim.AdamW(p, capturable=capturable))


@model
def muon(place):
    net = nn.Sequential(*(nn.Linear(32, 32, bias=False) for _ in range(2)))
    copying(place, net, optimizer=lambda p: optim.Muon(p, lr=0.01))


@model(values="a line search")
def lbfgs(place):
    net = place.put(nn.Linear(8, 4))
    optimizer = optim.LBFGS(net.parameters(), max_iter=4, line_search_fn="strong_wolfe")
    x, y = place.normal(16, 8), place.normal(16, 4)

    def closure():
        optimizer.zero_grad()
        loss = F.mse_loss(net(x).tanh(), y)
        loss.backward()
        return loss

    for _ in range(STEPS):
        place.record(optimizer.step(closure), net)
    place.finish(net)


@model
def groups(place):
    """Two groups, several dtypes in one optimizer, parameters without a gradient."""
    net = Blocks(3)
    net.blocks[1].to(torch.float64)
    net.run = lambda block, x: block(x.to(block.wide.weight.dtype))
    unused = nn.Linear(3, 3)

    def optimizer(parameters):
        parameters = list(parameters)
        slow = {"params": [*parameters[:3], *place.put(unused).parameters()], "lr": 1e-4}
        return optim.AdamW([slow, {"params": parameters[3:]}])

    copying(place, net, optimizer=optimizer)
