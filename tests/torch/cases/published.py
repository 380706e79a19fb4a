# SPDX-License-Identifier: Apache-2.0
"""Numbers that people have printed on real cards. Prints ours as JSON, by name of row.

python published.py CARD
"""

from __future__ import annotations

import json
import sys
from typing import Any, Callable, Dict, List, Tuple

import torch

CUDA = "cuda"
ISSUE = "github.com/pytorch/pytorch/issues/"

Row = Tuple[str, Callable[[], Any], List[float]]


def seeded(seed: int, draw: Callable[[], Any]) -> Callable[[], Any]:
    def run() -> Any:
        torch.manual_seed(seed)
        return draw()

    return run


def own(seed: int) -> torch.Generator:
    return torch.Generator(CUDA).manual_seed(seed)


def ends(x: torch.Tensor) -> torch.Tensor:
    """As printing shows a long row: its first three and last three."""
    return torch.cat([x[..., :3], x[..., -3:]], -1)


def linear() -> torch.Tensor:
    with torch.device(CUDA):
        layer = torch.nn.Linear(1, 1)
    return torch.cat([layer.weight.flatten(), layer.bias])


def millions() -> torch.Tensor:
    """More than a card has threads: the last hang on how many it has."""
    return ends(torch.randn(49 * 12 * 112 * 144, device=CUDA, generator=own(1)))


# By name: where it was published, what was run, what was printed.
ROWS: Dict[str, Row] = {
    "uniform distribution": (
        ISSUE + "47347",
        seeded(
            0,
            lambda: torch.distributions.Uniform(
                torch.tensor(0.0, device=CUDA), torch.tensor(1.0, device=CUDA)
            ).rsample((5,)),
        ),
        [0.3990, 0.5167, 0.0249, 0.9401, 0.9459],
    ),
    "randn, seed 10": (
        ISSUE + "79496",
        seeded(10, lambda: torch.randn(3, device=CUDA)),
        [-0.1029, 1.6810, -0.2708],
    ),
    "randn, seed 42": (
        ISSUE + "158398",
        lambda: ends(torch.randn([1, 64, 2048], generator=own(42), device=CUDA)[0, :3]),
        [
            *(0.1940, 2.1614, -0.1721, 1.4540, -2.7733, -0.8932),
            *(-0.4574, 0.8063, 0.1580, 0.1124, 0.2769, -1.2535),
            *(1.1346, -0.6329, -0.9147, -1.0001, -1.1552, -0.6955),
        ],
    ),
    "normal_ by a generator": (
        ISSUE + "62467",
        lambda: torch.empty(1, 3, 128, 128, device=CUDA).normal_(generator=own(43))[
            ..., 0, 0
        ],
        [1.9983, 0.8704, 2.1127],
    ),
    "normal_ of a mean": (
        ISSUE + "97097",
        seeded(
            14, lambda: ends(torch.empty(1000, 100, device=CUDA).normal_(5, 5**0.5)[:3])
        ),
        [
            *(2.8731, 5.2727, 2.9889, 1.6853, 9.6331, 6.6319),
            *(3.9968, 3.8097, 5.7328, 4.4029, 3.9804, 7.4698),
            *(6.5552, 4.0857, 4.2315, 2.7704, 3.5479, 3.3063),
        ],
    ),
    "a layer's own": (
        "github.com/mrdbourke/pytorch-deep-learning/issues/759",
        seeded(42, linear),
        [0.2259, 0.9754],
    ),
    "half": (
        "github.com/Longistamina/DeepLearning_Pytorch 03_Tensor_attributes.py",
        seeded(0, lambda: torch.randn(45, device=CUDA, dtype=torch.half)[:20]),
        [
            *(-0.9248, -0.4253, -2.6445, 0.1451, -0.1208, -0.5796, -0.6230, -0.3284),
            *(-1.0742, -0.3630, -1.6709, 2.2656, 0.3118, -0.1842, 1.2871, 1.1816),
            *(-0.1271, 1.2168, 1.4355, 1.0605),
        ],
    ),
    # Found by their numbers, in public code that does not show its seed: all 64, all 8.
    "double": (
        "a lesson on max pooling, of a slice on cuda:0",
        seeded(0, lambda: torch.randn(8, 8, device=CUDA, dtype=torch.double)[::7]),
        [
            *(-0.3104, -0.0343, 0.1756, -2.2804, 0.5039, 0.5596, -0.0750, 0.9691),
            *(0.5576, -0.1883, -0.5894, -1.0192, -1.4553, -0.8599, -1.3645, -0.0069),
        ],
    ),
    "randint": (
        "a comment on noise levels, of randint(0, 100, (8,)) on cuda:0",
        seeded(0, lambda: torch.randint(0, 100, (8,), device=CUDA)),
        [41, 97, 91, 72, 53, 4, 3, 33],
    ),
}
CARDS: Dict[str, Row] = {
    "h100-80gb": (
        ISSUE + "143086",
        millions,
        [-0.2963, 2.6764, -0.1408, -0.6970, -0.7780, 0.3267],
    ),
    "a100-80gb": (
        ISSUE + "143086",
        millions,
        [-0.2963, 2.6764, -0.1408, 0.1549, -0.6797, -0.1656],
    ),
}


def main(card: str) -> None:
    rows = {**ROWS, card: CARDS[card]}
    found = {
        name: [round(x, 4) for x in run().double().flatten().tolist()]
        for name, (_, run, _) in rows.items()
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
