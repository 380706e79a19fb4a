# SPDX-License-Identifier: Apache-2.0
"""What a step of GPTs of several depths takes: depths.py LAYERS... Prints, for each, the
bytes that the forward leaves and the most that its backward takes, both beyond what was
there before; and of a deep one that is large how long its forward takes, by the device's
clock, its backward, its blocks' forwards and, of the last block, what comes behind the
last tensor that it saves."""

import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, List, Tuple

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "examples"))
from train_gpt import GPT  # noqa: E402

POLICY = os.environ.get("ACTSWAP_POLICY", "off")
SMALL = {"hidden": 64, "heads": 4, "sequence": 128, "batch": 4}
LARGE = {"hidden": 2048, "heads": 16, "sequence": 2048, "batch": 4}


def make(layers: int, hidden: int, heads: int, sequence: int, batch: int) -> Any:
    options = {"hidden": hidden, "heads": heads, "sequence": sequence, "layers": layers}
    options.update(vocab=64, dropout=0.0, attention="fused")
    with torch.device("cuda"):
        model = GPT(SimpleNamespace(**options))
        tokens = torch.zeros(batch, sequence, dtype=torch.long)
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    return model, torch.optim.SGD(model.parameters(), lr=0.1), tokens


def bytes_of(layers: int) -> Tuple[int, int]:
    model, optimizer, tokens = make(layers, **SMALL)
    for _ in range(2):
        before = torch.cuda.memory_allocated()
        loss = model(tokens, tokens)
        after = torch.cuda.memory_allocated() - before
        torch.cuda.reset_peak_memory_stats()
        loss.backward()
        peak = torch.cuda.max_memory_allocated() - before
        del loss
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
    return after, peak


def event() -> Any:
    found = torch.cuda.Event(enable_timing=True)
    found.record()
    return found


def times_of(layers: int) -> List[float]:
    model, optimizer, tokens = make(layers, **LARGE)
    marks: List[Any] = []
    first, last = model.blocks[0], model.blocks[-1]
    first.register_forward_pre_hook(lambda *_: marks.append(event()))
    if POLICY == "off":  # inside of a block, which would be left alone otherwise
        last.mlp[2].register_forward_pre_hook(lambda *_: marks.append(event()))
    last.register_forward_hook(lambda *_: marks.append(event()))
    for _ in range(3):
        marks.clear()
        begin = event()
        loss = model(tokens, tokens)
        middle = event()
        loss.backward()
        end = event()
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
        torch.cuda.synchronize()
    forward, backward = begin.elapsed_time(middle), middle.elapsed_time(end)
    return [forward, backward, *(mark.elapsed_time(marks[-1]) for mark in marks[:-1])]


if __name__ == "__main__":
    bytes_by_depth = {layers: bytes_of(layers) for layers in map(int, sys.argv[1:])}
    print(json.dumps({"bytes": bytes_by_depth, "times": times_of(36)}))
