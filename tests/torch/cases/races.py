# SPDX-License-Identifier: Apache-2.0
"""Programs that lack an edge between streams, as reported of offloading code, and the
same with the edge. Says what each computed and how many races the checker counted.

usage: races.py [NAME...]
"""

import ctypes
import json
import sys
from typing import Callable, Dict, List

import torch

SIZE = 1 << 14
runtime = ctypes.CDLL(None)


class Races(ctypes.Structure):
    _fields_ = [
        ("checked", ctypes.c_bool),
        ("pairs", ctypes.c_ulong),
        ("accesses", ctypes.c_ulong),
    ]


def races() -> int:
    found = Races()
    runtime.sim_races_get(ctypes.byref(found))
    return int(found.pairs)


def activation(value: float) -> torch.Tensor:
    return torch.full((SIZE,), value, device="cuda")


def pinned() -> torch.Tensor:
    return torch.zeros(SIZE, pin_memory=True)


def scrub() -> None:
    """What is found where nothing was written yet is nobody's result."""
    device = [activation(9.0) for _ in range(4)]
    for _ in range(4):
        pinned().fill_(9.0)
    torch.cuda.synchronize()
    del device


def copy_out_before_it_is_computed(edge: bool) -> float:
    """Activations are copied out on a stream that does not wait for who computes them."""
    side, kept = torch.cuda.Stream(), pinned()
    act = activation(3.0)
    if edge:
        side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        kept.copy_(act, non_blocking=True)
    side.synchronize()
    return kept[0].item()


def freed_while_copied_out(edge: bool) -> float:
    """The activation's memory is given to another tensor while it is still copied out."""
    side, kept = torch.cuda.Stream(), pinned()
    act = activation(3.0)
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        kept.copy_(act, non_blocking=True)
    if edge:
        act.record_stream(side)
    del act
    other = activation(5.0)
    side.synchronize()
    return kept[0].item() + 0 * other.numel()


def used_before_it_is_back(edge: bool) -> float:
    """The compute stream uses what the copy stream is still bringing back."""
    side, kept = torch.cuda.Stream(), pinned()
    kept.fill_(3.0)
    back = torch.empty(SIZE, device="cuda")
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        back.copy_(kept, non_blocking=True)
    if edge:
        torch.cuda.current_stream().wait_stream(side)
    twice = back * 2
    torch.cuda.synchronize()
    return twice[0].item()


def brought_back_into_the_copy_streams_memory(edge: bool) -> float:
    """What was brought back is freed, and its memory taken too early for the next."""
    side, first, second = torch.cuda.Stream(), pinned(), pinned()
    first.fill_(3.0)
    second.fill_(5.0)
    with torch.cuda.stream(side):
        back = first.to("cuda", non_blocking=True)
    torch.cuda.current_stream().wait_stream(side)
    twice = back * 2
    if edge:
        back.record_stream(torch.cuda.current_stream())
    del back
    with torch.cuda.stream(side):
        again = second.to("cuda", non_blocking=True)
    torch.cuda.synchronize()
    return twice[0].item() + 0 * again.numel()


def cloned_on_the_copy_stream(edge: bool) -> float:
    """A clone made on the copy stream is computed with before it is there."""
    side = torch.cuda.Stream()
    rows = activation(3.0)
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        mine = rows.clone()
    if edge:
        torch.cuda.current_stream().wait_stream(side)
    thrice = mine * 3
    value = thrice[0].item()
    torch.cuda.synchronize()
    mine.zero_()  # what the next one finds there
    return value


def staging_buffer_used_again(edge: bool) -> float:
    """One pinned buffer takes two copies, of two streams."""
    one, two, kept = torch.cuda.Stream(), torch.cuda.Stream(), pinned()
    first, second = activation(3.0), activation(5.0)
    for side in (one, two):
        side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(one):
        kept.copy_(first, non_blocking=True)
        taken = kept.to("cuda", non_blocking=True)
    if edge:
        two.wait_stream(one)
    with torch.cuda.stream(two):
        kept.copy_(second, non_blocking=True)
    torch.cuda.synchronize()
    return taken[0].item()


def host_reads_before_the_copy_is_done(edge: bool) -> float:
    """A number is read on the host while it is on its way."""
    act = activation(3.0)
    kept = pinned()
    kept.copy_(act, non_blocking=True)
    if edge:
        torch.cuda.current_stream().synchronize()
    return kept.sum().item() / SIZE


def host_writes_while_the_batch_is_copied(edge: bool) -> float:
    """The next batch is put into the pinned buffer that is still copied from."""
    batch = pinned()
    batch.fill_(3.0)
    sent = torch.empty(SIZE, device="cuda")
    sent.copy_(batch, non_blocking=True)
    if edge:
        torch.cuda.synchronize()
    batch.fill_(5.0)
    return (sent + 0)[0].item()


def gradients_of_another_stream(edge: bool) -> float:
    """The optimizer's stream does not wait for the gradients' stream."""
    side = torch.cuda.Stream()
    weight, grad = activation(1.0), torch.zeros(SIZE, device="cuda")
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        grad.add_(2.0)
    if edge:
        torch.cuda.current_stream().wait_stream(side)
    weight.add_(grad)
    torch.cuda.synchronize()
    return weight[0].item()


def columns_of_one_matrix(edge: bool) -> float:
    """Two streams fill columns, of which one is both's. In place of an edge it is not, as
    what lies side by side in each row needs no order."""
    side, columns = torch.cuda.Stream(), 64 if edge else 65
    both = torch.zeros(128, 128, device="cuda")
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        both[:, :columns].fill_(3.0)
    both[:, 64:].fill_(5.0)
    torch.cuda.synchronize()
    return both[7, 63].item() + both[7, 64].item()


CASES: Dict[str, Callable[[bool], float]] = {
    case.__name__: case
    for case in (
        copy_out_before_it_is_computed,
        freed_while_copied_out,
        used_before_it_is_back,
        brought_back_into_the_copy_streams_memory,
        staging_buffer_used_again,
        host_reads_before_the_copy_is_done,
        host_writes_while_the_batch_is_copied,
        gradients_of_another_stream,
        cloned_on_the_copy_stream,
        columns_of_one_matrix,
    )
}


def main(names: List[str]) -> None:
    found = {}
    for name in names or list(CASES):
        for edge in (True, False):
            scrub()
            before = races()
            value = CASES[name](edge)
            torch.cuda.synchronize()
            found[f"{name}:{'edge' if edge else 'none'}"] = [value, races() - before]
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1:])
