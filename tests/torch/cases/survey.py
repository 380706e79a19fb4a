# SPDX-License-Identifier: Apache-2.0
"""Runs samples of PyTorch's operator database on the device and on the CPU.

Reads jobs from standard input, one a line: the entry's place in the database, a dtype
(or `errors`: the calls that the entry says are wrong), the first sample, how many at most
(0: all). Writes one JSON value a line into the file descriptor that the first argument
names:
  {"start": N}                            before sample N runs
  {"sample": N, "forward": ..., "backward": ...}
  {"end": true, "grad": BOOL}             grad: the entry is differentiable in this dtype
Outcomes: `equal` (every bit), `close` (within PyTorch's own tolerance of the dtype),
`random` (the CPU draws other numbers: shapes compared, and two calls with one seed),
`refused` (by the CPU), null (nothing to do), or what is wrong.
"""

from __future__ import annotations

import json
import os
import re
import sys
import warnings
from typing import Any, Callable, Dict, List, Optional, Tuple
from unittest import mock

import torch
from op_calls import database, tensors_of
from torch.utils._pytree import tree_map

ERRORS = "errors"
Outcome = Optional[str]
Results = Tuple[List[Any], Optional[List[Any]]]  # of the operator, of its backward


class Fresh:
    """Copies of a sample's values on a device; layout and sharing are kept."""

    def __init__(self, device: str) -> None:
        self.name = device
        self.storages: Dict[int, torch.Tensor] = {}

    def place(self, device: torch.device) -> torch.device:
        """What a sample for the device keeps on the host stays there."""
        return torch.device(self.name) if device.type == "cuda" else device

    def tensor(self, tensor: torch.Tensor) -> torch.Tensor:
        place, plain = self.place(tensor.device), tensor.detach()
        if tensor.is_meta:
            return plain
        if type(tensor) is not torch.Tensor and type(tensor) is not torch.nn.Parameter:
            return plain.clone().to(place)
        if plain.layout is not torch.strided or not plain.untyped_storage().nbytes():
            return plain.clone().to(place)
        storage = plain.untyped_storage()
        if storage.data_ptr() not in self.storages:
            flat = torch.empty(0, dtype=torch.uint8, device=plain.device).set_(storage)
            self.storages[storage.data_ptr()] = flat.to(place, copy=True)
        copy = torch.empty(0, dtype=plain.dtype, device=place).set_(
            self.storages[storage.data_ptr()].untyped_storage(),
            plain.storage_offset(),
            plain.size(),
            plain.stride(),
        )
        if plain.is_conj():
            copy = copy.conj()
        return torch._neg_view(copy) if plain.is_neg() else copy

    def __call__(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return self.tensor(value).requires_grad_(value.requires_grad)
        if isinstance(value, torch.device):
            return self.place(value)
        if isinstance(value, str) and value.split(":")[0] == "cuda":
            return self.name
        if isinstance(value, torch.Generator):
            place = self.place(value.device)
            return torch.Generator(place).manual_seed(value.initial_seed())
        return value

    def all(self, values: Any) -> Any:
        return tree_map(self, values)


def differentiable(values: Any) -> List[torch.Tensor]:
    return [t for t in tensors_of(values) if t.requires_grad]


def weights(results: List[torch.Tensor]) -> List[torch.Tensor]:
    """The same for every device: made on the CPU."""
    generator = torch.Generator().manual_seed(3)
    found = []
    for result in results:
        plain = torch.rand(result.shape, generator=generator, dtype=torch.float32)
        made = plain.to(result.dtype).to(result.device)
        if result.layout is not torch.strided:
            made = made.to_sparse(layout=result.layout)
        found.append(made)
    return found


def call(entry: Any, sample: Any, device: str, seed: int) -> Results:
    values = Fresh(device).all((sample.input, list(sample.args), dict(sample.kwargs)))
    torch.manual_seed(seed)
    result = entry.op(values[0], *values[1], **values[2])
    processed = sample.output_process_fn_grad(result)
    wanting, leaves = differentiable(processed), differentiable(values)
    gradients: Optional[List[Any]] = None
    if wanting and leaves:
        gradients = list(
            torch.autograd.grad(wanting, leaves, weights(wanting), allow_unused=True)
        )
    if device != "cpu":
        torch.cuda.synchronize()
    return flat(processed), gradients


def flat(values: Any) -> List[Any]:
    found: List[Any] = []
    tree_map(found.append, values)
    return found


def bits(tensor: torch.Tensor) -> torch.Tensor:
    plain = tensor.detach().cpu().resolve_conj().resolve_neg()
    flat = torch.empty(plain.numel(), dtype=plain.dtype).copy_(plain.reshape(-1))
    return flat.view(torch.uint8)


def same_bits(left: torch.Tensor, right: torch.Tensor) -> bool:
    if left.layout is not torch.strided or type(left) is not torch.Tensor:
        return False
    return torch.equal(bits(left), bits(right))


class Tolerance:
    """PyTorch's default of a dtype, or what the entry's own tests on a GPU allow."""

    atol: Optional[float] = None
    rtol: Optional[float] = None

    @classmethod
    def choose(cls, entry: Any, dtype: torch.dtype) -> None:
        cls.atol = cls.rtol = None
        for info in entry.decorators:
            if getattr(info, "device_type", None) not in (None, "cuda"):
                continue
            for override in getattr(info, "decorators", ()):
                known = getattr(override, "d", None)
                if not isinstance(known, dict) or dtype not in known:
                    continue
                atol, rtol = getattr(known[dtype], "atol", known[dtype]), 0.0
                rtol = getattr(known[dtype], "rtol", rtol)
                cls.atol, cls.rtol = max(cls.atol or 0, atol), max(cls.rtol or 0, rtol)


PLAIN = (torch.device, torch.storage.UntypedStorage)


def compare_one(expected: Any, got: Any, values: bool) -> Outcome:
    if not isinstance(expected, torch.Tensor):
        same = isinstance(expected, PLAIN) or expected == got or expected != expected
        return "equal" if same or not values else f"{got!r} instead of {expected!r}"
    if (expected.dtype, expected.shape) != (got.dtype, got.shape):
        return (
            f"{got.dtype} {list(got.shape)} instead of "
            f"{expected.dtype} {list(expected.shape)}"
        )
    if expected.is_meta or not values:
        return "equal"
    if same_bits(expected, got):
        return "equal"
    try:
        torch.testing.assert_close(
            got.detach(),
            expected.detach(),
            equal_nan=True,
            check_device=False,
            atol=None if Tolerance.atol is None else max(Tolerance.atol, 1e-5),
            rtol=None if Tolerance.rtol is None else max(Tolerance.rtol, 1.3e-6),
        )
    except AssertionError as error:
        return f"differs: {error}"[:300]
    return "close"


def compare(expected: List[Any], got: List[Any], values: bool = True) -> Outcome:
    if len(expected) != len(got):
        return f"{len(got)} results instead of {len(expected)}"
    outcomes = [compare_one(e, g, values) for e, g in zip(expected, got)]
    bad = [o for o in outcomes if o not in ("equal", "close")]
    if bad:
        return bad[0]
    return "close" if "close" in outcomes else "equal"


def is_random(entry: Any, sample: Any, first: Results) -> bool:
    """Other numbers with another seed, also where the database's entry sets one."""
    seed = torch.manual_seed
    for more in range(1, 4):
        with mock.patch("torch.manual_seed", lambda n: seed(n + more)):
            again = call(entry, sample, "cpu", 1)
        if compare(first[0], again[0]) not in ("equal", "close"):
            return True
    return False


def said(error: BaseException) -> str:
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0]}"[:300]


