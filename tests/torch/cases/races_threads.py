# SPDX-License-Identifier: Apache-2.0
"""Programs whose threads hand over pinned memory, as programs do: the checker must be
silent. Says what each computed, and how many races the checker counted."""

import json
import queue
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, Dict, List

import torch
from races import pinned, races

SIZE = 1 << 10


def bring(kept: torch.Tensor, value: float) -> None:
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        kept.copy_(torch.full_like(kept, value, device="cuda"), non_blocking=True)
    side.synchronize()


def by_a_queue() -> Any:
    """A thread brings back what another uses and gives back."""
    full: Any = queue.Queue()
    free: Any = queue.Queue()
    for _ in range(2):
        free.put(pinned())

    def work() -> None:
        for i in range(6):
            kept = free.get()
            bring(kept, float(i))
            full.put(kept)

    worker = threading.Thread(target=work)
    worker.start()
    found = []
    for _ in range(6):
        kept = full.get()
        found.append(kept[0].item())
        kept.zero_()
        free.put(kept)
    worker.join()
    return found


def by_a_simple_queue() -> Any:
    """Which takes no lock where there is something in it."""
    full: Any = queue.SimpleQueue()
    kept = [pinned() for _ in range(4)]
    for i, one in enumerate(kept):
        bring(one, float(i))
        full.put(one)
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda _: full.get()[0].item(), range(4)))


def by_a_flag() -> Any:
    """Python's own lock hands over whatever a thread has done."""
    kept, done = pinned(), []
    other = threading.Thread(target=lambda: (bring(kept, 5.0), done.append(1)))
    other.start()
    while not done:
        pass
    value = kept[0].item()
    other.join()
    return value


def by_an_executor() -> Any:
    """As checkpoints are written in the background."""
    weights = [torch.full((SIZE,), float(i), device="cuda") for i in range(4)]
    kept = [torch.empty(SIZE, pin_memory=True) for _ in weights]
    with ThreadPoolExecutor(2) as pool:
        for _ in range(3):
            for host, own in zip(kept, weights):
                host.copy_(own, non_blocking=True)
            torch.cuda.synchronize()
            sums = list(pool.map(lambda host: host.sum().item() / SIZE, kept))
    return sums


def on_two_devices() -> Any:
    """A thread for each device, made anew in each step, as DataParallel does."""
    torch.manual_seed(0)
    nets = [torch.nn.Linear(8, 4).to(f"cuda:{i}") for i in range(2)]
    kept = [torch.empty(6, 4, pin_memory=True) for _ in nets]
    for _ in range(3):
        inputs = [torch.ones(6, 8, device=f"cuda:{i}") for i in range(2)]
        for out, host in zip(torch.nn.parallel.parallel_apply(nets, inputs), kept):
            out.square().mean().backward()
            host.copy_(out.detach(), non_blocking=True)
        for i in range(2):
            torch.cuda.synchronize(i)
    return all(host.isfinite().all().item() for host in kept)


def backward_in_threads() -> Any:
    """Each with autograd's own threads behind it, and CPU tensors that are pinned."""
    weight = torch.ones(SIZE, device="cuda", requires_grad=True)

    def work(_: int) -> float:
        host = torch.ones(SIZE, pin_memory=True, requires_grad=True)
        (host.to("cuda", non_blocking=True) * weight).sum().backward()
        assert host.grad is not None
        return host.grad.sum().item() / SIZE

    with ThreadPoolExecutor(3) as pool:
        return list(pool.map(work, range(6)))


def loader() -> Any:
    """The thread that pins, and workers' processes."""
    rows = torch.arange(64 * 8, dtype=torch.float32).reshape(64, 8)
    data = torch.utils.data.TensorDataset(rows)
    total = 0.0
    for (batch,) in torch.utils.data.DataLoader(data, 8, pin_memory=True, num_workers=2):
        total += batch.to("cuda", non_blocking=True).sum().item()
    return total == rows.sum().item()


CASES: List[Callable[[], Any]] = [
    by_a_queue,
    by_a_simple_queue,
    by_a_flag,
    by_an_executor,
    on_two_devices,
    backward_in_threads,
    loader,
]

if __name__ == "__main__":
    found: Dict[str, Any] = {}
    for case in CASES:
        before = races()
        value = case()
        torch.cuda.synchronize()
        found[case.__name__] = [value, races() - before]
    print(json.dumps(found))
