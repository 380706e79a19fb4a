# SPDX-License-Identifier: Apache-2.0
"""Trains small models, one after the other.

python train_models.py DEVICE FOLDER [--drawn FOLDER] [--trace] NAME...
  FOLDER   gets NAME.pt: losses, gradients, parameters, and what was drawn at random
  --drawn  a folder of another run, whose random numbers the CPU takes
  --trace  what the caching allocator did, too: [action, bytes] in order
  --alone  the backward on the program's own thread, as the CPU's
Prints "start NAME", then "done NAME" or "error NAME TEXT". A simulated device that finds
a wrong number ends the process, so the caller goes on behind what was started last.
"""

import argparse
import ctypes
import gc
import warnings
from pathlib import Path

import torch
import torch._dynamo  # as optimizers do
from models import MODELS, Place

ENTRIES = 1_000_000
NODES = 5000  # more than a model makes


class Count:
    """Autograd's numbers of nodes, by which it orders a backward through a backward.

    Each thread counts for itself. A model begins where it would alone or behind others.
    """

    def __init__(self, device):
        folder = Path(torch.__file__).parent / "lib"
        library = ctypes.CDLL(str(folder / "libtorch_cpu.so"))
        self._next = library._ZN2at15sequence_number4peekEv
        self._raise = library._ZN2at15sequence_number17get_and_incrementEv
        self._next.restype = ctypes.c_uint64
        self._device = device

    def begin(self, number):
        self._begun = number
        self._on_both(lambda: self._raise_to(number))

    def made(self):
        """By the device's thread and by this one."""
        return [number - self._begun for number in self._on_both(self._next)]

    def _raise_to(self, number):
        assert self._next() <= number, "models train in their order"
        while self._next() < number:
            self._raise()

    def _on_both(self, call):
        x = torch.zeros((), device=self._device, requires_grad=True)
        x.register_hook(lambda _: found.append(call()))
        found = []
        x.backward(torch.zeros_like(x))
        return [*found, call()]


def trace_of(device):
    snapshot = torch.cuda.memory._snapshot()
    (trace,) = snapshot["device_traces"]
    assert len(trace) < ENTRIES, "the history is cut"
    return [(entry["action"], entry["size"]) for entry in trace]


def train(name, options, count):
    drawn = None
    if options.drawn and (options.drawn / f"{name}.pt").exists():
        drawn = torch.load(options.drawn / f"{name}.pt")["drawn"]
    place = Place(options.device, drawn)
    torch.manual_seed(0)
    if options.trace:
        torch.cuda.memory._record_memory_history(
            "all", context=None, max_entries=ENTRIES, clear_history=True
        )
    count.begin(NODES * (1 + list(MODELS).index(name)))
    MODELS[name].train(place)
    found = {"nodes": count.made()}
    if options.trace:
        found["trace"] = trace_of(options.device)
    torch.save({**place.result(), **found}, options.folder / f"{name}.pt")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("device")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--drawn", type=Path)
    parser.add_argument("--trace", action="store_true")
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("names", nargs="*")
    options = parser.parse_intermixed_args()
    warnings.simplefilter("ignore")
    # The allocator keeps one segment, and each thread what it makes once: a model finds
    # the same behind others as alone.
    kept = torch.nn.Linear(8, 8, device=options.device)
    kept(torch.ones(1, 8, device=options.device)).sum().backward()
    if options.device != "cpu":
        torch.cuda.empty_cache()
    count = Count(options.device)
    torch.autograd.set_multithreading_enabled(not options.alone)
    gc.freeze()  # what was imported stays, and is not looked at after each model
    for name in options.names:
        print("start", name, flush=True)
        try:
            train(name, options, count)
            print("done", name, flush=True)
        except Exception as error:
            text = f"{type(error).__name__}: {error}".splitlines()[0]
            print("error", name, text[:300], flush=True)
        gc.collect()
        if options.device != "cpu":
            torch.cuda.synchronize()
            torch.cuda.empty_cache()
    del kept


if __name__ == "__main__":
    main()
