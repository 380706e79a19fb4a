# SPDX-License-Identifier: Apache-2.0
"""Small programs that train in the ways that people do, each a class.

`Program.step()` is one step: it returns the losses. What is hashed besides are the
gradients of `parameters()` and, at the end, the parameters and buffers themselves.
"""

from typing import Any, Dict, Iterator, List, Type

import torch
import torch.nn.functional as F
from torch import nn

WIDTH = 64
PROGRAMS: Dict[str, Type["Program"]] = {}


class Program:
    """Models and their optimizer, on the device."""

    varies = False  # in the sizes of what a step saves

    def __init__(self) -> None:
        self.models: List[nn.Module] = [model.cuda() for model in self.make()]
        trained = [p for p in self.parameters() if p.requires_grad]
        self.optimizer: torch.optim.Optimizer = torch.optim.AdamW(trained, lr=1e-3)

    def make(self) -> List[nn.Module]:
        return [Layers()]

    def parameters(self) -> Iterator[nn.Parameter]:
        for model in self.models:
            yield from model.parameters()

    def batch(self) -> torch.Tensor:
        return torch.randn(32, WIDTH).cuda()

    def loss(self) -> torch.Tensor:
        return self.models[0](self.batch()).square().mean()

    def finish(self) -> None:
        """What was hashed may go."""
        self.optimizer.zero_grad()

    def step(self) -> List[torch.Tensor]:
        loss = self.loss()
        loss.backward()
        self.optimizer.step()
        return [loss]

    def __init_subclass__(cls) -> None:
        PROGRAMS[cls.__name__.lower()] = cls


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Layers(nn.Module):
    def __init__(self, block: Any = Block, count: int = 3) -> None:
        super().__init__()
        self.layers = nn.ModuleList(block() for _ in range(count))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


class Language(nn.Module):
    def __init__(self, tied: bool = False) -> None:
        super().__init__()
        self.embedding = nn.Embedding(64, WIDTH)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(WIDTH, 4, 2 * WIDTH, 0.1, batch_first=True)
            for _ in range(3)
        )
        self.head = nn.Linear(WIDTH, 64, bias=False)
        if tied:
            self.head.weight = self.embedding.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1], x.device)
        x = self.embedding(x)
        for layer in self.layers:
            x = layer(x, mask, is_causal=True)
        return self.head(x).flatten(0, 1)


class GPT(Program):
    def make(self) -> List[nn.Module]:
        return [Language()]

    def batch(self) -> torch.Tensor:
        return torch.randint(0, 64, (2, 33)).cuda()

    def loss(self) -> torch.Tensor:
        tokens = self.batch()
        return F.cross_entropy(self.models[0](tokens[:, :-1]), tokens[:, 1:].flatten())


class Tied(GPT):
    def make(self) -> List[nn.Module]:
        return [Language(tied=True)]


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one = nn.Conv2d(8, 8, 3, padding=1, bias=False)
        self.two = nn.Conv2d(8, 8, 3, padding=1, bias=False)
        self.norms = nn.ModuleList(nn.BatchNorm2d(8) for _ in range(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.relu(self.norms[0](self.one(x)), inplace=True)
        return F.relu(x + self.norms[1](self.two(y)))


class ResNet(Program):
    def make(self) -> List[nn.Module]:
        head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 10))
        return [nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), Layers(Residual), head)]

    def loss(self) -> torch.Tensor:
        images = torch.randn(4, 3, 16, 16).cuda()
        return F.cross_entropy(self.models[0](images), torch.arange(4).cuda())


