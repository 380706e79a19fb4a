# SPDX-License-Identifier: Apache-2.0
"""What scripts/accuracy changes around a source's text, one thing a switch."""

from __future__ import annotations

import sys
import types
from typing import Any, Callable, Dict, Iterator, NamedTuple, Optional


class Switch(NamedTuple):
    about: str
    environment: Dict[str, str] = {}
    patch: Optional[Callable[[], None]] = None


# --- Differences between versions of PyTorch


def keep_gradients() -> None:
    import torch

    for owner in (torch.optim.Optimizer, torch.nn.Module):
        original = owner.zero_grad

        def zero_grad(self: Any, set_to_none: bool = False, do: Any = original) -> None:
            do(self, set_to_none)

        owner.zero_grad = zero_grad


def take_workspace_with_lt() -> None:
    import torch

    torch.cuda.current_blas_handle()


def give_loss_its_own_storage() -> None:
    import torch

    original = torch.nn.functional.mse_loss

    def mse_loss(*arguments: Any, **keywords: Any) -> torch.Tensor:
        return original(*arguments, **keywords).clone()

    torch.nn.functional.mse_loss = mse_loss


# --- Other reasons, one at a time


def count_what_was_asked_for() -> None:
    import torch

    def asked(device: Any = None) -> int:
        return torch.cuda.memory_stats(device)["requested_bytes.all.peak"]

    torch.cuda.max_memory_allocated = asked
    torch.cuda.memory.max_memory_allocated = asked


