# SPDX-License-Identifier: Apache-2.0
"""How long operators, copies and steps take on the virtual clock of an H100 80GB.

Prints what was counted, and beside it what the published formulas give, in nanoseconds.
"""

import ctypes
import json
from typing import Any, Callable, Dict, List, Tuple

import torch
import torch.nn.functional as F

runtime = ctypes.CDLL(None)
FP32, TF32, HALF, FP64 = 66.9e12, 494.5e12, 989e12, 33.45e12
MEMORY, IN, OUT = 3352e9, 55.43e9, 55.06e9
KERNEL, OPERATOR, COPY, EVENT = 1300, 7000, 3400, 1600
half = torch.bfloat16
told: Dict[str, List[Any]] = {}


class Times(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_uint64)
        for name in (
            "now",
            "end",
            "kernels",
            "in_",
            "out",
            "in_hidden",
            "out_hidden",
            "stalled_in",
            "stalled_out",
            "stalled_kernels",
            "stalled_host",
        )
    ] + [("count", ctypes.c_ulong), ("unknown", ctypes.c_ulong)]


def times() -> Times:
    found = Times()
    runtime.sim_times_get(0, ctypes.byref(found))
    return found


def kernels(run: Callable[[], Any]) -> Tuple[int, int]:
    """How long the kernels of a call take, and how many there are."""
    before = times()
    run()
    after = times()
    return after.kernels - before.kernels, after.count - before.count


def at(amount: float, rate: float) -> int:
    return int(amount * 1e9 / rate)


def say(
    name: str, run: Callable[[], Any], flops: float, rate: float, touched: int
) -> None:
    """Of calls that are one kernel of ours; `touched` bytes are read or written."""
    told[name] = [
        list(kernels(run)),
        [KERNEL + max(at(flops, rate), at(touched, MEMORY)), 1],
    ]


def size(*tensors: torch.Tensor) -> int:
    return sum(t.numel() * t.element_size() for t in tensors)


