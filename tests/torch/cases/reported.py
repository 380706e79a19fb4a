# SPDX-License-Identifier: Apache-2.0
"""Small programs of the kinds at which offloading code was reported to fail.

Prints as JSON of each what it computed, as a digest or as numbers, and, under a policy
that moves, how many bytes went where that is told beforehand.
"""

import ctypes
import gc
import hashlib
import json
import threading
from typing import Any, Callable, Dict, List, Optional

import torch
from torch import nn

from actswap_torch import _pack

SIZE = 1 << 14
PADDED = (1 << 19) + 512  # bytes
RESULTS: Dict[str, Any] = {}
MOVED: Dict[str, Dict[str, int]] = {}


def digest(tensors: List[torch.Tensor]) -> str:
    seen = hashlib.sha256()
    for tensor in tensors:
        seen.update(tensor.detach().cpu().numpy().tobytes())
    return seen.hexdigest()[:16]


def case(run: Callable[[], Any]) -> Callable[[], Any]:
    torch.manual_seed(0)
    before = _pack.stats()
    try:
        RESULTS[run.__name__] = run()
    except Exception as error:
        RESULTS[run.__name__] = f"{type(error).__name__}: {error}"[:300]
    gc.collect()
    after = _pack.stats()
    names = ("out_bytes", "in_bytes", "released_bytes", "pinned_bytes")
    MOVED[run.__name__] = {name: after[name] - before[name] for name in names}
    RESULTS[f"{run.__name__}: pages left"] = after["pages"]
    return run


class Block(nn.Module):
    """Calls what it was made with. Has a weight, as blocks have."""

    def __init__(self, body: Callable[[torch.Tensor], torch.Tensor], device: str) -> None:
        super().__init__()
        self.body = body
        self.weight = nn.Parameter(torch.zeros(1, device=device))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.body(x)


class Blocks(nn.Module):
    def __init__(
        self,
        body: Callable[[torch.Tensor], torch.Tensor],
        count: int = 3,
        device: str = "cuda",
    ) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Block(body, device) for _ in range(count))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


def train(
    body: Callable[[torch.Tensor], torch.Tensor],
    end: Callable[[torch.Tensor], torch.Tensor] = torch.sum,
    device: str = "cuda",
) -> str:
    model = Blocks(body, device=device)
    x = torch.randn(SIZE, device=device).requires_grad_()
    optimizer = torch.optim.SGD([x], lr=0.01)
    seen = []
    for _ in range(2):
        optimizer.zero_grad()
        end(model(x)).backward()
        seen.append(x.grad.clone())
        optimizer.step()
    return digest([*seen, x])


# --- Streams


@case
def a_side_stream_reads_what_the_graph_alone_holds() -> Any:
    """It is joined before the loss, but not before the next block takes memory."""
    side, read = torch.cuda.Stream(), []

    def body(x: torch.Tensor) -> torch.Tensor:
        y = (x * 0.1).exp()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side), torch.no_grad():
            read.append(y * 2)
        return y + 1

    def end(x: torch.Tensor) -> torch.Tensor:
        torch.cuda.current_stream().wait_stream(side)
        loss = x.sum() + sum(part.sum() for part in read)
        read.clear()
        return loss

    return train(body, end=end)


class ReadsTwice(torch.autograd.Function):
    """Reads what it saved on its own stream, and again on one that has waited for the
    forward alone."""

    side: Any = None
    done: Any = None

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        y = x.sin()
        ctx.save_for_backward(y)
        return y.clone()

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        held = ctx.saved_tensors
        side = ReadsTwice.side
        side.wait_event(ReadsTwice.done)
        with torch.cuda.stream(side):
            (y,) = ctx.saved_tensors
            twice = y * 2
        twice.record_stream(torch.cuda.current_stream())
        torch.cuda.current_stream().wait_stream(side)
        return grad * twice + held[0]


@case
def a_second_stream_reads_it_in_backward() -> Any:
    ReadsTwice.side = torch.cuda.Stream()

    def end(x: torch.Tensor) -> torch.Tensor:
        ReadsTwice.done = torch.cuda.current_stream().record_event()
        return x.sum()

    return train(ReadsTwice.apply, end=end)


@case
def everything_on_a_stream_of_its_own() -> Any:
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        return train(lambda x: (x * 0.1).exp().tanh() + x)


# --- Storages


