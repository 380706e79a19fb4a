# SPDX-License-Identifier: Apache-2.0
"""Blocks that several streams use, and pools of memory. Says what each case saw.

usage: pools.py FOLDER (for a library that is compiled here)
"""

import gc
import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, Dict, List

import torch

MIB = 1 << 20
COUNT = 4 * MIB // 4  # a block of its own segment would be 20 MiB: several fit in one
ALLOCATOR = r"""
#include <stddef.h>
int cudaMalloc(void **address, size_t bytes);
int cudaFree(void *address);
int taken, given;
void *take(size_t bytes, int device, void *stream)
{
    void *address = 0;
    (void)device, (void)stream;
    taken++;
    return cudaMalloc(&address, bytes) ? 0 : address;
}
void give(void *address, size_t bytes, int device, void *stream)
{
    (void)bytes, (void)device, (void)stream;
    given++;
    cudaFree(address);
}
"""


def full(value: float) -> torch.Tensor:
    return torch.full((COUNT,), value, device="cuda")


def empty_all() -> None:
    gc.collect()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()


def recorded_block_is_not_given_out_before_its_use() -> Any:
    side, kept = torch.cuda.Stream(), torch.zeros(COUNT, pin_memory=True)
    block = full(3.0)
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        kept.copy_(block, non_blocking=True)
    block.record_stream(side)
    address = block.data_ptr()
    del block
    other = full(5.0)
    apart = other.data_ptr() != address
    side.synchronize()
    # What is over is seen at the next allocation.
    seen = {full(7.0).data_ptr() for _ in range(2)}
    return [kept.unique().tolist(), other.sum().item() / COUNT, apart, address in seen]


def recorded_blocks_are_bounded() -> Any:
    """A loop that never synchronises: it makes 480 MiB and reserves a part of that, which
    does not grow with its length."""
    side = torch.cuda.Stream()
    total = torch.zeros(COUNT, device="cuda")
    empty_all()
    grown: List[int] = []
    for _ in range(120):
        block = full(1.0)
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            total.add_(block)
        block.record_stream(side)
        del block
        grown.append(torch.cuda.memory_reserved())
    torch.cuda.synchronize()
    return [total.unique().tolist(), max(grown) - grown[0] <= 120 * MIB]


def recorded_on_two_streams_waits_for_both() -> Any:
    one, two = torch.cuda.Stream(), torch.cuda.Stream()
    kept = [torch.zeros(COUNT, pin_memory=True) for _ in range(2)]
    block = full(3.0)
    for stream, host in zip((one, two), kept):
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            host.copy_(block, non_blocking=True)
        block.record_stream(stream)
    del block
    one.synchronize()
    other = full(5.0)
    two.synchronize()
    again = [full(6.0), full(6.0)]
    torch.cuda.synchronize()
    return [[k.unique().tolist() for k in kept], other.unique().tolist(), len(again)]


def pool_keeps_to_itself() -> Any:
    empty_all()
    before = torch.cuda.memory_reserved()
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        inside = full(3.0)
        first = inside.data_ptr()
        del inside
        inside = full(4.0)
        again = inside.data_ptr() == first
    outside = full(5.0)
    segments = {s["address"]: s for s in pool.snapshot()}
    mine = [s for s in segments.values() if s["address"] <= first]
    held = any(
        s["address"] <= first < s["address"] + s["total_size"] for s in mine
    ) and not any(
        s["address"] <= outside.data_ptr() < s["address"] + s["total_size"]
        for s in segments.values()
    )
    sums = [inside.sum().item() / COUNT, outside.sum().item() / COUNT]
    del inside, outside
    empty_all()
    kept = torch.cuda.memory_reserved() > before  # a pool in use is not emptied
    del pool
    empty_all()
    return [again, held, sums, kept, torch.cuda.memory_reserved() == before]


def pool_of_another_stream() -> Any:
    """A block of a pool that a side stream fills, used by the main one behind an edge."""
    side, pool = torch.cuda.Stream(), torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool), torch.cuda.stream(side):
        block = full(2.0)
        block.mul_(3)
    torch.cuda.current_stream().wait_stream(side)
    block.record_stream(torch.cuda.current_stream())
    twice = block * 2
    del block
    with torch.cuda.use_mem_pool(pool), torch.cuda.stream(side):
        other = full(9.0)
    side.synchronize()
    result = [twice.unique().tolist(), other.unique().tolist()]
    del other, twice
    torch.cuda.synchronize()
    return result


def pool_with_an_allocator_of_its_own(folder: str) -> Any:
    import ctypes

    source, library = Path(folder) / "allocator.c", Path(folder) / "allocator.so"
    source.write_text(ALLOCATOR)
    command = ["cc", "-shared", "-fPIC", "-o", str(library), str(source)]
    subprocess.run(command, check=True)
    own = torch.cuda.memory.CUDAPluggableAllocator(str(library), "take", "give")
    loaded = ctypes.CDLL(str(library))
    pool = torch.cuda.MemPool(own.allocator())
    with torch.cuda.use_mem_pool(pool):
        block = full(3.0)
    result = (block + 1).unique().tolist()
    del block
    empty_all()
    del pool
    empty_all()
    count = ctypes.c_int.in_dll
    return [
        result,
        count(loaded, "taken").value >= 1,
        count(loaded, "taken").value == count(loaded, "given").value,
    ]


CASES: List[Callable[[], Any]] = [
    recorded_block_is_not_given_out_before_its_use,
    recorded_blocks_are_bounded,
    recorded_on_two_streams_waits_for_both,
    pool_keeps_to_itself,
    pool_of_another_stream,
]

if __name__ == "__main__":
    said: Dict[str, Any] = {case.__name__: case() for case in CASES}
    said["pool_with_an_allocator_of_its_own"] = pool_with_an_allocator_of_its_own(
        sys.argv[1]
    )
    print(json.dumps(said))
