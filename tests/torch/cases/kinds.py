# SPDX-License-Identifier: Apache-2.0
"""Kinds of layers and operators, on the device against the CPU.

python kinds.py NAME: prints as JSON, for each case, how far the device is from the CPU: 0
is every bit, else the largest difference by the largest value; a text is an error.
"""

from __future__ import annotations

import itertools
import json
import sys
import warnings
from typing import Any, Callable, Dict, Iterator, List, Tuple, Union

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence

BF16 = torch.bfloat16
Case = Tuple[str, Callable[[str], List[torch.Tensor]]]


def distance(cpu: List[torch.Tensor], device: List[torch.Tensor]) -> float:
    assert len(cpu) == len(device)
    most = 0.0
    for a, b in zip(cpu, device):
        plain = [
            t.detach().to_dense() if t.layout is not torch.strided else t.detach()
            for t in (a, b.cpu())
        ]
        assert plain[0].shape == plain[1].shape and plain[0].dtype == plain[1].dtype
        if plain[0].numel() and not torch.equal(*plain):
            apart = (plain[0].double() - plain[1].double()).abs().max()
            most = max(most, (apart / plain[0].double().abs().max()).item())
    return most


def against_cpu(cases: Iterator[Case]) -> Dict[str, Union[float, str]]:
    found: Dict[str, Union[float, str]] = {}
    for name, run in cases:
        try:
            found[name] = distance(run("cpu"), run("cuda"))
        except Exception as error:
            found[name] = f"{type(error).__name__}: {error}"[:300]
    return found


def noise(*sizes: int, seed: int = 1) -> torch.Tensor:
    return torch.randn(*sizes, generator=torch.Generator().manual_seed(seed))


def trained(module: nn.Module, device: str, run: Callable[[nn.Module], Any]) -> Any:
    """All that comes out of `run` and of its backward."""
    module = module.to(device)
    outputs = [
        t
        for t in torch.utils._pytree.tree_leaves(run(module))
        if isinstance(t, torch.Tensor) and t.is_floating_point()
    ]
    sum(((i + 1) * t.float()).pow(2).sum() for i, t in enumerate(outputs)).backward()
    return outputs + [p.grad for p in module.parameters() if p.grad is not None]


def network(make: Any, packed: bool, device: str, lower: bool) -> List[torch.Tensor]:
    torch.manual_seed(0)
    module = make()
    given = noise(4, 4, 5).to(device).requires_grad_()
    lengths = torch.tensor([4, 3, 2, 1])
    first = module.batch_first

    def run(net: nn.Module) -> Any:
        taken = pack_padded_sequence(given, lengths, first) if packed else given
        with torch.autocast(device, torch.bfloat16, enabled=lower):
            output, state = net(taken)
        return (output.data if packed else output), state

    return trained(module, device, run) + [given.grad]


def recurrent() -> Iterator[Case]:
    kinds = {"lstm": nn.LSTM, "gru": nn.GRU, "rnn": nn.RNN}
    forms: List[Dict[str, Any]] = [
        {},
        {"num_layers": 2, "bidirectional": True},
        {"num_layers": 2, "bias": False, "batch_first": True},
    ]
    for (kind, cls), form, packed in itertools.product(
        kinds.items(), forms, (False, True)
    ):
        name = f"{kind} {' '.join(form)}{' packed' if packed else ''}"
        yield name, lambda d, c=cls, f=form, p=packed: network(
            lambda: c(5, 6, **f), p, d, False
        )
    projected = {"proj_size": 3, "num_layers": 2, "bidirectional": True}
    yield "lstm projected", lambda d: network(
        lambda: nn.LSTM(5, 6, **projected), False, d, False
    )
    yield "rnn relu", lambda d: network(
        lambda: nn.RNN(5, 6, 2, nonlinearity="relu"), False, d, False
    )
    for kind, cell in (("lstm", nn.LSTMCell), ("gru", nn.GRUCell), ("rnn", nn.RNNCell)):
        yield f"{kind} cell", lambda d, c=cell: cell_trained(c, d)


def cell_trained(cls: Any, device: str) -> List[torch.Tensor]:
    torch.manual_seed(0)
    given = noise(3, 5).to(device)
    return list(trained(cls(5, 6), device, lambda cell: cell(given)))


