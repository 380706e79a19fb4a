# SPDX-License-Identifier: Apache-2.0
"""Triton kernels beside another stream, the user's and inductor's, with and without the
edge. Says what each computed and how many races the checker counted.

usage: races_triton.py [compiled]
"""

from __future__ import annotations

import json
import sys
from typing import Any, Callable, Dict

import torch
import triton
from races import races
from triton import language as tl

COUNT = 1 << 10


@triton.jit
def add_one(source, target, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(target + at, tl.load(source + at) + 1)


@torch.compile
def compiled(source: torch.Tensor) -> torch.Tensor:
    return source * 2 + 1


def full(value: float) -> torch.Tensor:
    return torch.full((COUNT,), value, device="cuda")


def kernel_reads(edge: bool) -> Any:
    """What another stream is still writing."""
    source, target, side = full(1.0), full(0.0), torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        source.fill_(4.0)
    if edge:
        torch.cuda.current_stream().wait_stream(side)
    add_one[(1,)](source, target, BLOCK=COUNT)
    torch.cuda.synchronize()
    return target


def kernel_writes(edge: bool) -> Any:
    """What another stream reads at once."""
    source, target, side = full(4.0), full(0.0), torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        add_one[(1,)](source, target, BLOCK=COUNT)
    if edge:
        torch.cuda.current_stream().wait_stream(side)
    twice = target * 2
    torch.cuda.synchronize()
    return twice


def kernels_meet(edge: bool) -> Any:
    """One kernel's result is another's input."""
    source, target, last = full(4.0), full(0.0), full(0.0)
    side = torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        add_one[(1,)](source, target, BLOCK=COUNT)
    if edge:
        torch.cuda.current_stream().wait_stream(side)
    add_one[(1,)](target, last, BLOCK=COUNT)
    torch.cuda.synchronize()
    return last


def behind_a_kernel(edge: bool) -> Any:
    """A launch waits for nothing, so what its stream did before is not over, either."""
    source, given, target, side = full(1.0), full(4.0), full(0.0), torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        source.fill_(4.0)
        add_one[(1,)](given, target, BLOCK=COUNT)
    if edge:
        torch.cuda.current_stream().wait_stream(side)
    thrice = source * 3
    torch.cuda.synchronize()
    return thrice


def kernels_share(edge: bool) -> Any:
    """What both only read: no edge is needed."""
    source, side = full(4.0), torch.cuda.Stream()
    first, second = full(0.0), full(0.0)
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        add_one[(1,)](source, first, BLOCK=COUNT)
    add_one[(1,)](source, second, BLOCK=COUNT)
    torch.cuda.synchronize()
    return second


def compiled_reads(edge: bool) -> Any:
    """What inductor made of a function."""
    source, side = full(1.0), torch.cuda.Stream()
    compiled(source)  # allocates and compiles
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        source.fill_(4.0)
    if edge:
        torch.cuda.current_stream().wait_stream(side)
    result = compiled(source)
    torch.cuda.synchronize()
    return result


CASES: list[Callable[[bool], Any]] = [
    kernel_reads,
    kernel_writes,
    kernels_meet,
    behind_a_kernel,
    kernels_share,
]

if __name__ == "__main__":
    found: Dict[str, Any] = {}
    for case in CASES + [compiled_reads] * ("compiled" in sys.argv):
        for edge in (True, False):
            before = races()
            result = case(edge)
            found[f"{case.__name__}:{'edge' if edge else 'none'}"] = [
                result[0].item(),
                races() - before,
            ]
    print(json.dumps(found))