UNWRITTEN = {"empty", "empty_like", "empty_strided", "empty_permuted", "new_empty"}
UNWRITTEN |= {"new_empty_strided"}


def outcome(entry: Any, sample: Any) -> Tuple[Outcome, Outcome]:
    try:
        expected = call(entry, sample, "cpu", 1)
    except Exception:
        return "refused", None
    try:
        got = call(entry, sample, "cuda", 1)
    except Exception as error:
        return said(error), None
    if entry.name in UNWRITTEN:
        return compare(expected[0], got[0], values=False), None
    if is_random(entry, sample, expected):
        return compare_random(entry, sample, expected, got)
    forward = compare(expected[0], got[0])
    if expected[1] is None:
        return forward, None
    return forward, compare(expected[1], got[1] or [])


def compare_random(
    entry: Any, sample: Any, expected: Results, got: Results
) -> Tuple[Outcome, Outcome]:
    again = call(entry, sample, "cuda", 1)
    found: List[Outcome] = [None, None]
    for i in range(2):
        if expected[i] is None:
            continue
        shapes = compare(expected[i] or [], got[i] or [], values=False)
        repeat = compare(got[i] or [], again[i] or [])
        found[i] = "random"
        if shapes != "equal":
            found[i] = shapes
        elif repeat != "equal":
            found[i] = f"one seed, two results: {repeat}"
    return found[0], found[1]


