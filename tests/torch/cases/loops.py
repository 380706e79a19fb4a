# SPDX-License-Identifier: Apache-2.0
"""Training loops as people write them: loops.py DEVICE. Prints a digest of each, JSON."""

import contextlib
import hashlib
import json
import sys

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

DEVICE = sys.argv[1]
WIDTH = 128
RESULTS = {}


class Block(nn.Module):
    def __init__(self, dropout=0.0):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.inner = nn.Linear(WIDTH, 2 * WIDTH)
        self.outer = nn.Linear(2 * WIDTH, WIDTH)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, scale=None, *, mask=None, residual=True):
        y = self.outer(F.gelu(self.inner(self.norm(x))))
        if scale is not None:
            y = y * scale
        if mask is not None:
            y = y.masked_fill(mask, 0.0)
        return self.dropout(y) + x if residual else self.dropout(y)


class Model(nn.Module):
    def __init__(self, layers=3, run=None, **options):
        super().__init__()
        self.blocks = nn.ModuleList(Block(**options) for _ in range(layers))
        self.run = run or (lambda block, x: block(x))

    def forward(self, x):
        for block in self.blocks:
            x = self.run(block, x)
        return x


class Trainer:
    """Model, optimizer and a digest of every gradient and the last parameters."""

    def __init__(self, **options):
        torch.manual_seed(0)
        self.model = Model(**options).to(DEVICE)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, foreach=True)
        self.generator = torch.Generator().manual_seed(1)
        self.hash = hashlib.sha256()
        torch.manual_seed(2)

    def batch(self, rows=256):
        x = torch.randn(rows, WIDTH, generator=self.generator)
        return x.to(DEVICE)

    def add(self, tensor):
        self.hash.update(tensor.detach().cpu().flatten().view(torch.uint8).numpy())

    def step(self):
        for parameter in self.model.parameters():
            if parameter.grad is not None:
                self.add(parameter.grad)
        self.optimizer.step()
        self.optimizer.zero_grad()

    def loss(self, *batch):
        return self.model(*(batch or (self.batch(),))).square().mean()

    def digest(self):
        for parameter in self.model.parameters():
            self.add(parameter)
        return self.hash.hexdigest()


def case(function):
    try:
        RESULTS[function.__name__] = function()
    except Exception as error:
        RESULTS[function.__name__] = f"{type(error).__name__}: {error}"
    return function


def simple(steps=2, context=contextlib.nullcontext, **options):
    trainer = Trainer(**options)
    for _ in range(steps):
        with context():
            loss = trainer.loss()
        loss.backward()
        trainer.step()
    return trainer.digest()


@case
def plain():
    return simple()


@case
def arguments_by_name():
    mask = torch.zeros(256, WIDTH, dtype=torch.bool).to(DEVICE)
    mask[::2] = True
    scale = torch.full((WIDTH,), 0.5).to(DEVICE).requires_grad_()
    digest = simple(run=lambda block, x: block(x, scale, mask=mask, residual=False))
    return [digest, scale.grad.cpu().tolist()]


@case
def none_as_an_argument():
    return simple(run=lambda block, x: block(x, None, mask=None))


@case
def only_named_arguments_with_dropout():
    return simple(run=lambda block, x: block(x=x, residual=True), dropout=0.5)


@case
def users_checkpoint():
    run = lambda block, x: checkpoint(block, x, use_reentrant=False)  # noqa: E731
    return simple(run=run)


@case
def users_checkpoint_reentrant():
    def run(block, x):
        return checkpoint(block, x.requires_grad_(), use_reentrant=True)

    return simple(run=run)


@case
def users_checkpoint_around_everything():
    trainer = Trainer()
    for _ in range(2):
        checkpoint(trainer.loss, trainer.batch(), use_reentrant=False).backward()
        trainer.step()
    return trainer.digest()


@case
def a_block_used_twice():
    return simple(run=lambda block, x: block(block(x)))


@case
def two_forwards_one_backward():
    trainer = Trainer()
    for _ in range(2):
        (trainer.loss() + trainer.loss()).backward()
        trainer.step()
    return trainer.digest()


@case
def accumulation():
    trainer = Trainer()
    for _ in range(2):
        for _ in range(3):
            (trainer.loss() / 3).backward()
        trainer.step()
    return trainer.digest()


@case
def skipped_backward_and_evaluation():
    trainer = Trainer(dropout=0.0)
    for _ in range(2):
        trainer.loss()
        trainer.model.eval()
        with torch.no_grad():
            trainer.add(trainer.loss())
        with torch.inference_mode():
            trainer.add(trainer.loss())
        trainer.model.train()
        trainer.loss().backward()
        trainer.step()
    return trainer.digest()


@case
def changing_lengths():
    trainer = Trainer()
    for rows in (64, 512, 128):
        trainer.loss(trainer.batch(rows)).backward()
        trainer.step()
    return trainer.digest()


@case
def tied_weights():
    trainer = Trainer()
    first, last = trainer.model.blocks[0], trainer.model.blocks[2]
    last.inner.weight = first.inner.weight
    for _ in range(2):
        trainer.loss().backward()
        trainer.step()
    return trainer.digest()


@case
def frozen_blocks():
    trainer = Trainer()
    trainer.model.blocks[0].requires_grad_(False)
    for _ in range(2):
        trainer.loss().backward()
        trainer.step()
    return trainer.digest()


@case
def two_models_in_turn():
    one, two = Trainer(), Trainer(layers=2)
    for _ in range(2):
        made = one.model(one.batch())
        two.loss(made.detach()).backward()
        two.step()
        two.loss(made).backward()
        one.step()
        two.optimizer.zero_grad()
    return [one.digest(), two.digest()]


@case
def gradient_penalty():
    trainer = Trainer()
    for _ in range(2):
        x = trainer.batch().requires_grad_()
        loss = trainer.loss(x)
        (inner,) = torch.autograd.grad(loss, x, create_graph=True)
        (loss + inner.square().sum()).backward()
        trainer.step()
    return trainer.digest()


@case
def differentiated_twice_after_plain_steps():
    """Rounds as the numbers of the nodes say, which a recomputed block would change."""
    trainer = Trainer()
    for step in range(8):
        x = trainer.batch(16).requires_grad_()
        y = trainer.model(x)
        loss = y.square().mean()
        if step > 3:
            (slope,) = torch.autograd.grad(y.sum(), x, create_graph=True)
            (bend,) = torch.autograd.grad(slope[:, 0].sum(), x, create_graph=True)
            loss = loss + (slope[:, 1] - bend[:, 0]).square().mean()
        loss.backward()
        trainer.step()
    return trainer.digest()


@case
def autocast():
    return simple(context=lambda: torch.autocast(DEVICE, torch.bfloat16))


@case
def dropout():
    return simple(dropout=0.3)


@case
def blocks_without_a_root():
    trainer = Trainer()
    for _ in range(2):
        x = trainer.batch()
        for block in trainer.model.blocks:
            x = block(x)
        x.square().mean().backward()
        trainer.step()
    return trainer.digest()


@case
def a_step_that_raises_half_way():
    trainer = Trainer()
    grad = trainer.loss()
    grad.register_hook(lambda _: 1 / 0)
    try:
        grad.backward()
    except ZeroDivisionError:
        trainer.optimizer.zero_grad()
    trainer.loss().backward()
    trainer.step()
    return trainer.digest()


json.dump(RESULTS, sys.stdout)
print()
