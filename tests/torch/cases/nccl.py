# SPDX-License-Identifier: Apache-2.0
"""One rank on NCCL: every collective, DDP and FSDP2. Prints the results as JSON, and with
argument `cpu` those of the same models without a process group."""

import json
import sys

import torch
import torch.distributed as dist
from torch import nn

CPU = sys.argv[1] == "cpu"
device = "cpu" if CPU else "cuda"


def rounds(dtype):
    """A scaled sum of values of all sizes, compared with the CPU's product."""
    torch.manual_seed(0)
    sizes = 10.0 ** torch.randint(-8, 5, (10000,))
    ours = (torch.randn(10000) * sizes).to(dtype)
    ours[:3] = torch.tensor([float("inf"), -0.0, float("nan")])
    factor = torch.tensor(1 / 3, dtype=dtype)
    device = ours.cuda()
    dist.all_reduce(device, dist._make_nccl_premul_sum(factor.item()))
    return torch.equal(device.cpu().nan_to_num(7), (ours * factor).nan_to_num(7))


def collectives():
    def fresh():
        return torch.arange(6.0, device="cuda")

    x, y = fresh(), torch.zeros(6, device="cuda")
    said = {}
    for name in ("SUM", "AVG", "MAX", "PRODUCT"):
        z = fresh()
        dist.all_reduce(z, getattr(dist.ReduceOp, name))
        said[name] = z.tolist()
    for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
        z = fresh().to(dtype)
        dist.all_reduce(z, dist._make_nccl_premul_sum(0.5))
        said[f"half of {dtype}"] = z.tolist()
    said["rounded"] = [rounds(torch.float16), rounds(torch.bfloat16)]
    z = fresh()
    dist.all_reduce(z, dist._make_nccl_premul_sum(torch.tensor([3.0], device="cuda")))
    said["three times"] = z.tolist()
    dist.broadcast(x, 0)
    said["broadcast"] = x.tolist()
    dist.all_gather_into_tensor(y, x)
    said["all_gather"] = y.tolist()
    dist.reduce_scatter_tensor(y.zero_(), x)
    said["reduce_scatter"] = y.tolist()
    dist.all_to_all_single(y.zero_(), x)
    said["all_to_all"] = y.tolist()
    pair = [
        dist.P2POp(dist.isend, x, group_peer=0),
        dist.P2POp(dist.irecv, y.zero_(), group_peer=0),
    ]
    for work in dist.batch_isend_irecv(pair):
        work.wait()
    said["to itself"] = y.tolist()
    objects = [None]
    dist.all_gather_object(objects, {"a": 1})
    said["objects"] = objects
    group = dist.new_group([0])
    dist.barrier(group)
    work = dist.all_reduce(x, group=group, async_op=True)
    work.wait()
    said["group"] = x.tolist()
    return said


def model():
    torch.manual_seed(0)
    layers = [nn.Sequential(nn.Linear(16, 16), nn.Tanh()) for _ in range(3)]
    return nn.Sequential(*layers).to(device)


def train(net):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    torch.manual_seed(1)
    losses = []
    for _ in range(3):
        loss = net(torch.randn(4, 16).to(device)).square().sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


def sharded(net):
    from torch.distributed.fsdp import fully_shard

    for layer in net:
        fully_shard(layer)
    return fully_shard(net)


if CPU:
    losses = train(model())
    said = {"ddp": losses, "fsdp2": losses}
else:
    dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=1)
    said = {"collectives": collectives()}
    said["ddp"] = train(nn.parallel.DistributedDataParallel(model(), device_ids=[0]))
    said["fsdp2"] = train(sharded(model()))
    dist.destroy_process_group()
print(json.dumps(said))
