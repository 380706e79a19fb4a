# SPDX-License-Identifier: Apache-2.0
"""Slow paths of the C side: PyTorch's words for errors, memory on another stream, tensors
made of others."""

from __future__ import annotations

import re
import sys
import threading
from typing import Any, List, Optional


def _torch() -> Any:
    return sys.modules["torch"]


def kinds() -> List[Any]:
    """Tensors that answer differently, the first and all of its kind on the CPU."""
    torch = _torch()
    cpu = {"device": "cpu", "dtype": torch.float64}
    with torch.inference_mode(False), torch.enable_grad():
        plain = torch.empty_strided((3, 5), (7, 2), **cpu)
        leaf = torch.empty(3, requires_grad=True, **cpu)
        view = torch.empty(40, **cpu).as_strided((2, 3), (9, 2), 11)
        changed = torch.empty(2, dtype=torch.int16, device="cpu").zero_().zero_()
        return [
            plain,
            leaf,
            view,
            changed,
            leaf * leaf,
            leaf.unbind()[1],
            torch.empty(3, dtype=torch.complex64, device="cpu").conj(),
            torch.empty(3, device="meta"),
        ]


def _sample() -> str:
    """What this PyTorch says when a saved tensor was changed in place.

    The words changed with its versions, so it is asked. In a thread of its own, whose
    stack of saved tensor hooks is empty: with hooks nothing is checked.
    """
    torch, said = _torch(), []

    def run() -> None:
        try:
            with torch.enable_grad():
                out = torch.zeros(1, requires_grad=True).exp()
                node = out.grad_fn
                out.add_(1)
                node._saved_result
        except RuntimeError as error:
            said.append(str(error))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return said[0] if said else ""


def _describe(
    kind: str, shape: Any, now: int, version: int, node: Optional[type], output: int
) -> str:
    sample = _sample()
    name = ""
    if node is not None:
        name = node.__name__
        if "ExpBackward0" not in sample:
            name = re.sub(r"Backward\d*$", "", name)
        name = f", which is output {output} of {name},"
    tail = sample.partition(" instead.")[2]
    return (
        "one of the variables needed for gradient computation has been modified by an "
        f"inplace operation: [{kind} {list(shape)}]{name} is at version {now}; "
        f"expected version {version} instead.{tail}"
    )


def modified(
    dtype: Any,
    device: Any,
    shape: Any,
    now: int,
    version: int,
    node: Optional[type],
    output: int,
) -> str:
    """The error for a tensor whose bytes the library has."""
    kind = _torch().empty(0, dtype=dtype, device=device).type()
    return _describe(kind, shape, now, version, node, output)


def modified_tensor(
    tensor: Any, now: int, version: int, node: Optional[type], output: int
) -> str:
    """The error for a tensor that was left where it is."""
    kind = _torch().Tensor.type(tensor.detach())
    return _describe(kind, tensor.shape, now, version, node, output)


REFUSED = (
    "actswap: run again in backward, {} came to other values than in the forward, though "
    "a trial had shown the same ones: the gradients of this step are not those of a run "
    "without recompute. Blocks named here are left alone from now on, so that a step may "
    "be done again; ACTSWAP_POLICY=off or offload, or recompute:blocks= without them, "
    "never runs them again"
)


def allocate_on(device: int, bytes: int, stream: int) -> Any:
    """Device memory whose first use is on a stream that is not the current one."""
    torch = _torch()
    with torch.cuda.stream(torch.cuda.ExternalStream(stream, device=device)):
        return torch.UntypedStorage(bytes, device=torch.device("cuda", device))


def parts(tensor: Any) -> List[Any]:
    """What a tensor without memory of its own is made of: sparse ones and wrappers.
    Asks nothing of others, which may be fake or belong to a function transform."""
    torch = _torch()
    flatten = getattr(tensor, "__tensor_flatten__", None)
    if flatten is not None:
        inner = [getattr(tensor, name) for name in flatten()[0]]
    elif torch._C._len_torch_dispatch_stack():
        inner = []
    elif tensor.layout is torch.sparse_coo:
        inner = [tensor._indices(), tensor._values()]
    elif tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        inner = [tensor.crow_indices(), tensor.col_indices(), tensor.values()]
    elif tensor.layout in (torch.sparse_csc, torch.sparse_bsc):
        inner = [tensor.ccol_indices(), tensor.row_indices(), tensor.values()]
    else:
        inner = []
    return [p for t in inner for p in (parts(t) if _is_wrapper(t) else [t])]


def _is_wrapper(tensor: Any) -> bool:
    return hasattr(tensor, "__tensor_flatten__")
