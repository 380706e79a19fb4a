# SPDX-License-Identifier: Apache-2.0
"""Workspaces of matrix products: PyTorch's own code takes them, on every card its way.

Sizes are those of PyTorch's public source (ATen/cuda/CublasHandlePool.cpp): cuBLAS 8 MiB
and 128 KiB, on compute capability 9 and up 32 MiB; cuBLASLt 1 MiB. By default a call
takes and returns it; with TORCH_CUBLAS_WORKSPACE_CACHE=1 it stays for the thread and
stream.
"""

from pathlib import Path
from typing import Dict, List

import pytest

from stack import Run, environment

CASE = Path(__file__).parent / "cases" / "products.py"
MIB = 1 << 20
OLDER, HOPPER, LT = 8 * MIB + (128 << 10), 32 * MIB, MIB


def products(card: str, compute: str, **settings: str) -> Dict[str, List[int]]:
    env = environment(sim_gpu=card, sim_compute=compute) | settings
    return Run([str(CASE)], env).result()


@pytest.mark.parametrize("compute", ["values", "shapes"])
@pytest.mark.parametrize(
    "card, workspace, settings",
    [
        ("h100-80gb", HOPPER, {}),
        ("a100-80gb", OLDER, {}),
        ("t4", 128 << 10, {"CUBLAS_WORKSPACE_CONFIG": ":16:8"}),
    ],
)
def test_a_product_takes_a_workspace_for_its_call(
    card: str, workspace: int, settings: Dict[str, str], compute: str
) -> None:
    found = products(card, compute, **settings)

    assert found == {
        "mm": [workspace, 0],
        "addmm of a row": [LT, 0],
        "addmm of a matrix": [workspace, 0],
        # Neither operand has a contiguous dimension: both are copied.
        "mm of every other column": [workspace + 256 * 256 * 4, 0],
        "bmm": [workspace, 0],
        "mm of complex": [workspace, 0],
        "mm of half": [workspace, 0],
        "dot": [workspace, 0],
        "cleared": [0, 0],
    }


@pytest.mark.parametrize("compute", ["values", "shapes"])
@pytest.mark.parametrize("unified", ["1", "0"])
def test_a_kept_workspace_is_taken_once_and_can_be_cleared(
    unified: str, compute: str
) -> None:
    found = products(
        "a100-80gb",
        compute,
        TORCH_CUBLAS_WORKSPACE_CACHE="1",
        TORCH_CUBLASLT_UNIFIED_WORKSPACE=unified,
    )

    lt = 0 if unified == "1" else LT
    assert found["mm"] == [OLDER, OLDER]
    assert found["addmm of a row"] == [lt, lt]
    assert found["bmm"] == [0, 0]
    assert found["cleared"] == [0, OLDER + lt]