def sparse_training(device: str, optimizer: str) -> List[torch.Tensor]:
    torch.manual_seed(0)
    table = nn.Embedding(20, 6, sparse=True)
    bag = nn.EmbeddingBag(20, 6, mode="sum", sparse=True)
    both = nn.ModuleList([table, bag]).to(device)
    make = torch.optim.SparseAdam if optimizer == "adam" else torch.optim.SGD
    steps = make(list(both.parameters()), lr=0.1)
    for step in range(3):
        indices = torch.randint(
            0, 20, (4, 5), generator=torch.Generator().manual_seed(step)
        )
        indices = indices.to(device)
        steps.zero_grad()
        (both[0](indices).pow(2).sum() + both[1](indices).pow(3).sum()).backward()
        steps.step()
    gradient = both[0].weight.grad
    return [*both.parameters(), gradient.coalesce().indices(), gradient]


def sparse() -> Iterator[Case]:
    for optimizer in ("sgd", "adam"):
        yield f"embedding {optimizer}", lambda d, o=optimizer: sparse_training(d, o)

    def matrix(device: str) -> torch.Tensor:
        dense = noise(6, 5)
        return (dense * (dense > 0.3)).to(device)

    def product(device: str, layout: torch.layout) -> List[torch.Tensor]:
        left = matrix(device).to_sparse(layout=layout).requires_grad_()
        right = noise(5, 4).to(device).requires_grad_()
        result = torch.sparse.mm(left, right)
        result.pow(2).sum().backward()
        return [result, right.grad, left.grad]

    yield "COO mm", lambda d: product(d, torch.sparse_coo)
    yield "CSR mm", lambda d: product(d, torch.sparse_csr)
    functions: Dict[str, Callable[[torch.Tensor], Any]] = {
        "dense": lambda s: s.to_dense(),
        "add": lambda s: s + s,
        "add to dense": lambda s: s.to_dense() + s,
        "mul": lambda s: s * s,
        "scale": lambda s: s * 3,
        "sparse product": lambda s: torch.sparse.mm(s, s.t()),
        "sum": lambda s: torch.sparse.sum(s, 0),
        "softmax": lambda s: torch.sparse.softmax(s, 1),
        "sin": lambda s: torch.sin(s),
        "mask": lambda s: s.to_dense().sparse_mask(s),
        "transpose": lambda s: s.t().coalesce(),
        "cat": lambda s: torch.cat([s, s]),
        "select": lambda s: torch.index_select(s, 0, torch.tensor([0, 2]).to(s.device)),
        "vector": lambda s: torch.mv(s, torch.ones(5, device=s.device)),
    }
    for name, function in functions.items():
        yield f"COO {name}", lambda d, f=function: [f(matrix(d).to_sparse().coalesce())]
    for layout in (torch.sparse_csr, torch.sparse_csc):
        yield f"{layout} dense", lambda d, o=layout: [
            matrix(d).to_sparse(layout=o).to_dense()
        ]
    yield "to host", lambda d: [matrix(d).to_sparse().cpu().to(d)]


def statistics(device: str, dtype: torch.dtype) -> List[torch.Tensor]:
    """What SyncBatchNorm does on one of two cards, from the device's own operators."""
    given = noise(8, 3, 4).to(dtype)
    gradient, weight = noise(8, 3, 4, seed=2).to(dtype), noise(3, seed=3)
    bias = noise(3, seed=4)
    if device == "cpu":
        leaf = given.float().requires_grad_()
        weights = [weight.requires_grad_(), bias.requires_grad_()]
        running = [torch.zeros(3), torch.ones(3)]
        output = torch.batch_norm(leaf, *weights, *running, True, 0.1, 1e-5, False)
        output.backward(gradient.float())
        found = [output, leaf.grad, weight.grad, bias.grad, *running]
        return [t.detach().to(dtype) if t.dim() == 3 else t for t in found]
    x, grad = given.to(device), gradient.to(device)
    weight, bias = weight.to(device), bias.to(device)
    running = [torch.zeros(3, device=device), torch.ones(3, device=device)]
    halves = [torch.batch_norm_stats(half, 1e-5) for half in x.chunk(2)]
    counts = torch.tensor([16.0, 16.0], device=device)
    mean, invstd = torch.batch_norm_gather_stats_with_counts(
        x,
        torch.stack([h[0] for h in halves]),
        torch.stack([h[1] for h in halves]),
        *running,
        0.1,
        1e-5,
        counts,
    )
    output = torch.batch_norm_elemt(x, weight, bias, mean, invstd, 1e-5)
    sums = torch.batch_norm_backward_reduce(
        grad, x, mean, invstd, weight, True, True, True
    )
    back = torch.batch_norm_backward_elemt(
        grad, x, mean, invstd, weight, sums[0], sums[1], counts.int()
    )
    return [output, back, sums[2], sums[3], *running]