def rand(*sizes: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.empty(*sizes, device="cuda", dtype=dtype)


def products() -> None:
    n, k, m = 2048, 4096, 8192
    for dtype, rate in ((half, HALF), (torch.float32, FP32), (torch.float64, FP64)):
        a, b, c = (
            rand(n, k, dtype=dtype),
            rand(k, m, dtype=dtype),
            rand(n, m, dtype=dtype),
        )
        flops = 2 * n * k * m
        say(f"mm {dtype}", lambda: a @ b, flops, rate, size(a, b, c))
        bias = c[0].contiguous()
        say(
            f"linear {dtype}",
            lambda: F.linear(a, b.t(), bias),
            flops,
            rate,
            size(a, b, bias, c),
        )
    torch.backends.cuda.matmul.allow_tf32 = True
    a, b, c = rand(n, k), rand(k, m), rand(n, m)
    say("mm tf32", lambda: a @ b, 2 * n * k * m, TF32, size(a, b, c))
    torch.backends.cuda.matmul.allow_tf32 = False
    a, b, c = rand(16, 512, 1024), rand(16, 1024, 256), rand(16, 512, 256)
    flops = 2 * 16 * 512 * 1024 * 256
    say("bmm", lambda: torch.bmm(a, b), flops, FP32, size(a, b, c))
    say("baddbmm", lambda: torch.baddbmm(c, a, b), flops, FP32, size(a, b, c, c))
    complex_ = rand(1024, 1024, dtype=torch.complex64)
    say(
        "mm complex", lambda: complex_ @ complex_, 8 * 1024**3, FP32, 2 * size(complex_)
    )
    thin = rand(1 << 20, 8)
    square = rand(8, 8)
    say(
        "mm by memory",
        lambda: thin @ square,
        2 * thin.numel() * 8,
        FP32,
        2 * size(thin) + size(square),
    )


def convolutions() -> None:
    x, w = rand(32, 64, 56, 56, dtype=half), rand(128, 64, 3, 3, dtype=half)
    y = rand(32, 128, 56, 56, dtype=half)
    one = 2 * y.numel() * 64 * 9
    say("conv", lambda: F.conv2d(x, w, padding=1), one, HALF, size(x, w, y))
    back = torch.ops.aten.convolution_backward
    say(
        "conv backward",
        lambda: back(
            y, x, w, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1, [True, True, False]
        ),
        2 * one,
        HALF,
        2 * size(x, w) + size(y),
    )
    grouped = rand(64, 8, 3, 3, dtype=half)
    say(
        "conv grouped",
        lambda: F.conv2d(x, grouped, padding=1, groups=8),
        2 * x.numel() * 8 * 9,
        HALF,
        2 * size(x) + size(grouped),
    )
    up = rand(64, 32, 2, 2, dtype=half)
    wide = rand(32, 32, 112, 112, dtype=half)
    say(
        "conv transposed",
        lambda: F.conv_transpose2d(x, up, stride=2),
        2 * x.numel() * 32 * 4,
        HALF,
        size(x, up, wide),
    )


def attention() -> None:
    """The arithmetic is larger by far than the bytes, which the kernels' extra results
    change: by them only whether a kernel was one."""
    b, h, s, d = 4, 16, 4096, 128
    ops = torch.ops.aten
    q, k, v = (rand(b, s, h, d, dtype=half) for _ in range(3))
    flops = 4 * b * h * s * s * d
    for causal in (False, True):
        share = 0.5 if causal else 1

        def forward() -> Any:
            return ops._flash_attention_forward(
                q, k, v, None, None, s, s, 0.0, causal, False
            )

        say(f"flash {causal}", forward, share * flops, HALF, 0)
        out, lse, state, unused, _ = forward()
        say(
            f"flash backward {causal}",
            lambda: ops._flash_attention_backward(
                q, q, k, v, out, lse, None, None, s, s, 0.0, causal, state, unused
            ),
            2.5 * share * flops,
            HALF,
            0,
        )
    heads = [t.transpose(1, 2) for t in (q, k, v)]
    few = [t[:, :4] for t in heads[1:]]
    for name, backend in (
        ("flash", torch.nn.attention.SDPBackend.FLASH_ATTENTION),
        ("efficient", torch.nn.attention.SDPBackend.EFFICIENT_ATTENTION),
        ("cudnn", torch.nn.attention.SDPBackend.CUDNN_ATTENTION),
    ):
        for grouped in (False, True) if name != "efficient" else (False,):
            parts = [heads[0]] + (few if grouped else heads[1:])
            leaves = [t.detach().requires_grad_() for t in parts]
            with torch.nn.attention.sdpa_kernel(backend):
                result = F.scaled_dot_product_attention(*leaves, enable_gqa=grouped)
                before = times()
                F.scaled_dot_product_attention(*leaves, enable_gqa=grouped)
                middle = times()
                result.backward(result.detach())
                after = times()
            told[f"sdpa {name} {grouped}"] = [
                [middle.kernels - before.kernels >= at(flops, HALF), True],
                [True, True],
            ]
            told[f"sdpa backward {name} {grouped}"] = [
                [
                    0 <= after.kernels - middle.kernels - at(2.5 * flops, HALF) < 500000,
                    True,
                ],
                [True, True],
            ]


def recurrent() -> None:
    t, b, i, h = 64, 32, 256, 512
    layer = torch.nn.LSTM(i, h, 2, device="cuda", dtype=half)
    x = rand(t, b, i, dtype=half)
    layer(x)
    weights = sum(p.numel() for p in layer.parameters() if p.dim() > 1)
    flops = 2 * t * b * weights
    before = times()
    out = layer(x)[0]
    middle = times()
    out.sum().backward()
    after = times()
    told["lstm"] = [
        [
            0 <= middle.kernels - before.kernels - at(flops, HALF) < 40000,
            0 <= after.kernels - middle.kernels - at(2 * flops, HALF) < 200000,
        ],
        [True, True],
    ]


def bytes_only() -> None:
    x, y = rand(1 << 24), rand(1 << 24)
    say("add", lambda: x + y, 0, FP32, 3 * size(x))
    say("add to itself", lambda: x + x, 0, FP32, 2 * size(x))
    say("add_", lambda: x.add_(y), 0, FP32, 3 * size(x))
    say("fill_", lambda: x.fill_(1), 0, FP32, size(x))
    say("cast", lambda: x.to(half), 0, FP32, size(x) + size(x) // 2)
    say("a slice", lambda: x.view(4096, 4096)[:, :1024] * 2, 0, FP32, size(x) // 2)
    say(
        "a broadcast", lambda: x.view(4096, 4096) + y[:4096], 0, FP32, 2 * size(x) + 16384
    )
    say("sum", lambda: x.sum(), 0, FP32, size(x) + 4)
    table = rand(1 << 16, 1024)
    tokens = torch.zeros(4096, dtype=torch.long, device="cuda")
    say(
        "embedding",
        lambda: F.embedding(tokens, table),
        0,
        FP32,
        2 * 4096 * 4096 + 8 * 4096,
    )
    rows = rand(4096, 1024)
    say(
        "index_add_",
        lambda: table.index_add_(0, tokens, rows),
        0,
        FP32,
        3 * size(rows) + size(tokens),
    )


def copies() -> None:
    pinned = torch.empty(1 << 30, dtype=torch.uint8, pin_memory=True)
    there = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
    before = times()
    there.copy_(pinned, non_blocking=True)
    told["pinned in"] = [[times().in_ - before.in_, 1], [at(1 << 30, IN), 1]]
    told["the host goes on"] = [[times().now - before.now, 1], [COPY, 1]]
    pinned.copy_(there, non_blocking=True)
    told["pinned out"] = [[times().out - before.out, 1], [at(1 << 30, OUT), 1]]
    torch.cuda.synchronize()
    pageable = torch.empty(1 << 28, dtype=torch.uint8)
    before = times()
    there[: 1 << 28].copy_(pageable)
    told["pageable in"] = [[times().in_ - before.in_, 1], [at(1 << 28, 0.4 * IN), 1]]


def overlap() -> None:
    """A product and a copy on two streams take as long as the longer of both."""
    side = torch.cuda.Stream()
    a, b = rand(16384, 16384, dtype=half), rand(16384, 16384, dtype=half)
    pinned = torch.empty(1 << 29, dtype=torch.uint8, pin_memory=True)
    there = torch.empty(1 << 29, dtype=torch.uint8, device="cuda")
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    for products_ in (1, 4):
        torch.cuda.synchronize()
        a @ b  # the host gets ahead
        start.record()
        side.wait_event(start)
        for _ in range(products_):
            a @ b
        with torch.cuda.stream(side):
            there.copy_(pinned, non_blocking=True)
        torch.cuda.current_stream().wait_stream(side)
        end.record()
        torch.cuda.synchronize()
        product = KERNEL + at(2 * 16384**3, HALF)
        most = max(products_ * product, at(1 << 29, IN))
        told[f"overlap {products_}"] = [
            [abs(start.elapsed_time(end) * 1e6 - most) < 10, True],
            [True, True],
        ]


def launch_bound() -> None:
    x = rand(4)
    torch.cuda.synchronize()
    before = times()
    for _ in range(100):
        x.mul_(2)
    torch.cuda.synchronize()
    told["tiny operators"] = [
        [times().now - before.now, 1],
        [100 * OPERATOR + KERNEL + at(32, MEMORY), 1],
    ]


def training() -> List[Any]:
    """What the clock says at the end of each of a few steps, and of kernels and copies in
    alone, which do not depend on what the library reads for its report."""
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True).cuda()
    optimizer = torch.optim.AdamW(layer.parameters())
    ends = []
    for _ in range(3):
        batch = torch.randn(8, 32, 64).pin_memory().cuda(non_blocking=True)
        loss = layer(batch).square().mean()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(layer.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        loss.item()
        ends.append(times().end)
    now = times()
    return [ends, [now.kernels, now.count, now.in_]]


if __name__ == "__main__":
    torch.cuda.init()
    steps = training()
    if runtime.sim_compute() != 2:
        for part in (products, convolutions, attention, recurrent, bytes_only, copies):
            part()
        overlap()
        launch_bound()
    told["unknown"] = [[times().unknown, 0], [0, 0]]
    print(json.dumps({"told": told, "steps": steps}))
