# SPDX-License-Identifier: Apache-2.0
"""Runs the examples one after the other: examples.py FOLDER DEVICE [--trace] NAME...

Each saves NAME.pt, with --trace also NAME.trace: [action, bytes] in order, and on the
device NAME.sums: for each optimizer step, what the library says of memory beside what the
modules' and the optimizer's own storages sum up to.
"""

import gc
import json
import runpy
import sys
from pathlib import Path

import torch
from categories import block_bytes, ours, state
from torch import nn
from torch.multiprocessing.reductions import StorageWeakRef
from torch.nn.modules.module import register_module_forward_hook
from torch.optim.optimizer import register_optimizer_step_post_hook

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
SMALL = ("--layers=3", "--hidden=64", "--vocab=256", "--batch=2", "--sequence=48")
RUNS = {
    "gpt": ("train_gpt.py", *SMALL, "--dropout=0"),
    "mlp": ("train_mlp.py", "--layers=3", "--batch=64"),
    "llama": ("train_llama.py", *SMALL, "--intermediate=160", "--kv-heads=4"),
    "llama-bf16": ("train_llama.py", *SMALL, "--attention=eager", "--dtype=bfloat16"),
    "llama-checkpoint": ("train_llama.py", *SMALL, "--attention=eager", "--checkpoint"),
    "llama-grouped": ("train_llama.py", *SMALL),
    "lora": ("train_lora.py", *SMALL, "--attention=eager"),
    "lora-dropout": ("train_lora.py", *SMALL, "--dropout=0.1", "--checkpoint"),
    "resnet": ("train_resnet.py", "--batch=4", "--side=32"),
    "resnet-amp": (
        "train_resnet.py",
        "--batch=4",
        "--side=32",
        "--amp",
        "--channels-last",
    ),
    "trainer": ("train_trainer.py", *SMALL, "--attention=eager", "--accumulate=2"),
    "trainer-bf16": (
        *("train_trainer.py", *SMALL, "--attention=eager", "--accumulate=2"),
        *("--precision=bfloat16", "--checkpoint", "--optimizer=adafactor"),
    ),
}


MADE = set()  # storages of what modules returned, for a detached loss


def remember_made(module, args, output):
    pending = [output]
    while pending:
        value = pending.pop()
        if isinstance(value, torch.Tensor) and value.requires_grad:
            MADE.add(StorageWeakRef(value.untyped_storage()))
        elif isinstance(value, dict):
            pending += value.values()
        elif isinstance(value, (list, tuple)):
            pending += value


def storages(tensors):
    return {t.untyped_storage()._cdata for t in tensors}


def sums(optimizer):
    """Of whatever model there is: the script that made it is not ours."""
    objects = gc.get_objects()
    modules = [o for o in objects if isinstance(o, nn.Module)]
    kept = [t for m in modules for t in m.parameters(recurse=False)]
    kept += [t for m in modules for t in m.buffers(recurse=False)]
    tensors = [o for o in objects if isinstance(o, torch.Tensor)]
    # Also of what a model marks, such as the input of adapted layers.
    gradients = [t.grad for t in tensors if t.is_leaf and t.grad is not None]
    known = storages([*kept, *gradients, *state(optimizer)])
    rest = [t for t in tensors if not storages([t]) & known]
    known = {made.cdata for made in MADE}
    made = [t for t in rest if t.requires_grad or storages([t]) & known]
    known = storages(made)
    MADE.difference_update([gone for gone in MADE if gone.expired()])
    return ours(), {
        "parameter": block_bytes(kept),
        "gradient": block_bytes(gradients),
        "optimizer_state": block_bytes(state(optimizer)),
        "activation": block_bytes(made),
        # Everything else are batches, and what the script adds up.
        "input": block_bytes(t for t in rest if not storages([t]) & known),
        "temporary": 0,
        "unknown": 0,
    }


def main(folder, device, *names):
    traced = "--trace" in names
    told = []
    if device == "cuda":
        register_module_forward_hook(remember_made)
        register_optimizer_step_post_hook(lambda own, *_: told.append(sums(own)))
    for name in (n for n in names if n != "--trace"):
        if traced:
            torch.cuda.memory._record_memory_history(
                "all", context=None, max_entries=1_000_000, clear_history=True
            )
        script, *arguments = RUNS[name]
        path = f"{folder}/{name}"
        sys.argv = [script, *arguments, f"--device={device}", f"--save={path}.pt"]
        runpy.run_path(str(EXAMPLES / script), run_name="__main__")
        Path(f"{path}.sums").write_text(json.dumps(told))
        told.clear()
        if traced:
            (trace,) = torch.cuda.memory._snapshot()["device_traces"]
            found = [(entry["action"], entry["size"]) for entry in trace]
            Path(f"{path}.trace").write_text(json.dumps(found))
        gc.collect()


if __name__ == "__main__":
    main(*sys.argv[1:])