def others() -> Iterator[Case]:
    for dtype in (torch.float32, torch.bfloat16):
        yield f"statistics {dtype}", lambda d, t=dtype: statistics(d, t)

    def sampled(device: str) -> List[torch.Tensor]:
        image = noise(2, 3, 5, 5).to(device).requires_grad_()
        theta = noise(2, 2, 3, seed=2).to(device).requires_grad_()
        grid = nn.functional.affine_grid(theta, [2, 3, 4, 4], align_corners=True)
        result = nn.functional.grid_sample(image, grid, align_corners=True)
        result.pow(2).sum().backward()
        return [result, image.grad, theta.grad]

    def temporal(device: str, dtype: torch.dtype) -> List[torch.Tensor]:
        given = noise(10, 2, 6).to(device).requires_grad_()
        targets = torch.tensor([1, 2, 3, 4, 5], dtype=dtype)
        loss = nn.functional.ctc_loss(given.log_softmax(2), targets, (10, 9), (3, 2))
        loss.backward()
        return [loss, given.grad]

    def grouped(device: str) -> List[torch.Tensor]:
        rows = noise(16, 8).to(device).requires_grad_()
        groups = noise(4, 8, 16, seed=2).to(device).requires_grad_()
        ends = torch.tensor([4, 4, 10, 16], dtype=torch.int32, device=device)
        result = torch._grouped_mm(rows, groups, offs=ends)
        result.pow(2).sum().backward()
        return [result, rows.grad, groups.grad]

    def doubles(device: str) -> List[torch.Tensor]:
        given = noise(2, 3, 8).double().to(device).requires_grad_()
        weight = noise(8, seed=2).double().to(device).requires_grad_()
        result = nn.functional.rms_norm(given, (8,), weight, 1e-6)
        result.pow(2).sum().backward()
        return [result, given.grad, weight.grad]

    for later, forms in itertools.product((False, True), ("23", "32", "22", "33")):
        yield (
            f"scaled groups {forms} {'by lists ' * later}bfloat16",
            lambda d, f=forms, v=later: [scaled_groups(d, f, v)],
        )
    yield "rms norm float64", doubles
    yield "grouped product, by groups on the host", grouped
    yield "batch norm bfloat16", norms_lower
    yield "grid sample", sampled
    yield "ctc by cudnn", lambda d: temporal(d, torch.int32)
    yield "ctc", lambda d: temporal(d, torch.int64)
    yield "ldexp", lambda d: [torch.ldexp(noise(3, 4).to(d), torch.arange(4).to(d))]
    yield "masked fill", lambda d: [
        noise(4)
        .to(d)
        .masked_fill(torch.tensor([1, 0, 1, 0]).bool().to(d), torch.tensor(2.0).to(d))
    ]
    yield "mode", lambda d: [*torch.mode(torch.arange(5000).to(d) // 7)]


GROUPS, ENDS = 3, (16, 16, 48)


def scaled_groups(device: str, forms: str, later: bool) -> torch.Tensor:
    """fp8 matrices by the device's operator, or group by group on the CPU."""
    sizes = {
        "23": ((48, 32), (GROUPS, 64, 32), (48,), (GROUPS, 64)),
        "32": ((GROUPS, 64, 32), (48, 32), (GROUPS, 64), (48,)),
        "22": ((64, 48), (32, 48), (GROUPS * 64,), (GROUPS * 32,)),
        "33": ((GROUPS, 48, 32), (GROUPS, 64, 32), (GROUPS, 48), (GROUPS, 64)),
    }
    a, b, *scales = (noise(*size, seed=i).abs() for i, size in enumerate(sizes[forms]))
    a, b = (x.to(torch.float8_e4m3fn).to(device) for x in (a, b))
    rows, columns = (x.to(device) for x in scales)
    b = b.transpose(-2, -1)
    if device != "cpu":
        ends = torch.tensor(ENDS, dtype=torch.int32, device=device)
        given = None if forms == "33" else ends
        if not later:
            return torch._scaled_grouped_mm(a, b, rows, columns, given, None, None, BF16)
        kind = nn.functional.ScalingType.RowWise
        return nn.functional.scaled_grouped_mm(
            a, b, rows, kind, columns, kind, offs=given, output_dtype=BF16
        )
    if forms == "22":
        rows, columns = rows.view(GROUPS, -1), columns.view(GROUPS, -1)
    begins, parts = (0, *ENDS), []
    for g in range(GROUPS):
        part = slice(begins[g], begins[g + 1])
        x = a[g] if forms[0] == "3" else a[part] if forms == "23" else a[:, part]
        y = b[g] if forms[1] == "3" else b[:, part] if forms == "32" else b[part]
        r = rows[part] if forms == "23" else rows[g]
        c = columns[part] if forms == "32" else columns[g]
        parts.append((x.float() @ y.float() * r[:, None] * c).to(BF16))
    join = {"23": torch.cat, "32": lambda p: torch.cat(p, 1)}.get(forms, torch.stack)
    return join(parts)


def norms_lower(device: str) -> List[torch.Tensor]:
    torch.manual_seed(0)
    module = nn.BatchNorm2d(3).to(torch.bfloat16)
    given = noise(2, 3, 4, 4).to(device, torch.bfloat16).requires_grad_()
    return list(trained(module, device, lambda norm: norm(given))) + [given.grad]


def packages() -> Iterator[Case]:
    """An operator of torch.library with a kernel for each, as a package has."""
    library = torch.library.Library("rehearsed", "DEF")
    library.define("halve(Tensor x, Tensor(a!)? seen=None) -> (Tensor, Tensor)")

    def on_host(x: torch.Tensor, seen: Any = None) -> Tuple[torch.Tensor, torch.Tensor]:
        if seen is not None:
            seen += 1
        return x / 2, x.sum(0)

    def on_card(x: torch.Tensor, seen: Any = None) -> Any:
        raise AssertionError("a kernel of the package was launched")

    library.impl("halve", on_host, "CPU")
    library.impl("halve", on_card, "CUDA")

    def run(device: str) -> List[torch.Tensor]:
        seen = torch.zeros(2, device=device)
        given = noise(3, 4).to(device)
        found = torch.ops.rehearsed.halve(given, seen)
        assert all(t.device.type == device for t in found)
        return [*found, seen]

    yield "torch.library", run


def bags() -> Iterator[Case]:
    """Whole results and gradients, by how the bags are told and what they do."""
    layouts = (
        ([0, 2, 2, 5], False),
        ([0, 2, 2, 5, 6], True),
        ([0, 6], True),
        ([0, 0, 6, 6], True),
        ([0], False),
    )
    modes = ("sum", "mean", "max")
    settings = itertools.product(layouts, modes, (None, 3), (torch.int64, torch.int32))
    for (offsets, closed), mode, padding, dtype in settings:
        for count in (6, 0):
            ends = [min(end, count) for end in offsets]

            def run(device: str, n: int = count, at: List[int] = ends) -> Any:
                weight = noise(9, 4).to(device).requires_grad_()
                result = nn.functional.embedding_bag(
                    torch.tensor([3, 1, 8, 3, 0, 5][:n], dtype=dtype, device=device),
                    weight,
                    torch.tensor(at, dtype=dtype, device=device),
                    mode=mode,
                    include_last_offset=closed,
                    padding_idx=padding,
                )
                result.pow(2).sum().backward()
                return [result, weight.grad]

            yield f"{mode} {ends} {closed} {padding} {dtype}", run

    def weighted(device: str) -> List[torch.Tensor]:
        weight = noise(9, 4).to(device).requires_grad_()
        by = noise(4, seed=2).to(device).requires_grad_()
        result = nn.functional.embedding_bag(
            torch.tensor([3, 1, 8, 3], device=device),
            weight,
            torch.tensor([0, 1, 4], device=device),
            mode="sum",
            include_last_offset=True,
            per_sample_weights=by,
        )
        result.pow(2).sum().backward()
        return [result, weight.grad, by.grad]

    yield "weighted", weighted


def lists() -> Iterator[Case]:
    """What an optimizer does to all parameters, beside the CPU one by one."""
    for dtype, by in itertools.product(
        (torch.bfloat16, torch.float16, torch.float32, torch.complex64, torch.int32),
        (0.3, 7.77, 3, True, [0.3, 1 / 3], [2, 0.9]),
    ):
        numbers = by if isinstance(by, list) else [by, by]
        whole = all(isinstance(number, int) for number in numbers)
        if not whole and not dtype.is_floating_point and not dtype.is_complex:
            continue

        def run(device: str, t: torch.dtype = dtype, by: Any = by) -> Any:
            given = [(3 * noise(n, seed=n)).to(t).to(device) for n in (5, 4096)]
            if device == "cpu":
                numbers = by if isinstance(by, list) else [by, by]
                return [x.mul_(number) for x, number in zip(given, numbers)]
            torch._foreach_mul_(given, by)
            return given

        yield f"multiplied by {by} {dtype}", run


def missing() -> str:
    try:
        torch.ops.aten._cslt_compress(torch.zeros(4, 4, device="cuda"))
    except RuntimeError as error:
        return str(error).splitlines()[0]
    return ""


CASES: Dict[str, Callable[[], Iterator[Case]]] = {
    "recurrent": recurrent,
    "sparse": sparse,
    "others": others,
    "packages": packages,
    "bags": bags,
    "lists": lists,
}

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    which = sys.argv[1]
    print(json.dumps(missing() if which == "missing" else against_cpu(CASES[which]())))
