# SPDX-License-Identifier: Apache-2.0
"""Calls operators on the CPU and on the device and compares every bit.

python operators.py CALLS WHICH FIRST STEP
  CALLS  harvested by op_calls.py
  WHICH  `calls` as harvested, or `writes`: operators that write, in every variant
  FIRST  the first operator, and every STEPth after it: a simulated device that finds a
         wrong number ends the process, and the caller goes on behind it
Prints "start NAME" and "done NAME JSON", JSON a list of [variant, outcome] with the
outcomes `equal`, `refused` (by the CPU), or what is wrong.
"""

from __future__ import annotations

import itertools
import json
import pickle
import sys
import warnings
from typing import Any, Iterator, List, Sequence, Tuple

import torch
from op_calls import Call, Calls, Clones, overload, tensors_of
from op_writes import made, sources, variants, written_overloads
from torch.utils._pytree import tree_map_only

CALLS_EACH = 2


def bits(tensor: torch.Tensor) -> torch.Tensor:
    plain = tensor.cpu().resolve_conj().resolve_neg()
    return (
        torch.empty(plain.numel(), dtype=plain.dtype)
        .copy_(plain.reshape(-1))
        .view(torch.uint8)
    )


def storage_bits(tensor: torch.Tensor) -> torch.Tensor:
    """All of its storage, so that a write beside a strided tensor shows."""
    flat = torch.empty(0, dtype=torch.uint8, device=tensor.device)
    return flat.set_(tensor.untyped_storage()).cpu()


def sizes_of(values: Any) -> List[int]:
    return [t.untyped_storage().nbytes() for t in tensors_of(values)]


def differing(cpu: Any, device: Any, before: Sequence[int] = ()) -> str:
    """Empty if equal. `before`, the storages' sizes: look beside the tensors, too."""
    left, right = tensors_of(cpu), tensors_of(device)
    if len(left) != len(right):
        return f"{len(right)} tensors instead of {len(left)}"
    for i, (a, b) in enumerate(zip(left, right)):
        if (a.dtype, a.shape) != (b.dtype, b.shape):
            return f"{b.dtype} {list(b.shape)} instead of {a.dtype} {list(a.shape)}"
        if a.layout is not torch.strided or a._is_zerotensor():
            continue
        if not torch.equal(bits(a), bits(b)) and not torch.equal(
            torch.nan_to_num(a.resolve_conj()), torch.nan_to_num(b.cpu().resolve_conj())
        ):
            return f"tensor {i} differs"
        # A resized or newly laid out= has other bytes beside it for good reasons.
        kept = before and before[i] == a.untyped_storage().nbytes()
        if kept and a.stride() == b.stride() and not torch.isnan(a).any():
            if not torch.equal(storage_bits(a), storage_bits(b)):
                return f"memory beside tensor {i} differs"
    return ""


def on_device(call: Call) -> Call:
    moved = Clones("cuda").all(call)
    return tree_map_only(torch.device, lambda _: torch.device("cuda"), moved)


def compare(op: Any, call: Call) -> str:
    cpu, device = Clones().all(call), on_device(call)
    before = sizes_of(cpu)
    try:
        expected = op(*cpu[0], **cpu[1])
    except Exception:
        return "refused"
    try:
        result = op(*device[0], **device[1])
        torch.cuda.synchronize()
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0][:150]}"
    return differing(expected, result) or differing(cpu, device, before) or "equal"


def as_harvested(calls: Calls) -> Iterator[Tuple[str, Iterator[Tuple[str, str]]]]:
    for name in sorted(calls):
        op = overload(name)
        yield name, (("contiguous", compare(op, call)) for call in calls[name])


def writes(calls: Calls) -> Iterator[Tuple[str, Iterator[Tuple[str, str]]]]:
    def outcomes(op: Any) -> Iterator[Tuple[str, str]]:
        known: List[Call] = list(sources(op, calls))[:CALLS_EACH]
        for call in known or made(op):
            for variant, changed in variants(op, call):
                yield variant, compare(op, changed)

    for name, op in sorted(written_overloads().items()):
        yield name, outcomes(op)


def main(path: str, which: str, first: int, step: int) -> None:
    warnings.simplefilter("ignore")
    with open(path, "rb") as file:
        calls = {name: known for name, known in pickle.load(file).items() if known}
    cases = as_harvested(calls) if which == "calls" else writes(calls)
    for name, outcomes in itertools.islice(cases, first, None, step):
        print("start", name, flush=True)
        print("done", name, json.dumps(list(outcomes)), flush=True)
    print("end", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
