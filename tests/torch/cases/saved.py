# SPDX-License-Identifier: Apache-2.0
"""Every kind of tensor that a forward may save, in every dtype. Says for each a
digest of the gradients, what a backward found that its forward had not saved so, and at
the end how many pages are left."""

import hashlib
import json
from typing import Any, Callable, Dict, Iterator, List, Tuple

import torch
from torch import nn

from actswap_torch import _pack

DTYPES = (torch.float32, torch.bfloat16, torch.float16, torch.float64, torch.complex64)
WIDTH = 96


def facts(tensor: torch.Tensor) -> Tuple[Any, ...]:
    """What a tensor is besides its values."""
    strided = tensor.layout == torch.strided
    return (
        str(tensor.dtype),
        str(tensor.device),
        str(tensor.layout),
        type(tensor).__name__,
        tuple(tensor.shape),
        tensor.stride() if strided else None,
        tensor.storage_offset() if strided else None,
        tensor.is_conj() if strided else None,
        tensor.is_neg() if strided else None,
        tensor.data_ptr() % 512 if strided and tensor.is_cuda else None,
    )


class Save(torch.autograd.Function):
    """The sum of what it saves, which its backward looks at twice."""

    changed: List[str] = []

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, *saved: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(*saved)
        ctx.facts = [facts(t) for t in saved]
        return x * 1

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        for _ in range(2):
            found = [facts(t) for t in ctx.saved_tensors]
            Save.changed += [
                str(pair) for pair in zip(ctx.facts, found) if len(set(pair)) > 1
            ]
        for tensor in ctx.saved_tensors:
            if tensor.numel() and tensor.is_cuda and tensor.layout == torch.strided:
                value = tensor.resolve_conj().resolve_neg()
                value = torch.view_as_real(value) if value.is_complex() else value
                grad = grad * value.float().mean().to(grad.dtype)
        return (grad, *(None for _ in ctx.saved_tensors))


Makes = Callable[[torch.dtype], List[torch.Tensor]]
CASES: List[Makes] = []


def case(make: Makes) -> Makes:
    CASES.append(make)
    return make


def noise(*shape: int, dtype: torch.dtype) -> torch.Tensor:
    real = torch.complex64 if dtype.is_complex else torch.float32
    return torch.randn(shape, dtype=real).to(dtype).cuda()


@case
def whole(dtype: torch.dtype) -> List[torch.Tensor]:
    return [noise(WIDTH, WIDTH, dtype=dtype) * 1]


@case
def of_an_odd_size(dtype: torch.dtype) -> List[torch.Tensor]:
    return [noise(4096 + 1, dtype=dtype) * 1, noise(2 * 4096 + 1, dtype=dtype) * 1]


@case
def behind_an_offset(dtype: torch.dtype) -> List[torch.Tensor]:
    return [(noise(WIDTH * WIDTH + 1, dtype=dtype) * 1)[1:]]


@case
def transposed_and_not(dtype: torch.dtype) -> List[torch.Tensor]:
    x = noise(WIDTH, 2 * WIDTH, dtype=dtype) * 1
    return [x, x.t(), x.t()[1:]]


@case
def parts_of_one(dtype: torch.dtype) -> List[torch.Tensor]:
    return list((noise(WIDTH, 3 * WIDTH, dtype=dtype) * 1).chunk(3, dim=1))


@case
def every_second(dtype: torch.dtype) -> List[torch.Tensor]:
    return [(noise(WIDTH, 2 * WIDTH, dtype=dtype) * 1)[:, ::2]]


@case
def expanded(dtype: torch.dtype) -> List[torch.Tensor]:
    return [(noise(1, 4096, dtype=dtype) * 1).expand(64, 4096)]


@case
def overlapping(dtype: torch.dtype) -> List[torch.Tensor]:
    return [(noise(8192, dtype=dtype) * 1).as_strided((8000, 16), (1, 1))]


@case
def empty_and_single(dtype: torch.dtype) -> List[torch.Tensor]:
    x = noise(WIDTH, dtype=dtype)
    return [x[:0] * 1, x.sum(), (x * 1)[3]]


@case
def conjugate_and_negative(dtype: torch.dtype) -> List[torch.Tensor]:
    x = noise(WIDTH, WIDTH, dtype=torch.complex64) * 1
    return [x.conj(), x.conj().imag, x.conj().t()]


@case
def as_other_types(dtype: torch.dtype) -> List[torch.Tensor]:
    x = noise(WIDTH, WIDTH, dtype=dtype) * 1
    return [x, x.view(torch.uint8), x.abs() > 0.5, (x.abs() * 9).to(torch.int64)]


@case
def on_the_cpu_on_purpose(dtype: torch.dtype) -> List[torch.Tensor]:
    return [torch.ones(8192, dtype=dtype), noise(8192, dtype=dtype) * 1]


@case
def sparse(dtype: torch.dtype) -> List[torch.Tensor]:
    if dtype != torch.float32:
        return [noise(WIDTH, dtype=dtype)]
    return [torch.eye(128).to_sparse().cuda()]


@case
def parameters_and_views_of_them(dtype: torch.dtype) -> List[torch.Tensor]:
    weight = nn.Parameter(noise(WIDTH, WIDTH, dtype=dtype))
    return [weight, weight.t(), weight.view(-1)]


@case
def twice(dtype: torch.dtype) -> List[torch.Tensor]:
    x = noise(WIDTH, WIDTH, dtype=dtype) * 1
    return [x, x, x.detach()]


class Block(nn.Module):
    def __init__(self, make: Makes, dtype: torch.dtype) -> None:
        super().__init__()
        self.make, self.dtype = make, dtype

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return Save.apply(x, *self.make(self.dtype))


class Model(nn.Module):
    def __init__(self, make: Makes, dtype: torch.dtype) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(64))
        self.layers = nn.ModuleList(Block(make, dtype) for _ in range(3))

    def forward(self) -> torch.Tensor:
        x = self.scale * 2
        for layer in self.layers:
            x = layer(x)
        return x.sum()


def digest(make: Makes, dtype: torch.dtype) -> str:
    torch.manual_seed(0)
    model = Model(make, dtype).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    seen = hashlib.sha256()
    for step in range(3):
        if step == 1:
            model()  # no backward
            with torch.inference_mode():
                model()
        optimizer.zero_grad()
        model().backward()
        seen.update(model.scale.grad.cpu().numpy().tobytes())
        optimizer.step()
    return seen.hexdigest()


def all_cases() -> Iterator[Tuple[str, str]]:
    for make in CASES:
        for dtype in DTYPES:
            yield f"{make.__name__} {str(dtype)[6:]}", digest(make, dtype)


def main() -> None:
    said: Dict[str, Any] = {"digests": dict(all_cases())}
    said["changed"] = sorted(set(Save.changed))
    said["pages"] = _pack.stats()["pages"]
    print(json.dumps(said))


main()
