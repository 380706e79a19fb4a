# SPDX-License-Identifier: Apache-2.0
"""What matrix products allocate above operands and results, in bytes: the most while one
runs, and what stays after it."""

import json
from typing import Callable, Dict, List

import torch

CUDA = torch.device("cuda")


def ones(*sizes: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.ones(*sizes, device=CUDA, dtype=dtype)


def allocated(call: Callable[[], torch.Tensor]) -> List[int]:
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    result = call()
    bytes_result = -(-result.numel() * result.element_size() // 512) * 512
    most = torch.cuda.max_memory_allocated() - before - bytes_result
    del result
    return [most, torch.cuda.memory_allocated() - before]


def products() -> Dict[str, List[int]]:
    a, b, row, full = ones(256, 512), ones(512, 128), ones(128), ones(256, 128)
    left, right = ones(8, 64, 32), ones(8, 32, 16)
    complex_a, complex_b = (x.to(torch.complex64) for x in (a, b))
    half_a, half_b = (x.to(torch.float16) for x in (a, b))
    calls: Dict[str, Callable[[], torch.Tensor]] = {
        "mm": lambda: a @ b,
        "addmm of a row": lambda: torch.addmm(row, a, b),
        "addmm of a matrix": lambda: torch.addmm(full, a, b),
        "mm of every other column": lambda: a[:, ::2] @ b[::2],
        "bmm": lambda: left @ right,
        "mm of complex": lambda: complex_a @ complex_b,
        "mm of half": lambda: half_a @ half_b,
        "dot": lambda: row.dot(row),
    }
    return {name: allocated(call) for name, call in calls.items()}


if __name__ == "__main__":
    found = products()
    before = torch.cuda.memory_allocated()
    torch._C._cuda_clearCublasWorkspaces()
    found["cleared"] = [0, before - torch.cuda.memory_allocated()]
    print(json.dumps(found))
