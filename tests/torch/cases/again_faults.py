# SPDX-License-Identifier: Apache-2.0
"""Models whose blocks do other things when they are run again, at once or later."""

import io
import random
from typing import Any, Callable

import torch
import torch.nn.functional as F
from again_models import BLOCKS, KINDS, Block, block_of, kind, model_of

__all__ = ["KINDS"]


@kind
def raises_again() -> Any:
    class RaisesAgain(Block):
        def forward(self, x: Any) -> Any:
            if torch._C._current_graph_task_id() != -1:
                raise ValueError("not in a backward")
            return self.body(x)

    return model_of(RaisesAgain, "RaisesAgainModel")


@kind
def raises_once() -> Any:
    """In the first forward, in the midst of a trial; the script goes on."""
    raised = []

    def forward(self: Any, x: Any) -> Any:
        out = self.body(F.dropout(x, 0.1))
        if len(raised) < 2:
            raised.append(1)
            raise ValueError("not this time")
        return out

    def loss_of(x: Any) -> Any:
        while True:
            try:
                return model(x).square().mean()
            except ValueError:
                pass

    model = block_of("RaisesOnce", forward)
    model.loss_of, model.left = loss_of, lambda: len(raised)
    return model


@kind
def other_path() -> Any:
    def forward(self: Any, x: Any) -> Any:
        if torch._C._current_graph_task_id() != -1:
            return self.body(x).exp()
        return self.body(x)

    return block_of("OtherPath", forward)


@kind
def other_values() -> Any:
    def forward(self: Any, x: Any) -> Any:
        off = 1 if torch._C._current_graph_task_id() != -1 else 0
        return self.body(x + off)

    return block_of("OtherValues", forward)


@kind
def other_draw() -> Any:
    def forward(self: Any, x: Any) -> Any:
        if torch._C._current_graph_task_id() != -1:
            random.random()
        return self.body(x)

    return block_of("OtherDraw", forward)


@kind
def stepped_between() -> Any:
    model = block_of("SteppedBetween", lambda self, x: self.body(x))

    def between() -> None:
        with torch.no_grad():
            for block in model.blocks:
                block.up.bias.add_(0.5)

    model.between = between
    return model


@kind
def trained_mode() -> Any:
    model = block_of(
        "TrainedMode", lambda self, x: F.dropout(self.body(x), 0.4, self.training)
    )
    model.between = model.eval
    model.before = model.train
    return model


@kind
def starts_late() -> Any:
    """Other values from the fiftieth step on, by a count that nobody can see."""

    def make() -> Callable:
        calls = io.BytesIO()

        def forward(self: Any, x: Any) -> Any:
            again = torch._C._current_graph_task_id() != -1
            calls.write(b"" if again else b".")
            return self.body(x + (again and calls.tell() > 49 * BLOCKS))

        return forward

    model = block_of("StartsLate", make())
    model.steps, model.refused = 52, []
    return model


@kind
def starts_on_host() -> Any:
    """The same in memory of the host, which samples do not look at."""

    def make() -> Callable:
        calls, ones = io.BytesIO(), torch.ones(64)

        def forward(self: Any, x: Any) -> Any:
            again = torch._C._current_graph_task_id() != -1
            calls.write(b"" if again else b".")
            many = ones + (again and calls.tell() > 5 * BLOCKS)
            mean = (many * self.up.bias[0].cpu()).mean().cuda()
            return self.body(x) + (mean - mean.detach())

        return forward

    model = block_of("StartsOnHost", make())
    model.steps = 30
    return model
