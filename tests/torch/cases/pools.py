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


def reserved_after(rounds: int) -> List[Any]:
    side = torch.cuda.Stream()
    total = torch.zeros(COUNT, device="cuda")
    empty_all()
    before, most = torch.cuda.memory_reserved(), 0
    for _ in range(rounds):
        block = full(1.0)
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            total.add_(block)
        block.record_stream(side)
        del block
        most = max(most, torch.cuda.memory_reserved() - before)
    torch.cuda.synchronize()
    return [total.unique().tolist(), most]


def recorded_blocks_are_bounded() -> Any:
    """A loop that never synchronises: what it reserves does not grow with its length."""
    short, long = reserved_after(80), reserved_after(400)
    return [short[0], long[0], long[1] <= short[1] + 20 * MIB, long[1] <= 160 * MIB]


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


def graph_with_a_stream_of_its_own() -> Any:
    """What is freed while it is captured is not given out under the other stream's use,
    and what is allocated between replays is not theirs."""
    given, side = full(0.0), torch.cuda.Stream()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        twice = given * 2
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            thrice = twice * 1.5
        twice.record_stream(side)
        del twice
        other = given * 0
        torch.cuda.current_stream().wait_stream(side)
        found = thrice + other
        del thrice, other
    empty_all()
    reserved, kept, others = torch.cuda.memory_reserved(), [], []
    for value in (1.0, 2.0, 3.0):
        given.fill_(value)
        graph.replay()
        kept.append(found[:8].clone())
        others.append(torch.full((8,), 9.0, device="cuda"))
    grown = torch.cuda.memory_reserved() - reserved
    return [[one.unique().tolist() for one in kept + others], grown <= 2 * MIB]


def graphs_that_share_a_pool() -> Any:
    """Replayed in the order of their capture, each result copied out beside the next."""
    given, side = full(0.0), torch.cuda.Stream()
    graphs = [torch.cuda.CUDAGraph() for _ in range(2)]
    results = []
    for factor, graph in enumerate(graphs, 2):
        with torch.cuda.graph(graph, pool=graphs[0].pool() if results else None):
            scratch = given * factor
            results.append(scratch + 1)
            del scratch
    kept = [torch.zeros(COUNT, pin_memory=True) for _ in range(4)]
    for step in range(4):
        given.fill_(float(step))
        torch.cuda.current_stream().wait_stream(side)
        graphs[step % 2].replay()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            kept[step].copy_(results[step % 2], non_blocking=True)
    side.synchronize()
    return [host.unique().tolist() for host in kept]


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
    graph_with_a_stream_of_its_own,
    graphs_that_share_a_pool,
]

if __name__ == "__main__":
    said: Dict[str, Any] = {case.__name__: case() for case in CASES}
    said["pool_with_an_allocator_of_its_own"] = pool_with_an_allocator_of_its_own(
        sys.argv[1]
    )
    print(json.dumps(said))
