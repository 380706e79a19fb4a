# SPDX-License-Identifier: Apache-2.0
"""Trains programs one after the other: matrix.py STEPS BALLASTS NAME...

BALLASTS is a JSON object: how many bytes are taken before each program begins, so that
one budget means the same share to all of them. Prints a line a program: its name and, as
JSON, a digest of each step, what its memory was, and what was left of it.
"""

import gc
import hashlib
import json
import sys
import warnings
from typing import Any, Dict, Iterator

import torch
from matrix_models import PROGRAMS, Program
from matrix_packages import NEEDS

from actswap_torch import _pack

assert NEEDS
SETTLED = 8  # steps, after which nothing more is pinned


def level() -> int:
    """Without what the allocator rounds up."""
    gc.collect()
    return torch.cuda.memory_stats()["requested_bytes.all.current"]


def tensors(program: Program, last: bool) -> Iterator[torch.Tensor]:
    yield torch.get_rng_state()
    yield torch.cuda.get_rng_state()
    for parameter in program.parameters():
        if parameter.grad is not None:
            yield parameter.grad
    for model in program.models if last else ():
        yield from (t for t in model.state_dict().values() if torch.is_tensor(t))


def digest(found: Iterator[torch.Tensor]) -> str:
    seen = hashlib.sha256()
    for tensor in found:
        plain = tensor.detach().cpu().contiguous().flatten()
        seen.update(plain.view(torch.uint8).numpy().tobytes())
    return seen.hexdigest()[:16]


def train(name: str, steps: int, ballast: int) -> Dict[str, Any]:
    before, now = level(), torch.cuda.memory_allocated()
    base = max(now, ballast)
    held = torch.empty(base - now, dtype=torch.uint8, device="cuda")
    torch.manual_seed(0)
    program = PROGRAMS[name]()
    said: Dict[str, Any] = {"digests": [], "static": 0, "forward": 0, "pinned": []}
    said.update(varies=program.varies, moved=0)
    torch.cuda.reset_peak_memory_stats()
    for step in range(steps):
        said["static"] = max(said["static"], torch.cuda.memory_allocated() - base)
        out = _pack.stats()["out_bytes"]
        losses = program.step()
        found = (
            t for part in (losses, tensors(program, step == steps - 1)) for t in part
        )
        said["digests"].append(digest(found))
        del losses, found
        program.finish()
        stats = _pack.stats()
        said["forward"] = max(said["forward"], stats["after_forward_bytes"] - base)
        said["pinned"].append(stats["pinned_bytes"])
        said["moved"] = max(said["moved"], stats["out_bytes"] - out)
    said["peak"] = torch.cuda.max_memory_allocated() - base
    pinned = said["pinned"]
    said["grew"] = pinned[-1] - pinned[min(SETTLED, steps - 1)]
    said["pinned"] = pinned[-1]
    del program, held
    said["left"] = level() - before
    said["pages"] = _pack.stats()["pages"]
    return said


def main() -> None:
    warnings.simplefilter("ignore")
    steps, ballasts = int(sys.argv[1]), json.loads(sys.argv[2])
    torch.zeros(1, device="cuda")
    for name in sys.argv[3:] or PROGRAMS:
        print(name, json.dumps(train(name, steps, ballasts.get(name, 0))), flush=True)


main()