def gathered(make: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """Weights whose storages are empty but for their use, as FSDP has them."""
    shards = [torch.randn(128, 128, device="cuda") / 16 for _ in range(3)]
    weights = [make(shard.clone()) for shard in shards]
    turn = iter(range(10**6))
    for weight in weights:
        weight.untyped_storage().resize_(0)

    def body(x: torch.Tensor) -> torch.Tensor:
        which = next(turn) % len(shards)
        weight, storage = weights[which], weights[which].untyped_storage()

        def fill(*_: Any) -> None:
            with torch.no_grad(), torch.autograd._unsafe_preserve_version_counter(weight):
                storage.resize_(weight.numel() * 4)
                weight.copy_(shards[which])

        fill()
        y = x.view(128, 128) @ weight.t()
        storage.resize_(0)
        y.register_hook(fill)
        return y.flatten() + x

    return train(body)


@case
def parameters_that_are_emptied_and_filled() -> Any:
    return gathered(nn.Parameter)


@case
def parameters_whose_data_is_another() -> Any:
    """Gathered before a block, and given up after it."""
    shards = [torch.randn(SIZE, device="cuda") for _ in range(3)]
    weights = [nn.Parameter(torch.empty(0, device="cuda")) for _ in shards]
    turn = iter(range(10**6))

    def body(x: torch.Tensor) -> torch.Tensor:
        which = next(turn) % len(shards)
        weight, shard = weights[which], shards[which]

        def gather(*_: Any) -> None:
            weight.data = shard.clone()

        gather()
        y = x * weight.tanh() + weight
        y.register_hook(gather)
        return y

    result = train(body)
    return [result, digest([weight.grad for weight in weights])]


@case
def saved_twice() -> Any:
    return train(lambda x: (lambda y: y * y.detach() + y * y)(x * 1))


@case
def expanded_from_a_row() -> Any:
    def body(x: torch.Tensor) -> torch.Tensor:
        row = x.narrow(0, 0, 256) * 2
        return (row.expand(64, 256) * x.view(64, 256).sin()).flatten() + x

    return train(body)


@case
def weights_alone() -> Any:
    weight = torch.randn(64, 64, device="cuda")

    def body(x: torch.Tensor) -> torch.Tensor:
        rows = x.view(-1, 64)
        return (rows @ weight + rows @ weight.t()).flatten()

    return train(body)


@case
def of_a_size_behind_a_power_of_two() -> Any:
    torch.cuda.empty_cache()

    class Pads(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            ctx.save_for_backward(torch.full((PADDED // 4,), 2.0, device="cuda"))
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
            return grad * ctx.saved_tensors[0][:SIZE]

    return train(Pads.apply)


# --- What is raised


def interrupted(where: str) -> Any:
    armed = {"on": False}

    def strike(*_: Any) -> None:
        if armed["on"]:
            armed["on"] = False
            raise KeyboardInterrupt

    def body(x: torch.Tensor) -> torch.Tensor:
        y = x.sin()
        if where == "forward":
            strike()
        z = y * y
        if where == "backward":
            z.register_hook(strike)
        return z + x

    said = []
    for _ in range(2):
        armed["on"] = True
        try:
            train(body)
        except BaseException as caught:
            said.append(type(caught).__name__)
        armed["on"] = False
        said.append(train(body))
    return said


@case
def interrupted_in_forward() -> Any:
    return interrupted("forward")


@case
def interrupted_in_backward() -> Any:
    return interrupted("backward")


# --- What is left alone


class Marked(torch.Tensor):
    """A subclass that says so of what is made of it."""


@case
def subclasses_and_nested() -> Any:
    def body(x: torch.Tensor) -> torch.Tensor:
        marked = (x * 2).as_subclass(Marked)
        y = (marked * marked).as_subclass(torch.Tensor)
        parts = torch.nested.nested_tensor(
            [x[:64].detach(), x[64:256].detach()], layout=torch.jagged
        )
        return y + (parts * parts).values().sum()

    return train(body)


@case
def distributed_tensors() -> Any:
    from torch import distributed
    from torch.distributed.tensor import DTensor, Replicate
    from torch.distributed.device_mesh import init_device_mesh
    from torch.testing._internal.distributed.fake_pg import FakeStore

    distributed.init_process_group("fake", rank=0, world_size=1, store=FakeStore())
    mesh = init_device_mesh("cuda", (1,))

    def body(x: torch.Tensor) -> torch.Tensor:
        whole = DTensor.from_local(x * 2, mesh, [Replicate()])
        return (whole * whole).to_local() + x

    result = train(body)
    distributed.destroy_process_group()
    return result


@case
def a_captured_step() -> Any:
    model = Blocks(lambda x: (x * 0.5).sin() * x)
    x = torch.randn(SIZE, device="cuda").requires_grad_()
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        model(x).sum().backward()
    torch.cuda.current_stream().wait_stream(stream)
    x.grad = None
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        model(x).sum().backward()
    seen = []
    for _ in range(3):
        with torch.no_grad():
            x.add_(0.1)
        graph.replay()
        seen.append(x.grad.clone())
    return digest(seen)


# --- Threads and devices


@case
def two_threads_on_two_devices() -> Any:
    found: Dict[str, Any] = {}

    def work(device: str) -> None:
        torch.manual_seed(3)
        found[device] = train(lambda x: x.sin() * x.cos(), device=device)

    threads = [threading.Thread(target=work, args=(f"cuda:{i}",)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(found)


@case
def batches_from_a_pinning_loader() -> Any:
    generator = torch.Generator().manual_seed(1)
    data = torch.utils.data.TensorDataset(torch.randn(8, SIZE, generator=generator))
    weight = torch.ones(SIZE, device="cuda").requires_grad_()
    model = Blocks(lambda x: x.sin() * weight)
    for (batch,) in torch.utils.data.DataLoader(data, batch_size=2, pin_memory=True):
        model(batch.cuda(non_blocking=True)).square().mean().backward()
    return digest([weight.grad])


@case
def another_device_is_chosen_late() -> Any:
    torch.cuda.set_device(2)
    result = train(lambda x: x.sin() * x, device="cuda:2")
    torch.cuda.set_device(0)
    contexts = [torch._C._cuda_hasPrimaryContext(i) for i in range(4)]
    return [result, contexts]


class Races(ctypes.Structure):
    _fields_ = [("checked", ctypes.c_bool), ("pairs", ctypes.c_ulong)]


def races() -> Optional[int]:
    found = Races()
    ctypes.CDLL(None).sim_races_get(ctypes.byref(found))
    return int(found.pairs) if found.checked else None


torch.cuda.synchronize()
print(json.dumps({"results": RESULTS, "moved": MOVED, "races": races()}))
