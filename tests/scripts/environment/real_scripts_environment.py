# SPDX-License-Identifier: Apache-2.0
"""What scripts/real-scripts puts beside a script that it may not change.

With this folder on PYTHONPATH, PyTorch calls begin() when `import torch` ends. All random
numbers are seeded then. The folder REAL_SCRIPTS_COUNTED takes two files a process: the
losses, one a line as its backward begins, and what PyTorch itself counted, at exit.
"""

import atexit
import functools
import json
import os
import random
import sys
from typing import Any, Callable, TextIO

SEED = 0
_highest: dict[str, int] = {}
_files: dict[int, TextIO] = {}


def begin() -> None:
    import numpy

    torch = sys.modules["torch"]
    random.seed(SEED)
    numpy.random.seed(SEED)
    torch.manual_seed(SEED)
    folder = os.environ.get("REAL_SCRIPTS_COUNTED")
    if folder:
        atexit.register(write_counts, torch, os.getpid(), folder)
        keep_peaks(torch)
        for owner in (torch.autograd, torch.autograd.graph):
            original = owner._engine_run_backward
            owner._engine_run_backward = note_losses(torch, original, folder)


def note_losses(torch: Any, original: Callable, folder: str) -> Callable:
    """Before a backward, the value of each of its roots that is one number. In a graph
    that is captured none has one."""
    values = os.environ.get("ACTSWAP_SIM_COMPUTE", "values") == "values"

    @functools.wraps(original)
    def run(roots: Any, *args: Any, **kwargs: Any) -> Any:
        if torch._C._current_graph_task_id() == -1:
            captured = (
                torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()
            )
            read = values and not captured
            shown = [
                repr(root.detach().item()) if read else "?"
                for root in roots
                if isinstance(root, torch.Tensor)
                and root.numel() == 1
                and root.device.type in ("cpu", "cuda")
                and not isinstance(root, torch._subclasses.FakeTensor)
            ]
            if os.getpid() not in _files:
                path = os.path.join(folder, f"{os.getpid()}.losses")
                _files[os.getpid()] = open(path, "a", encoding="utf-8")
            print(*shown, file=_files[os.getpid()], flush=True)
        return original(roots, *args, **kwargs)

    return run


def keep_peaks(torch: Any) -> None:
    """A script may reset the peak; what it was until then counts all the same."""
    reset = torch._C._cuda_resetPeakMemoryStats

    def reset_and_keep(device: int) -> None:
        note_peak(torch)
        reset(device)

    torch._C._cuda_resetPeakMemoryStats = reset_and_keep


def note_peak(torch: Any) -> None:
    for name in ("max_memory_allocated", "max_memory_reserved"):
        now = getattr(torch.cuda, name)()
        _highest[name] = max(now, _highest.get(name, 0))


def write_counts(torch: Any, pid: int, folder: str) -> None:
    if os.getpid() != pid or not torch.cuda.is_initialized():
        return
    note_peak(torch)
    drawn = [generator.get_offset() for generator in torch.cuda.default_generators]
    path = os.path.join(folder, f"{pid}.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"pid": pid, "drawn": max(drawn), **_highest}, file)
