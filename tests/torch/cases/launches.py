# SPDX-License-Identifier: Apache-2.0
"""Mode `auto`: what has values after a launch that nobody computes. Prints JSON."""

from __future__ import annotations

import json
import sys
import traceback
from typing import Any, Callable, Dict, List

import torch
import triton
from triton import language as tl

CUDA = "cuda"
RESULTS: Dict[str, Any] = {}


def case(function: Callable[[], Any]) -> Callable[[], Any]:
    try:
        RESULTS[function.__name__] = function()
    except Exception:
        RESULTS[function.__name__] = traceback.format_exc()
    return function


def known(tensor: torch.Tensor) -> bool:
    try:
        int(tensor.long().sum())
    except RuntimeError:
        return False
    return True


def counted(count: int = 16) -> torch.Tensor:
    return torch.arange(count, device=CUDA)


@triton.jit
def add_one(source, target, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(target + at, tl.load(source + at) + 1)


@triton.jit
def count_up(source, counts, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.atomic_add(counts + tl.load(source + at), 1)


@triton.jit
def write_one_of(a, b, source, n):
    target = a
    if n > 3:
        target = b
    tl.store(target, tl.load(source))


@triton.jit
def write_on(source, target, n):
    from_ = source
    to = target
    for _ in range(n):
        tl.store(to, tl.load(from_))
        from_ += 1
        to += 1


@triton.jit(noinline=True)
def write_far(target, value):
    tl.store(target, value)


@triton.jit
def call_far(source, target):
    write_far(target, tl.load(source))


@triton.jit
def write_hidden(addresses, source):
    target = tl.load(addresses).to(tl.pointer_type(tl.int64))
    tl.store(target, tl.load(source))


@triton.jit
def write_at(address, source):
    tl.store(address.to(tl.pointer_type(tl.int64)), tl.load(source))


@triton.jit
def early_end(source, target, n):
    if n > 100:
        return
    tl.store(target, tl.load(source))


@triton.jit
def root(source, target, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    value = tl.load(source + at).to(tl.float32)
    tl.store(target + at, tl.extra.cuda.libdevice.rsqrt(value).to(tl.int64))


@case
def a_store() -> List[bool]:
    source, target, other = counted(), counted(), counted()
    add_one[(1,)](source, target, BLOCK=16)
    return [known(source), known(target), known(other)]


@case
def all_of_the_storage() -> List[bool]:
    whole, source = counted(64), counted()
    add_one[(1,)](source, whole[16:32], BLOCK=16)
    return [known(source), known(whole[:16]), known(whole[40:])]


@case
def the_same_storage() -> List[bool]:
    whole = counted(64)
    add_one[(1,)](whole[:16], whole[16:32], BLOCK=16)
    return [known(whole[:16])]


@case
def an_atomic() -> List[bool]:
    source, counts = counted(), counted()
    count_up[(1,)](source, counts, BLOCK=16)
    return [known(source), known(counts)]


@case
def one_of_two() -> List[bool]:
    a, b, source = counted(), counted(), counted()
    write_one_of[(1,)](a, b, source, 3)
    return [known(source), known(a), known(b)]


@case
def a_pointer_that_moves() -> List[bool]:
    source, target, other = counted(), counted(), counted()
    write_on[(1,)](source, target, 5)
    return [known(target), known(other)]


@case
def a_function() -> List[bool]:
    source, target = counted(), counted()
    call_far[(1,)](source, target)
    return [known(source), known(target)]


@case
def an_early_end() -> List[bool]:
    source, target, other = counted(), counted(), counted()
    early_end[(1,)](source, target, 5)
    return [known(target), known(other)]


@case
def a_library_function() -> List[bool]:
    source, target = counted(), counted()
    root[(1,)](source, target, BLOCK=16)
    return [known(source), known(target)]


@case
def hidden_in_a_tensor() -> List[bool]:
    target, source, other = counted(), counted(), counted()
    addresses = torch.tensor([target.data_ptr()], device=CUDA)
    write_hidden[(1,)](addresses, source)
    return [known(target), known(other)]


@case
def hidden_in_a_number() -> List[bool]:
    target, source, other = counted(), counted(), counted()
    write_at[(1,)](target.data_ptr(), source)
    return [known(target), known(other)]


@case
def seen_as_another_type() -> List[bool]:
    target, source = counted(), counted()
    add_one[(1,)](source, triton.reinterpret(target, tl.int64), BLOCK=16)
    return [known(source), known(target)]


@case
def memory_of_the_host() -> str:
    target = torch.arange(16).pin_memory()
    try:
        add_one[(1,)](counted(), target, BLOCK=16)
    except RuntimeError as error:
        return str(error)
    return "not refused"


@case
def compiled() -> List[bool]:
    x, steps, changed = torch.randn(1024, 1024, device=CUDA), counted(), counted()
    made = torch.compile(lambda x: (x.relu() * 2).sum(1).long())(x)

    def change(numbers: torch.Tensor) -> None:
        numbers.add_(1)

    torch.compile(change)(changed)
    return [known(steps), known(made), known(changed)]


@case
def compiled_of_the_user() -> List[bool]:
    source, target, other = counted(), counted(), counted()

    @torch.compile
    def run(source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        add_one[(1,)](source, target, BLOCK=16)
        return target + 1

    made = run(source, target)
    return [known(source), known(target), known(made), known(other)]


@case
def replayed() -> List[bool]:
    source, kernel, copied, filled, other = (counted() for _ in range(5))
    add_one[(1,)](source, kernel, BLOCK=16)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        summed = source + 1
        add_one[(1,)](source, kernel, BLOCK=16)
        copied.copy_(source)
        filled.zero_()
    for tensor in (kernel, copied, filled):
        tensor.copy_(counted())
    before = [known(t) for t in (kernel, copied, filled)]
    graph.replay()
    after = [known(t) for t in (summed, kernel, copied, filled)]
    return [all(before), any(after), known(source), known(other)]


@case
def replayed_and_hidden() -> List[bool]:
    source, target = counted(), counted()
    addresses = torch.tensor([target.data_ptr()], device=CUDA)
    write_hidden[(1,)](addresses, source)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        write_hidden[(1,)](addresses, source)
    other = counted()
    graph.replay()
    return [known(target), known(other)]


json.dump(RESULTS, sys.stdout)
print()