class Experts(nn.Module):
    """Two of four a token, in groups whose sizes hang on the data."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(WIDTH, 4)
        self.experts = nn.ModuleList(Block() for _ in range(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        shares, chosen = self.gate(x).softmax(-1).topk(2)
        y = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            token, slot = (chosen == number).nonzero(as_tuple=True)
            part = expert(x[token]) * shares[token, slot, None]
            y = y.index_add(0, token, part)
        return x + y


class MoE(Program):
    varies = True

    def make(self) -> List[nn.Module]:
        return [Layers(Experts, 2)]


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(WIDTH, WIDTH, 2, dropout=0.2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.lstm(x)[0]


class LSTM(Program):
    def make(self) -> List[nn.Module]:
        return [Recurrent()]

    def batch(self) -> torch.Tensor:
        return torch.randn(6, 4, WIDTH).cuda()


class GAN(Program):
    """Two optimizers in turn; the second one's loss goes through both models."""

    def make(self) -> List[nn.Module]:
        return [Layers(), nn.Sequential(Layers(), nn.Linear(WIDTH, 1))]

    def __init__(self) -> None:
        super().__init__()
        self.optimizers = [
            torch.optim.Adam(model.parameters(), lr=1e-3) for model in self.models
        ]

    def step(self) -> List[torch.Tensor]:
        maker, judge = self.models
        fake = maker(self.batch())
        seen = judge(self.batch()).sigmoid().log() + (1 - judge(fake.detach())).square()
        losses = [-seen.mean()]
        losses[0].backward()
        self.optimizers[1].step()
        self.optimizers[1].zero_grad()
        losses.append(-judge(fake).mean())
        losses[1].backward()
        self.optimizers[0].step()
        return losses


class Rewriter(nn.Module):
    """Views of one tensor, some changed in place before anything else needs them."""

    def __init__(self) -> None:
        super().__init__()
        self.mix = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.mix(x).chunk(3, dim=-1)
        scores = (q @ k.t()).div_(8).softmax(-1)
        y = (scores @ v).add_(x)
        y[:, ::2].mul_(0.5)
        halves = F.relu_(y[1:]).transpose(0, 1).contiguous().t()
        return self.out(F.pad(halves, (0, 0, 1, 0)))


class InPlace(Program):
    def make(self) -> List[nn.Module]:
        return [Layers(Rewriter)]


class Adapted(nn.Module):
    """A frozen product with two narrow ones beside it."""

    def __init__(self) -> None:
        super().__init__()
        self.base = nn.Linear(WIDTH, WIDTH).requires_grad_(False)
        self.down = nn.Linear(WIDTH, 4, bias=False)
        self.up = nn.Linear(4, WIDTH, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.gelu(self.base(x) + self.up(self.down(F.dropout(x, 0.1))))


class Adapters(Program):
    def make(self) -> List[nn.Module]:
        return [Layers(Adapted, 4)]


class Mixed(Program):
    """Autocast to half, with a scaler that skips the first step."""

    def __init__(self) -> None:
        super().__init__()
        self.scaler = torch.amp.GradScaler(
            "cuda", init_scale=2.0**40, growth_interval=8
        )

    def step(self) -> List[torch.Tensor]:
        with torch.autocast("cuda", torch.float16):
            loss = self.loss()
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return [loss]


class Accumulated(Program):
    def step(self) -> List[torch.Tensor]:
        losses: List[torch.Tensor] = []
        for _ in range(3):
            losses.append(self.loss() / 3)
            losses[-1].backward()
        self.optimizer.step()
        return losses


class Twice(Program):
    """A penalty on the gradient: a backward through a backward."""

    def step(self) -> List[torch.Tensor]:
        x = self.batch().requires_grad_()
        loss = self.models[0](x).square().mean()
        (inner,) = torch.autograd.grad(loss, x, create_graph=True)
        (loss + inner.square().sum()).backward()
        self.optimizer.step()
        return [loss]


class Retained(Program):
    """One graph, three backwards, the last of which frees it."""

    def step(self) -> List[torch.Tensor]:
        y = self.models[0](self.batch())
        losses = [y.square().mean(), y.abs().mean(), y.mean()]
        for left, loss in zip((2, 1, 0), losses):
            loss.backward(retain_graph=left > 0)
        self.optimizer.step()
        return losses


class TwoGraphs(Program):
    """Each graph's backward runs behind the next one's forward, and one is never used."""

    def __init__(self) -> None:
        super().__init__()
        self.last = self.loss()

    def step(self) -> List[torch.Tensor]:
        graphs = [self.loss(), self.loss(), self.loss()]
        graphs[1].backward()
        graphs[0].backward()
        del graphs[2]
        self.optimizer.step()
        return graphs


class Kept(Program):
    """Outputs of several steps are kept alive by the program."""

    def __init__(self) -> None:
        super().__init__()
        self.held: List[torch.Tensor] = []

    def loss(self) -> torch.Tensor:
        self.held = [*self.held[-2:], self.models[0](self.batch())]
        return self.held[-1].square().mean()
