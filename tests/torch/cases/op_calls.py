# SPDX-License-Identifier: Apache-2.0
"""Calls of aten operators, harvested from PyTorch's own operator database.

A call is (arguments, keywords) on CPU tensors, as it reaches the dispatcher.

python op_calls.py FILE [ENTRY...]   harvests into FILE; on the CPU, without the stack
"""

from __future__ import annotations

import functools
import itertools
import pickle
import sys
import types
import unittest
import warnings
from typing import Any, Callable, Dict, Iterable, List, Sequence, Tuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

Call = Tuple[Tuple[Any, ...], Dict[str, Any]]
Calls = Dict[str, List[Call]]  # by overload: aten.add.Tensor

SAMPLES = 3  # of one database entry and dtype
CALLS = 3  # kept of one overload
ELEMENTS = 4096  # larger tensors only cost time
DTYPES = (torch.float32, torch.int64, torch.bool, torch.complex64, torch.bfloat16)


def database() -> List[Any]:
    """PyTorch's tests import expecttest, which the database itself never uses."""
    if "expecttest" not in sys.modules:
        stub = types.ModuleType("expecttest")
        stub.TestCase = unittest.TestCase  # type: ignore[attr-defined]
        sys.modules["expecttest"] = stub
    from torch.testing._internal.common_methods_invocations import op_db

    return list(op_db)


class Clones:
    """Copies tensors with their layout; what shared a storage still does."""

    def __init__(self, device: str = "cpu") -> None:
        self.device = device
        self.storages: Dict[int, torch.Tensor] = {}

    def __call__(self, tensor: torch.Tensor) -> torch.Tensor:
        if tensor.layout is not torch.strided or tensor.is_meta:
            return tensor.clone().to(self.device)
        storage = tensor.untyped_storage()
        if storage.nbytes() == 0:
            return torch.empty_strided(
                tensor.size(), tensor.stride(), dtype=tensor.dtype, device=self.device
            )
        if storage.data_ptr() not in self.storages:
            flat = torch.empty(0, dtype=torch.uint8).set_(storage)
            self.storages[storage.data_ptr()] = flat.clone().to(self.device)
        copy = torch.empty(0, dtype=tensor.dtype, device=self.device)
        copy.set_(
            self.storages[storage.data_ptr()].untyped_storage(),
            tensor.storage_offset(),
            tensor.size(),
            tensor.stride(),
        )
        if tensor.is_conj():
            copy = copy.conj()
        return torch._neg_view(copy) if tensor.is_neg() else copy

    def all(self, values: Any) -> Any:
        return tree_map_only(torch.Tensor, self, values)


def tensors_of(values: Any) -> List[torch.Tensor]:
    found: List[torch.Tensor] = []
    tree_map_only(torch.Tensor, found.append, values)
    return found


def fits(values: Any) -> bool:
    tensors = tensors_of(values)
    if not all(type(t) is torch.Tensor and t.numel() <= ELEMENTS for t in tensors):
        return False
    others = tree_map_only(torch.Tensor, lambda _: None, values)
    try:
        pickle.dumps(others)
    except (TypeError, AttributeError, pickle.PicklingError):
        return False
    return all(t.layout is torch.strided for t in tensors)


class Harvest(TorchDispatchMode):
    """Keeps the first few calls of each overload, before they run."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: Calls = {}

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        known = self.calls.setdefault(str(func), [])
        if func.namespace == "aten" and len(known) < CALLS and fits((args, kwargs)):
            known.append(Clones().all((args, kwargs)))
        return func(*args, **kwargs)


def forward_and_backward(entry: Any, sample: Any) -> None:
    result = entry.op(sample.input, *sample.args, **sample.kwargs)
    wanting = [t for t in tensors_of(result) if t.requires_grad]
    if wanting:
        torch.autograd.backward(wanting, [torch.ones_like(t) for t in wanting])


def samples(entry: Any) -> Iterable[Callable[[], None]]:
    for dtype in DTYPES:
        if dtype not in entry.dtypes:
            continue
        grad = entry.supports_autograd and dtype is torch.float32
        found = entry.sample_inputs("cpu", dtype, requires_grad=grad)
        for sample in itertools.islice(found, SAMPLES):
            yield functools.partial(forward_and_backward, entry, sample)


def harvest(only: Sequence[str] = ()) -> Calls:
    """What an entry cannot do on this CPU is left out."""
    kept = Harvest()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for entry in database():
            if only and entry.name not in only:
                continue
            torch.manual_seed(0)
            try:
                for run in samples(entry):
                    with kept:
                        run()
            except Exception:
                continue
    return kept.calls


def overload(name: str) -> Any:
    found = torch.ops
    for part in name.split("."):
        found = getattr(found, part)
    return found


if __name__ == "__main__":
    with open(sys.argv[1], "wb") as file:
        pickle.dump(harvest(sys.argv[2:]), file)
