# SPDX-License-Identifier: Apache-2.0
"""Models whose repeated blocks are written down in the ways that people have: finds.py
[NAME...]. Each trains two steps; prints a digest of losses, gradients and buffers."""

import hashlib
import json
import sys
from typing import Any, Callable, Dict

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.fsdp import fully_shard

WIDTH, BATCH = 16, 8
MODELS: Dict[str, Callable] = {}


def named(maker: Callable) -> Callable:
    MODELS[maker.__name__] = maker
    return maker


class Block(nn.Module):
    def __init__(self, width: int = WIDTH) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Any) -> Any:
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Other(Block):
    pass


class Chain(nn.Module):
    """Whatever it is given, one after the other."""

    def __init__(self, **parts: nn.Module) -> None:
        super().__init__()
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, x: Any) -> Any:
        for part in self.children():
            x = self.through(part, x)
        return x

    def through(self, part: Any, x: Any) -> Any:
        if not isinstance(part, (nn.ModuleList, nn.ModuleDict)):
            return part(x)
        for inner in part.children():
            x = self.through(inner, x)
        return x


def chain(name: str, **parts: nn.Module) -> nn.Module:
    """Of a class of its own, whose name is in the report."""
    return type(name, (Chain,), {})(**parts)


def three(kind: Any = Block) -> Any:
    return [kind() for _ in range(3)]


@named
def mixed_list() -> nn.Module:
    kinds = [Block, Other, Block, Other]
    return chain("Mixed", layers=nn.ModuleList(kind() for kind in kinds))


@named
def dictionary() -> nn.Module:
    return chain("Dictionary", layers=nn.ModuleDict({f"l{n}": Block() for n in range(3)}))


@named
def pairs() -> nn.Module:
    """Lists in a list, as of attention and feedforward."""
    pair = lambda: nn.ModuleList([Block(), Other()])  # noqa: E731
    return chain("Pairs", layers=nn.ModuleList(three(pair)))


@named
def attributes() -> nn.Module:
    return chain("Attributes", down1=Block(), down2=Block(), down3=Block(), out=Other())


@named
def experts() -> nn.Module:
    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.LayerNorm(WIDTH)
            self.experts = nn.ModuleList(
                nn.Sequential(nn.Linear(WIDTH, 32), nn.Linear(32, WIDTH))
                for _ in range(4)
            )

        def forward(self, x: Any) -> Any:
            return x + sum(torch.tanh(expert(self.norm(x))) for expert in self.experts)

    return chain("Experts", layers=nn.ModuleList(three(Layer)))


class Basic(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(4, 4, 3, padding=1), nn.BatchNorm2d(4)
        self.conv2, self.bn2 = nn.Conv2d(4, 4, 3, padding=1), nn.BatchNorm2d(4)

    def forward(self, x: Any) -> Any:
        y = F.relu(self.bn1(self.conv1(x)))
        return F.relu(x + self.bn2(self.conv2(y)))


class Images(nn.Module):
    def forward(self, x: Any) -> Any:
        return x.view(BATCH, 4, 2, 2).repeat(1, 1, 4, 4)


@named
def resnet() -> nn.Module:
    """As torchvision's and timm's."""
    stage = lambda: nn.Sequential(Basic(), Basic())  # noqa: E731
    parts = {"stem": Images(), "layer1": stage(), "layer2": stage(), "pool": Flat()}
    return chain("ResNet", **parts)


class Flat(nn.Module):
    def forward(self, x: Any) -> Any:
        return x.mean((2, 3))


@named
def stages() -> nn.Module:
    """As ConvNeXt, Swin and RegNet: a list of stages, each with a list of blocks."""

    class Stage(Chain):
        pass

    stage = lambda: Stage(  # noqa: E731
        downsample=nn.Conv2d(4, 4, 1), blocks=nn.Sequential(Basic(), Basic())
    )
    stages = nn.Sequential(stage(), stage())
    return chain("Stages", stem=Images(), stages=stages, pool=Flat())


@named
def unet() -> nn.Module:
    """As of diffusion: blocks of several classes, each with lists of its own."""

    class Down(Chain):
        pass

    class CrossDown(Chain):
        pass

    def resnets() -> nn.Module:
        return nn.ModuleList([Basic(), Basic()])

    blocks = nn.ModuleList([CrossDown(resnets=resnets()), Down(resnets=resnets())])
    return chain("Diffusion", stem=Images(), down_blocks=blocks, pool=Flat())


@named
def two_lists() -> nn.Module:
    """An encoder and a decoder, which takes what the encoder made."""

    class Cross(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm, self.mix = nn.LayerNorm(WIDTH), nn.Linear(2 * WIDTH, WIDTH)

        def forward(self, x: Any, memory: Any = None) -> Any:
            return x + torch.tanh(self.mix(torch.cat([self.norm(x), memory], -1)))

    class EncoderDecoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder = nn.ModuleList(three())
            self.decoder = nn.ModuleList(three(Cross))

        def forward(self, x: Any) -> Any:
            memory = x
            for layer in self.encoder:
                memory = layer(memory)
            for layer in self.decoder:
                x = layer(x, memory=memory)
            return x

    return EncoderDecoder()


@named
def data_parallel() -> nn.Module:
    return nn.DataParallel(chain("Replicated", layers=nn.ModuleList(three())), [0])


@named
def distributed() -> nn.Module:
    model = chain("Distributed", layers=nn.ModuleList(three())).cuda()
    return nn.parallel.DistributedDataParallel(model, device_ids=[0])


@named
def sharded() -> nn.Module:
    model = chain("Sharded", layers=nn.ModuleList(three())).cuda()
    for layer in model.layers:
        fully_shard(layer)
    return fully_shard(model)


@named
def trained() -> nn.Module:
    class Trainer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = chain("Inner", layers=nn.ModuleList(three()))

        def training_step(self, x: Any) -> Any:
            return self.model(x)

    trainer = Trainer()
    trainer.call = trainer.training_step
    return trainer


@named
def convolutions() -> nn.Module:
    """Nothing in it is repeated."""
    layers = [nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.Tanh()]
    return chain("Plain", features=nn.Sequential(*layers), head=nn.Linear(WIDTH, 1))


def train(name: str) -> str:
    torch.manual_seed(1)
    model = MODELS[name]().cuda().train()
    call = getattr(model, "call", model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    digest = hashlib.sha256()
    for _ in range(2):
        loss = call(torch.randn(BATCH, WIDTH, device="cuda")).square().mean()
        loss.backward()
        for tensor in (loss, *(p.grad for p in model.parameters())):
            tensor = tensor.to_local() if hasattr(tensor, "to_local") else tensor
            digest.update(tensor.detach().cpu().numpy().tobytes())
        optimizer.step()
        optimizer.zero_grad()
    for buffer in model.buffers():
        digest.update(buffer.cpu().numpy().tobytes())
    return digest.hexdigest()


if __name__ == "__main__":
    dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=1)
    names = sys.argv[1:] or list(MODELS)
    print(json.dumps({name: train(name) for name in names}))
    dist.destroy_process_group()
