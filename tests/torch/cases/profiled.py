# SPDX-License-Identifier: Apache-2.0
"""What torch.profiler says of work on the device, and what the virtual clock says of it.

Prints, for each piece of work, both: JSON, in the last line.
"""

import ctypes
import json
import os
import sys
import tempfile
from typing import Any, Callable, Dict, List

import torch
from clock import times
from torch.profiler import ProfilerActivity, profile

DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")
cupti = ctypes.CDLL("libcupti.so.13")


def trace_of(work: Callable[[], Any]) -> Dict[str, Any]:
    """What a profile of the work has, beside what the clock counted meanwhile."""
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as prof:
        before = times()
        work()
        torch.cuda.synchronize()
        after = times()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        prof.export_chrome_trace(path)
        with open(path, encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
    averages = prof.key_averages()
    return {
        "events": [e for e in events if e.get("cat") in (*DEVICE, "cuda_runtime")],
        "operators": {
            e["args"]["External id"]: e["name"]
            for e in events
            if e.get("cat") == "cpu_op" and "External id" in e["args"]
        },
        "averages_us": sum(
            row.self_device_time_total
            for row in averages
            if row.device_type.name == "CUDA" and not row.is_user_annotation
        ),
        "kernels": after.count - before.count,
        "kernels_ns": after.kernels - before.kernels,
        "in_ns": after.in_ - before.in_,
        "out_ns": after.out - before.out,
    }


def train() -> Callable[[], None]:
    model = torch.nn.Sequential(
        torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.Linear(256, 8)
    ).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    x = torch.randn(32, 64).cuda()

    def step() -> None:
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()

    step()
    return step


def copies() -> None:
    pinned = torch.zeros(1 << 20).pin_memory()
    pageable = torch.zeros(1 << 18)
    there = pinned.to("cuda", non_blocking=True)
    pageable.to("cuda")
    pinned.copy_(there, non_blocking=True)
    there[: 1 << 16].cpu()
    grid = torch.zeros(64, 64, device="cuda")
    grid[:, :16].cpu()


def streams() -> None:
    ones = torch.ones(1 << 22, device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            ones = ones * 2
    for _ in range(3):
        square = torch.ones(2048, 2048, device="cuda")
        torch.mm(square, square[:, :4])


def graph() -> Callable[[], None]:
    """Captured before anybody profiles."""
    x = torch.zeros(1000, device="cuda")
    host = torch.zeros(1000).pin_memory()
    made = torch.cuda.CUDAGraph()
    with torch.cuda.graph(made):
        y = x + 1
        y = y * 2
        host.copy_(y, non_blocking=True)

    def replay() -> None:
        made.replay()
        made.replay()

    return replay


def long_work() -> None:
    """Longer on the card than on this machine."""
    a = torch.empty(16384, 16384, device="cuda")
    for _ in range(4):
        torch.mm(a, a)


def subscribers() -> List[int]:
    """A second one is refused until the first has left."""
    callback = ctypes.CFUNCTYPE(
        None, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32, ctypes.c_void_p
    )
    seen = []
    first, second = ctypes.c_void_p(), ctypes.c_void_p()
    function = callback(lambda data, domain, cbid, about: seen.append((domain, cbid)))
    results = [
        cupti.cuptiSubscribe(ctypes.byref(first), function, None),
        cupti.cuptiSubscribe(ctypes.byref(second), function, None),
        cupti.cuptiEnableDomain(1, first, 2),
    ]
    torch.cuda.synchronize()
    results += [
        cupti.cuptiUnsubscribe(first),
        cupti.cuptiUnsubscribe(first),
        cupti.cuptiSubscribe(ctypes.byref(second), function, None),
        cupti.cuptiUnsubscribe(second),
    ]
    # cudaDeviceSynchronize is 165 in the public cupti_runtime_cbid.h.
    return results + [seen.count((2, 165))]


def main() -> None:
    replay, step = graph(), train()
    told: Dict[str, Any] = {"subscribers": subscribers()}
    for name, work in {
        "nothing": lambda: torch.zeros(8).sum(),
        "train": step,
        "again": step,
        "copies": copies,
        "streams": streams,
        "graph": replay,
    }.items():
        told[name] = trace_of(work)
    if os.environ["ACTSWAP_SIM_COMPUTE"] == "auto":
        told["long"] = trace_of(long_work)
    print(json.dumps(told))


if __name__ == "__main__":
    sys.exit(main())
