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


OVERRIDES: list[Any] = []  # of the dispatcher: they last as long as their library


def give_loss_its_own_storage() -> None:
    import torch

    aten = torch.ops.aten

    def mse_loss(self: Any, target: Any, reduction: int = 1) -> torch.Tensor:
        each = aten.mse_loss.out(self, target, 0, out=self.new_empty(0))
        return each if not reduction else each.mean() if reduction == 1 else each.sum()

    OVERRIDES.append(torch.library.Library("aten", "IMPL"))
    OVERRIDES[-1].impl("mse_loss", mse_loss, "CUDA")


def normalize_in_steps() -> None:
    import torch

    def rms_norm(
        input: Any, normalized_shape: Any, weight: Any = None, eps: Any = None
    ) -> torch.Tensor:
        wide = torch.float64 if input.dtype is torch.float64 else torch.float32
        eps = torch.finfo(wide).eps if eps is None else eps
        dims = tuple(range(-len(normalized_shape), 0))
        raised = input.to(wide)
        scale = raised.pow(2).mean(dims, keepdim=True).add_(eps).rsqrt()
        result = raised.mul(scale)
        if weight is not None:
            result = result.mul(weight)
        return result.type_as(input)

    torch.rms_norm = torch.nn.functional.rms_norm = rms_norm


# --- Other reasons, one at a time


def count_what_was_asked_for() -> None:
    import torch

    def asked(device: Any = None) -> int:
        return torch.cuda.memory_stats(device)["requested_bytes.all.peak"]

    torch.cuda.max_memory_allocated = asked
    torch.cuda.memory.max_memory_allocated = asked


def allocate_before() -> None:
    import torch

    blocks = [
        torch.empty(n * 3 << 19, dtype=torch.uint8, device="cuda") for n in range(40)
    ]
    del blocks


def winograd_bytes(sizes: Any, filters: int, stride: Any, kernel: Any, item: int) -> int:
    """Transforms of F(4x4, 3x3): 36 numbers for each tile of 4 x 4 and channel."""
    if list(kernel) != [3, 3] or set(stride) != {1}:
        return 0
    batch, channels, height, width = sizes
    tiles = batch * -(-height // 4) * -(-width // 4)
    return 36 * item * (tiles * (channels + filters) + channels * filters)


def take_workspaces(bytes_of: Callable[[bool, Any, Any, Any], int]) -> None:
    """Wraps the dispatcher's fp32 convolutions in a transient block each; its bytes are
    asked for with backward or not, input, weight and stride."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    aten = torch.ops.aten
    forward = (aten.convolution.default, aten.cudnn_convolution.default)

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(
            self, function: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            block = None
            back = function is aten.convolution_backward.default
            if back or function in forward:
                x, w = args[1 if back else 0], args[2 if back else 1]
                if x.is_cuda and x.dim() == 4 and x.dtype is torch.float32:
                    size = bytes_of(back, x, w, args[4 if back else 3])
                    block = torch.empty(size, dtype=torch.uint8, device=x.device)
            result = function(*args, **(kwargs or {}))
            del block
            return result

    Mode().__enter__()


def take_winograd_workspaces() -> None:
    take_workspaces(
        lambda _, x, w, stride: winograd_bytes(
            x.shape, w.shape[0], stride, w.shape[2:], x.element_size()
        )
    )


def take_large_workspaces() -> None:
    take_workspaces(lambda back, *_: 128 << 20 if back else 0)


# --- What stands in for what is not at hand


def module(name: str, **members: Any) -> types.ModuleType:
    made = types.ModuleType(name)
    vars(made).update(members)
    sys.modules[name] = made
    return made


def leave_weights() -> None:
    import torch

    torch.nn.init.kaiming_uniform_ = lambda tensor, *_, **__: tensor


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

    def norm(hidden_size: int) -> Any:
        return torch.nn.LayerNorm(hidden_size)

    def rms_norm(hidden_size: int, eps: float) -> Any:
        return torch.nn.RMSNorm(hidden_size, eps)

    def linear_loss(**options: Any) -> Any:
        loss = torch.nn.CrossEntropyLoss(**options)
        return lambda weight, x, y: loss(x @ weight.t(), y)

    name = "liger_kernel.transformers"
    for package in ("liger_kernel", name):
        module(package)
    for path, member, what in (
        ("cross_entropy", "LigerCrossEntropyLoss", torch.nn.CrossEntropyLoss),
        ("geglu", "LigerGEGLUMLP", LlamaMLP),
        ("swiglu", "LigerSwiGLUMLP", LlamaMLP),
        ("layer_norm", "LigerLayerNorm", norm),
        ("rms_norm", "LigerRMSNorm", rms_norm),
        ("fused_linear_cross_entropy", "LigerFusedLinearCrossEntropyLoss", linear_loss),
    ):
        module(f"{name}.{path}", **{member: what})
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
        "the device's `mse_loss` is the mean of the elements' losses. Since it became a "
        "structured operator, its mean is a number in a storage of the elements' size "
        "(pytorch/pytorch issue 185647). That 1.11 did not do so is inferred from the "
        "fp32 figure, not read in its source; the figure under autocast, whose peak lies "
        "elsewhere, was not looked at for it.",
        patch=give_loss_its_own_storage,
    ),
    "RMSNorm in steps": Switch(
        "`rms_norm` as a product of fp32 tensors that autograd saves: so before PyTorch "
        "2.9, which has a fused operator (pytorch/pytorch pull request 153666).",
        patch=normalize_in_steps,
    ),
    "reentrant checkpoints": Switch(
        "`TIMM_REENTRANT_CKPT=1`: the kind of checkpoint that timm took in 2024 (later "
        "versions have this variable for it). It frees elsewhere what it recomputed.",
        {"TIMM_REENTRANT_CKPT": "1"},
    ),
    "asked for": Switch(
        "`max_memory_allocated` answers the peak of the bytes asked for. Between it and "
        "the usual answer lie remainders of up to 1 MiB that the allocator does not "
        "split off; they depend on everything allocated before.",
        patch=count_what_was_asked_for,
    ),
    "another history": Switch(
        "before the source begins, 40 blocks of up to 58.5 MiB are allocated and freed: "
        "all that changes is where the allocator finds room, and so which remainders it "
        "does not split off.",
        patch=allocate_before,
    ),
    "128 MiB backward": Switch(
        "each convolution's backward holds a block of 128 MiB while it runs. The size is "
        "chosen by the first row: that it brings the other three near, too, shows what "
        "is left, not how cuDNN sizes it.",
        patch=take_large_workspaces,
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
    "weights as they come": Switch(
        "`kaiming_uniform_` does nothing: the host would take minutes for numbers that "
        "are not used.",
        patch=leave_weights,
    ),
    "random images": Switch(
        "stands in for the data set (128 images), pretrained weights (random ones) and "
        "optimizers that are not used.",
        patch=stand_in_for_images,
    ),
}
