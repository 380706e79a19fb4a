# SPDX-License-Identifier: Apache-2.0
"""examples/train_gpt.py with its forward under another package's offloading.

peers.py PEER [arguments of train_gpt.py]

PEER is none, or what a user would put around the forward by hand:

save_on_cpu          torch.autograd.graph.save_on_cpu(pin_memory=True)
save_on_cpu,pageable the same with ordinary host memory, as is its default
trl                  TRL's OffloadActivations as its trainers set it up: streams, pinned
trl,no-streams       the same on the stream that computes
checkpoint           torch.utils.checkpoint around each block, non-reentrant
"""

from __future__ import annotations

import contextlib
import importlib.util
import sys
from pathlib import Path
from typing import Any, Callable, ContextManager

import torch
from torch.utils.checkpoint import checkpoint

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "train_gpt.py"
Around = Callable[[], ContextManager[Any]]


def trl(model: torch.nn.Module, **options: bool) -> Around:
    from trl.models.activation_offloading import get_act_offloading_ctx_manager

    manager = get_act_offloading_ctx_manager(model, **options)
    return lambda: manager


def save_on_cpu(pin_memory: bool) -> Around:
    return lambda: torch.autograd.graph.save_on_cpu(pin_memory=pin_memory)


def checkpoint_blocks(model: Any) -> Around:
    for block in model.blocks:
        block.forward = Checkpointed(block.forward)
    return contextlib.nullcontext


class Checkpointed:
    def __init__(self, forward: Callable[..., Any]) -> None:
        self.forward = forward

    def __call__(self, *inputs: Any) -> Any:
        return checkpoint(self.forward, *inputs, use_reentrant=False)


PEERS: dict[str, Callable[[torch.nn.Module], Around]] = {
    "none": lambda model: contextlib.nullcontext,
    "save_on_cpu": lambda model: save_on_cpu(True),
    "save_on_cpu,pageable": lambda model: save_on_cpu(False),
    "trl": lambda model: trl(model, use_streams=True),
    "trl,no-streams": lambda model: trl(model, use_streams=False),
    "checkpoint": checkpoint_blocks,
}


def main() -> None:
    peer = PEERS[sys.argv.pop(1)]
    spec = importlib.util.spec_from_file_location("train_gpt", EXAMPLE)
    assert spec and spec.loader
    example: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)

    options = example.parse_arguments()
    make_model = example.make_model

    def make(options: Any) -> torch.nn.Module:
        model = make_model(options)
        around, forward = peer(model), model.forward

        def wrapped(*inputs: torch.Tensor) -> Any:
            with around():
                return forward(*inputs)

        model.forward = wrapped
        return model

    example.make_model = make
    example.train(options)


if __name__ == "__main__":
    main()