def winograd_bytes(sizes: Any, filters: int, stride: Any, kernel: Any, item: int) -> int:
    """Transforms of F(4x4, 3x3): 36 numbers for each tile of 4 x 4 and channel."""
    if list(kernel) != [3, 3] or set(stride) != {1}:
        return 0
    batch, channels, height, width = sizes
    tiles = batch * -(-height // 4) * -(-width // 4)
    return 36 * item * (tiles * (channels + filters) + channels * filters)


def take_winograd_workspaces() -> None:
    """Wraps the dispatcher's convolutions, forward and backward, in a transient block."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    aten = torch.ops.aten
    forward = (aten.convolution.default, aten.cudnn_convolution.default)

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(
            self, function: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            block = None
            if function in forward or function is aten.convolution_backward.default:
                back = function is aten.convolution_backward.default
                x, w = args[1 if back else 0], args[2 if back else 1]
                stride = args[4 if back else 3]
                if x.is_cuda and x.dim() == 4 and x.dtype is torch.float32:
                    size = winograd_bytes(
                        x.shape, w.shape[0], stride, w.shape[2:], x.element_size()
                    )
                    block = torch.empty(size, dtype=torch.uint8, device=x.device)
            result = function(*args, **(kwargs or {}))
            del block
            return result

    Mode().__enter__()


# --- What stands in for what is not at hand


def module(name: str, **members: Any) -> types.ModuleType:
    made = types.ModuleType(name)
    vars(made).update(members)
    sys.modules[name] = made
    return made


def stand_in_for_liger() -> None:
    """The other provider of the benchmarks: its classes become plain PyTorch's."""
    import importlib.metadata

    import torch
    import triton
    from transformers.models.llama.modeling_llama import LlamaMLP

    original = importlib.metadata.version

    def version(distribution_name: str) -> str:
        return "0" if distribution_name == "liger-kernel" else original(distribution_name)

    importlib.metadata.version = version
    module("liger_kernel")
    module("liger_kernel.transformers")
    loss, mlp = torch.nn.CrossEntropyLoss, LlamaMLP
    name = "liger_kernel.transformers."
    module(name + "cross_entropy", LigerCrossEntropyLoss=loss)
    module(name + "geglu", LigerGEGLUMLP=mlp)
    module(name + "swiglu", LigerSwiGLUMLP=mlp)
    triton.testing.do_bench = lambda *_, **__: (0.0, 0.0, 0.0)


class Images:
    """As many random images as a few steps need; the peak is the same in each."""

    COUNT = 128

    def select_columns(self, _: Any) -> Images:
        return self

    def set_transform(self, _: Any) -> None:
        pass

    def __len__(self) -> int:
        return self.COUNT

    def __getitem__(self, index: int) -> Dict[str, Any]:
        import torch

        if index >= self.COUNT:
            raise IndexError(index)
        return {"image": torch.zeros(3, 224, 224), "label": index % 45}

    def __iter__(self) -> Iterator[Dict[str, Any]]:
        return (self[i] for i in range(self.COUNT))


def stand_in_for_images() -> None:
    import timm

    module("datasets", load_dataset=lambda *_, **__: Images())
    optimizers = types.SimpleNamespace(AdamW8bit=None, AdamWFp8=None, AdamW4bit=None)
    module("bitsandbytes", optim=optimizers)
    module("torchao")
    module("torchao.prototype", low_bit_optim=optimizers)
    original = timm.create_model

    def create_model(name: str, pretrained: bool = False, **keywords: Any) -> Any:
        return original(name.split("/")[-1], pretrained=False, **keywords)

    timm.create_model = create_model


SWITCHES = {
    "kept workspaces": Switch(
        "`TORCH_CUBLAS_WORKSPACE_CACHE=1`. PyTorch before 2.15 keeps cuBLAS's workspace "
        "for each thread and stream; 2.15 takes it for the call.",
        {"TORCH_CUBLAS_WORKSPACE_CACHE": "1"},
    ),
    "cuBLASLt's own": Switch(
        "`TORCH_CUBLASLT_UNIFIED_WORKSPACE=0`, and `torch.cuda.current_blas_handle()` "
        "before the source begins. PyTorch 2.9 keeps a workspace of cuBLASLt beside "
        "cuBLAS's, and takes both with the handle.",
        {"TORCH_CUBLASLT_UNIFIED_WORKSPACE": "0"},
        take_workspace_with_lt,
    ),
    "no workspaces": Switch(
        "`CUBLAS_WORKSPACE_CONFIG=:0:0 CUBLASLT_WORKSPACE_SIZE=0`. Up to PyTorch 1.11 "
        "cuBLAS allocates its own, which PyTorch does not count.",
        {"CUBLAS_WORKSPACE_CONFIG": ":0:0", "CUBLASLT_WORKSPACE_SIZE": "0"},
    ),
    "kept gradients": Switch(
        "`zero_grad(set_to_none=False)` as the default: so before PyTorch 2.0.",
        patch=keep_gradients,
    ),
    "loss of its own": Switch(
        "`mse_loss(...).clone()`. Since it is a structured operator, PyTorch's mean loss "
        "is a number in a storage of the elements' size. That 1.11 did not do so yet is "
        "inferred from the figure, not read in its source.",
        patch=give_loss_its_own_storage,
    ),
    "asked for": Switch(
        "`max_memory_allocated` answers the peak of the bytes asked for. Between it and "
        "the usual answer lie remainders of up to 1 MiB that the allocator does not "
        "split off; they depend on everything allocated before.",
        patch=count_what_was_asked_for,
    ),
    "Winograd": Switch(
        "each fp32 convolution of 3 x 3 and stride 1 holds the transforms of F(4x4, 3x3) "
        "of input, output and filter (Lavin and Gray, arXiv 1509.09308) while it runs. "
        "Which algorithm cuDNN takes is not public; this shows what one of them would "
        "add.",
        patch=take_winograd_workspaces,
    ),
    "plain Liger": Switch(
        "stands in for `liger_kernel`, which is not measured here: its classes are plain "
        "PyTorch's; and `triton.testing.do_bench` measures nothing.",
        patch=stand_in_for_liger,
    ),
    "random images": Switch(
        "stands in for the data set (128 images), pretrained weights (random ones) and "
        "optimizers that are not used.",
        patch=stand_in_for_images,
    ),
}
