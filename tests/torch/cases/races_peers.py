# SPDX-License-Identifier: Apache-2.0
"""Other people's code that moves memory beside the computation, used once each.

races_peers.py NAME [--without LINE]   a line of the module that SOURCE names left out
races_peers.py --edges                 the lines of TRL's that order streams, as JSON
Says the last loss. `scripts/races` runs all of it under the checker. What a case needs
beside PyTorch is in its name: TRL, accelerate.
"""

import importlib.util
import json
import os
import re
import sys
import tempfile
from contextlib import nullcontext
from typing import Any, Callable, ContextManager, Dict, List, Optional

import torch
import torch.nn.functional as F
from torch import nn

WIDTH, STEPS = 64, 3
SOURCE = "trl.models.activation_offloading"


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(F.gelu(self.up(x))).pow(2).sin()


def blocks() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(*(Block() for _ in range(6)))


def batch() -> torch.Tensor:
    return torch.randn(256, WIDTH, device="cuda")


def train(net: nn.Module, around: Callable[[], ContextManager[Any]] = nullcontext) -> Any:
    own = torch.optim.SGD(net.parameters(), lr=0.1)
    loss = torch.zeros(())
    for _ in range(STEPS):
        own.zero_grad()
        with around():
            loss = net(batch()).square().mean()
        loss.backward()
        own.step()
    return loss


def plain() -> Any:
    return train(blocks().cuda())


def trl(streams: bool) -> Any:
    manager = sys.modules[SOURCE].OffloadActivations(use_streams=streams)
    return train(blocks().cuda(), lambda: manager)


def save_on_cpu() -> Any:
    from torch.autograd.graph import save_on_cpu

    return train(blocks().cuda(), lambda: save_on_cpu(pin_memory=True))


def accelerate_hooks() -> Any:
    from accelerate import cpu_offload

    net = blocks()
    cpu_offload(net, execution_device=torch.device("cuda", 0))
    with torch.no_grad():
        return net(batch()).square().mean()


def fsdp(offload: bool) -> Any:
    import torch.distributed as dist
    from torch.distributed.fsdp import CPUOffloadPolicy, OffloadPolicy, fully_shard

    file = tempfile.NamedTemporaryFile()
    dist.init_process_group(
        "cpu:gloo,cuda:nccl", init_method=f"file://{file.name}", rank=0, world_size=1
    )
    torch.cuda.set_device(0)
    net = blocks()
    policy = CPUOffloadPolicy() if offload else OffloadPolicy()
    for block in net:
        fully_shard(block, offload_policy=policy)
    fully_shard(net, offload_policy=policy)
    loss = train(net if offload else net.cuda()).item()
    dist.destroy_process_group()
    return torch.tensor(loss)


def loader() -> Any:
    rows = torch.randn(64 * 20, WIDTH, generator=torch.Generator().manual_seed(0))
    data = torch.utils.data.TensorDataset(rows)
    net = blocks().cuda()
    own = torch.optim.SGD(net.parameters(), lr=0.1)
    loss = torch.zeros(())
    for (given,) in torch.utils.data.DataLoader(data, batch_size=64, pin_memory=True):
        own.zero_grad()
        loss = net(given.cuda(non_blocking=True)).square().mean()
        loss.backward()
        own.step()
    return loss


def graphed() -> Any:
    x = batch().requires_grad_(True)
    net = torch.cuda.make_graphed_callables(blocks().cuda(), (x,))
    return train(net)


def flex() -> Any:
    from torch.nn.attention.flex_attention import flex_attention

    torch.manual_seed(0)
    q, k, v = (
        torch.randn(1, 2, 128, 32, device="cuda", requires_grad=True) for _ in range(3)
    )
    loss = flex_attention(q, k, v).square().mean()
    loss.backward()
    return loss


CASES: Dict[str, Callable[[], Any]] = {
    "plain": plain,
    "trl_streams": lambda: trl(True),
    "trl": lambda: trl(False),
    "save_on_cpu": save_on_cpu,
    "accelerate": accelerate_hooks,
    "fsdp": lambda: fsdp(False),
    "fsdp_offload": lambda: fsdp(True),
    "loader": loader,
    "graphed": graphed,
    "flex": flex,
}


def source() -> List[str]:
    spec = importlib.util.find_spec(SOURCE)
    assert spec and spec.origin
    with open(spec.origin, encoding="utf-8") as file:
        return file.read().splitlines()


def edges() -> List[List[Any]]:
    order = re.compile(r"\s*([\w.]+\.(wait_stream|wait_event|record_stream)\(.*\))$")
    found = ((i + 1, order.match(line)) for i, line in enumerate(source()))
    return [[number, match[1]] for number, match in found if match]


def load(without: Optional[int]) -> None:
    spec = importlib.util.find_spec(SOURCE)
    assert spec and spec.origin
    lines = source()
    if without:
        line = lines[without - 1]
        lines[without - 1] = line[: len(line) - len(line.lstrip())] + "pass"
    module = importlib.util.module_from_spec(spec)
    sys.modules[SOURCE] = module
    exec(compile("\n".join(lines), spec.origin, "exec"), module.__dict__)


def main(name: str, *rest: str) -> None:
    if name == "--edges":
        print(json.dumps(edges()))
        return
    if name.startswith("trl"):
        load(int(rest[1]) if rest else None)
    loss = CASES[name]()
    torch.cuda.synchronize()
    print(json.dumps(loss.item()), flush=True)


if __name__ == "__main__":
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    main(*sys.argv[1:])
