# SPDX-License-Identifier: Apache-2.0
"""Trains models whose blocks are not simply run again: again.py [KIND...]. Each trains
three steps; says the digest of its losses, gradients and parameters, and what else must
be as without us. With --stock=reentrant or --stock=other PyTorch's own checkpoint runs
each block again, and an error that it raises is said in place of the digest."""

import functools
import hashlib
import json
import random
import sys
import warnings
from typing import Any

import numpy as np
import torch
from again_places import KINDS
from again_models import BATCH, STEPS, WIDTH
from torch import nn
from torch.utils.checkpoint import checkpoint


def checkpoint_all(block: nn.Module, use_reentrant: bool) -> None:
    """As HF's layers do it: the call itself, with keywords in it."""
    kind = type(block)
    if kind.__name__ == "Outer":
        return

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        inner = functools.partial(kind.__call__, self, **kwargs)
        return checkpoint(inner, *args, use_reentrant=use_reentrant)

    block.__class__ = type("Outer", (kind,), {"__call__": call})


def update(model: Any, optimizer: Any) -> bool:
    """False: these gradients were refused, and the step may be done again."""
    try:
        optimizer.step()
    except RuntimeError as error:
        model.refused.append(str(error))
        optimizer.zero_grad()
        return False
    return True


def train(name: str, stock: str = "") -> Any:
    torch.manual_seed(1)
    random.seed(2)
    np.random.seed(3)
    model = KINDS[name]()
    model.cuda().train()
    if stock:
        for block in getattr(model, "blocks", model.children()):
            checkpoint_all(block, stock == "reentrant")
    nothing = lambda: None  # noqa: E731
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    digest = hashlib.sha256()
    around = getattr(model, "around", torch.enable_grad)
    loss_of = getattr(model, "loss_of", lambda x: model(x).square().mean())
    for step in range(getattr(model, "steps", STEPS)):
        getattr(model, "before", nothing)()
        x = torch.randn(BATCH, WIDTH, device="cuda")
        done = False
        while not done:
            with around():
                loss = loss_of(x)
            getattr(model, "between", nothing)()
            loss.backward()
            done = update(model, optimizer)
        digest.update(loss.detach().cpu().numpy().tobytes())
        for parameter in model.parameters():
            if parameter.grad is not None:
                digest.update(parameter.grad.cpu().numpy().tobytes())
        optimizer.zero_grad()
    for tensor in model.state_dict().values():
        digest.update(tensor.cpu().numpy().tobytes())
    left = getattr(model, "left", nothing)()
    tail = [random.random(), float(np.random.rand()), float(torch.rand(1))]
    refused = getattr(model, "refused", [])
    return [digest.hexdigest(), json.loads(json.dumps(left)), tail], refused


def attempt(name: str, stock: str) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return train(name, stock)
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:300], []


if __name__ == "__main__":
    options = [word for word in sys.argv[1:] if word.startswith("--stock=")]
    names = [word for word in sys.argv[1:] if word not in options] or list(KINDS)
    stock = options[0].partition("=")[2] if options else ""
    trained = {name: attempt(name, stock) for name in names}
    refused = [text for _, texts in trained.values() for text in texts]
    print(json.dumps([{name: said for name, (said, _) in trained.items()}, refused]))