def spread(samples: List[Any], most: int) -> List[Tuple[int, Any]]:
    every = max(1, -(-len(samples) // most)) if most else 1
    return list(enumerate(samples))[::every]


def run(entry: Any, dtype: torch.dtype, first: int, most: int, say: Callable) -> None:
    grad = entry.supports_autograd and dtype in entry.supported_backward_dtypes("cuda")
    Tolerance.choose(entry, dtype)
    torch.manual_seed(0)
    samples = list(entry.sample_inputs("cuda", dtype, requires_grad=grad))
    for n, sample in spread(samples, most):
        if n < first:
            continue
        say({"start": n})
        forward, backward = outcome(entry, sample)
        say({"sample": n, "forward": forward, "backward": backward})
    say({"end": True, "grad": grad})


def raised(run: Callable[[], Any]) -> Optional[Exception]:
    try:
        run()
    except Exception as error:
        return error
    return None


def error_outcome(entry: Any, wrong: Any) -> Outcome:
    """`equal` if the device raises what the CPU does, or what the entry wants there."""

    def run(device: str) -> Any:
        sample = wrong.sample_input
        values = Fresh(device).all((sample.input, list(sample.args), dict(sample.kwargs)))
        result = entry.op(values[0], *values[1], **values[2])
        if device != "cpu":
            torch.cuda.synchronize()
        return result

    expected, got = raised(lambda: run("cpu")), raised(lambda: run("cuda"))
    if type(expected) is type(got):
        return "equal"
    wanted = isinstance(got, wrong.error_type) and re.search(wrong.error_regex, str(got))
    return "equal" if wanted else f"{got!r} instead of {expected!r}"[:300]


def run_errors(entry: Any, first: int, most: int, say: Callable) -> None:
    for n, wrong in spread(list(entry.error_inputs("cuda")), most):
        if n < first:
            continue
        say({"start": n})
        say({"sample": n, "forward": error_outcome(entry, wrong), "backward": None})
    say({"end": True, "grad": False})


def described(entry: Any) -> Dict[str, Any]:
    """Its name, and the dtypes that both devices have."""
    both = entry.supported_dtypes("cpu") & entry.supported_dtypes("cuda")
    name = ".".join(filter(None, (entry.name, entry.variant_test_name)))
    dtypes = sorted(str(d).split(".")[1] for d in both)
    return {"name": name, "dtypes": dtypes + [ERRORS] * bool(entry.error_inputs_func)}


def main(out: int) -> None:
    warnings.simplefilter("ignore")
    entries = database()

    def say(value: Any) -> None:
        os.write(out, (json.dumps(value) + "\n").encode())

    say({"entries": [described(entry) for entry in entries]})
    for line in sys.stdin:
        place, dtype, first, most = line.split()
        say({"start": -1})
        try:
            entry, bounds = entries[int(place)], (int(first), int(most))
            if dtype == ERRORS:
                run_errors(entry, *bounds, say)
            else:
                run(entry, getattr(torch, dtype), *bounds, say)
        except Exception as error:
            say({"sample": -1, "forward": said(error), "backward": None})
            say({"end": True, "grad": False})


if __name__ == "__main__":
    main(int(sys.argv[1]))
