# SPDX-License-Identifier: Apache-2.0
"""The table of scripts/accuracy: sources, and the figures that they published."""

from __future__ import annotations

import json
import re
from typing import Callable, List, NamedTuple, Tuple


class Unit(NamedTuple):
    name: str
    bytes: float


BYTES, MB, GB, MIB = Unit("B", 1), Unit("MB", 1e6), Unit("GB", 1e9), Unit("MiB", 1 << 20)


class Source(NamedTuple):
    key: str
    title: str
    about: str
    repository: str  # owner/name, or "id N" of a stored file
    commit: str
    path: str
    torch: str  # of the row
    gpu: str
    version: Tuple[str, ...] = ()  # switches: the row's PyTorch against ours
    reasons: Tuple[str, ...] = ()  # then each of these alone
    setting: Tuple[str, ...] = ()  # switches in every run
    arguments: Tuple[str, ...] = ()
    folders: Tuple[str, ...] = ()  # that the text expects in its working folder
    compute: str = "shapes"
    folder: str = ""  # of the text, where it is not `key`
    remarks: str = ""


class Row(NamedTuple):
    id: str
    source: str
    what: str
    published: str
    unit: Unit
    take: Callable[[str], float]  # from the source's print, in that unit
    reasons: Tuple[str, ...] = ()


def after(words: str, number: int = 0) -> Callable[[str], float]:
    """The first figure behind the words' numberth occurrence."""

    def take(printed: str) -> float:
        found = re.findall(re.escape(words) + r"\D*?([\d.]+)", printed)
        return float(found[number])

    return take


def megabytes_of(label: str) -> Callable[[str], float]:
    def take(printed: str) -> float:
        found = re.search(re.escape(label) + r":\s+[\d.]+s, (\d+) MB", printed)
        if not found:
            raise LookupError(label)
        return float(found.group(1))

    return take


def peak_of(mode: str) -> Callable[[str], float]:
    def take(printed: str) -> float:
        found = re.search(mode + r": time =.*peak_mem = +([\d.]+) MB", printed)
        if not found:
            raise LookupError(mode)
        return float(found.group(1))

    return take


def liger(mode: str, x: int) -> Callable[[str], float]:
    """From the JSON that the benchmark prints."""

    def take(printed: str) -> float:
        for text in printed.split("********** Benchmark Data **********")[1:]:
            for series in json.JSONDecoder().raw_decode(text.strip())[0]:
                if (
                    series["kernel_provider"] == "huggingface"
                    and series["metric_name"] == "memory"
                    and series["kernel_operation_mode"] == mode
                ):
                    return series["y_values_50"][series["x_values"].index(x)]
        raise LookupError(mode)

    return take


def liger_sources() -> List[Source]:
    """One benchmark each."""
    kept, plain = ("kept workspaces",), ("plain Liger",)
    return [
        Source(
            f"liger_{key}",
            f"S06: {title}",
            "Figures: benchmark/data/all_benchmark_data.csv at ead96b61, plain PyTorch.",
            "linkedin/Liger-Kernel",
            "b5672a15",
            f"benchmark/scripts/benchmark_{script}.py",
            "not said, 2.4 or so",
            "a100-80gb",
            version=version,
            setting=plain if key != "linear_ce" else (*plain, "weights as they come"),
            folder="liger",
        )
        for key, title, script, version in (
            ("ce", "cross entropy", "cross_entropy", ()),
            ("mlp", "LlamaMLP with gelu", "geglu", kept),
            ("swiglu", "LlamaMLP with silu", "swiglu", kept),
            ("layer", "layer norm", "layer_norm", ()),
            ("rms", "RMSNorm as in Llama", "rms_norm", ()),
            ("linear_ce", "linear and cross entropy", "fused_linear_cross_entropy", kept),
        )
    ]


SOURCES = {
    source.key: source
    for source in (
        Source(
            "amp_recipe",
            "S07: three linear layers, SGD",
            "Figures: a public note (stored file id 45979577396) that ran this recipe.",
            "pytorch/tutorials",
            "as of 2022; fork PyTorch-China/tutorials 621cc7a8 has the same code",
            "amp_recipe.py",
            "1.11",
            "t4",
            version=("no workspaces", "kept gradients", "loss of its own"),
        ),
        Source(
            "adam",
            "S08: three Adam implementations",
            "The figures stand in the text's first lines; card and version do not. They "
            "hold two kept workspaces of 32 MiB, which are those of a Hopper card.",
            "id 38489547600",
            "-",
            "38489547600.py",
            "not said, 2.0 or later",
            "h100-80gb",
            version=("kept workspaces",),
            folders=("logs/traces",),
        ),
        Source(
            "optimizers",
            "S20: checkpointed attention and MLP",
            "Twelve blocks, bf16, one process for all. Figures: the notebook's own.",
            "vinitvyas09/optimizers",
            "9bfb4ce",
            "hw2_activation_checkpointing.ipynb",
            "2.9.0+cu126",
            "a100-40gb",
            version=("kept workspaces", "cuBLASLt's own"),
            reasons=("asked for", "another history"),
        ),
        Source(
            "resnet",
            "S21: ResNet-50, checkpointed by stage",
            "fp32, NCHW, batch 32. Figures are the notebook's own.",
            "vinitvyas09/optimizers",
            "9bfb4ce",
            "hw1_resnet.ipynb",
            "2.9.0+cu126",
            "t4",
            version=("kept workspaces", "cuBLASLt's own"),
            reasons=("Winograd", "128 MiB backward"),
        ),
        Source(
            "offload",
            "S22: checkpoints and host offload",
            "The package's command line, with arguments and figures of its README.",
            "polkadot21/activation-ckpt-offload",
            "79d70e7",
            "src/activation_ckpt_offload/__main__.py",
            "2.8.0 (lock file)",
            "t4",
            version=("RMSNorm in steps", "kept workspaces"),
            reasons=("asked for", "another history"),
            arguments=tuple(
                "--device cuda --total_tokens 12000 --num_layers 12 --hidden_dim 1024 "
                "--head_dim 64 --ff_dim 4096 --batch_size 48 --steps 3".split()
            ),
            compute="auto",
        ),
        Source(
            "ao",
            "S15: ViT-giant, checkpointed, pure bf16",
            "Options as the README describes them in words; img_size 224 is inferred.",
            "pytorch/ao",
            "1b1e94c5b",
            "benchmarks/benchmark_low_bit_adam.py",
            "2.4",
            "rtx4070ti-super",
            version=("kept workspaces", "reentrant checkpoints"),
            setting=("random images",),
            arguments=(
                *("--model", "timm/vit_giant_patch14_dinov2.lvd142m"),
                *("--model_kwargs", '{"img_size": 224}'),
                *"--full_bf16 --checkpoint_activations --batch_size 32".split(),
                *"--optim AdamW --n_epochs 1 --n_workers 0".split(),
            ),
        ),
        *liger_sources(),
    )
}

MAX_BYTES = "Max memory used by tensors ="


def notebook_rows() -> List[Row]:
    table = (
        ("A14", "no checkpoints", "Without checkpointing", "3140"),
        ("", "all checkpointed", "With checkpointing", "1414"),
        ("A22b", "MLP checkpointed", "CKPT mlp", "3093"),
        ("A22a", "attention checkpointed", "CKPT attn", "1787"),
        ("", "a later cell: all", "Full checkpointing", "1819"),
        ("", "every other block", "Every-other checkpointing", "2803"),
    )
    return [
        Row(id_, "optimizers", what, published, MB, megabytes_of(label))
        for id_, what, label, published in table
    ]


def resnet_rows() -> List[Row]:
    table = (
        ("A15", "none", "3033.27"),
        ("A23", "per_stage", "1765.28"),
        ("", "aggressive", "2627.26"),
        ("", "per_block", "1360.01"),
    )
    return [Row(i, "resnet", n, p, MB, after("\n" + n)) for i, n, p in table]


def liger_rows() -> List[Row]:
    rows = []
    for bits, published in enumerate(
        ("1280.126", "2560.126", "5120.126", "10240.126", "20480.125", "40960.125"), 12
    ):
        id_ = {15: "A36a", 17: "A36b"}.get(bits, "")
        take = liger("full", 1 << bits)
        rows.append(Row(id_, "liger_ce", f"V {1 << bits}", published, MIB, take))
    for mode, figures in (
        ("full", ("1992.25", "3452.25", "6372.25", "12212.25")),
        ("forward", ("1090.25", "1906.25", "3538.25", "6802.25")),
        ("backward", ("1992.25", "3452.25", "6372.25", "12212.25")),
    ):
        for x, published in zip((1024, 2048, 4096, 8192), figures):
            id_ = {2048: "A38a", 8192: "A38b"}.get(x, "") if mode == "full" else ""
            what = f"T {x}, {mode}"
            rows.append(Row(id_, "liger_mlp", what, published, MIB, liger(mode, x)))
    for source, name, peaks in (
        (
            "swiglu",
            "T",
            {1024: "1294.25", 2048: "1992.25", 4096: "3452.25", 8192: "6372.25"},
        ),
        ("layer", "N", {1024: "80.0625", 4096: "320.15625", 16384: "1280.53125"}),
        ("rms", "H", {1024: "80.0195", 4096: "320.0547", 32768: "2560.3828"}),
        ("linear_ce", "BT", {4096: "6092.2822", 16384: "15302.376", 32768: "27582.5"}),
    ):
        for x, published in peaks.items():
            take = liger("full", x)
            row = Row("", f"liger_{source}", f"{name} {x}", published, MIB, take)
            rows.append(row)
    return rows


ROWS: List[Row] = [
    Row("A08", "amp_recipe", "fp32", "1350681600", BYTES, after(MAX_BYTES)),
    Row("", "amp_recipe", "autocast fp16", "1577232384", BYTES, after(MAX_BYTES, 1)),
    Row("A32a", "adam", "for-loop, first", "80436224", BYTES, after(MAX_BYTES)),
    Row("A32b", "adam", "foreach, second", "96242688", BYTES, after(MAX_BYTES, 1)),
    Row("A32c", "adam", "fused, third", "105991680", BYTES, after(MAX_BYTES, 2)),
    *notebook_rows(),
    *resnet_rows(),
    *[
        Row(i, "offload", n, p, MIB, peak_of(n))
        for i, n, p in (
            ("", "baseline", "10895.44"),
            ("", "ckpt_classic", "2759.07"),
            ("A26", "ckpt_sync_offload", "2258.23"),
            ("", "ckpt_async_offload", "2260.00"),
        )
    ],
    Row("A20", "ao", "plain AdamW", "9.82", GB, after("Max memory used:")),
    *liger_rows(),
]

HEAD = """# Published memory, and simcuda's

Written by `scripts/accuracy`: peaks of GPU memory that others measured on cards and
published, beside what the same source, run as it stands, prints on simcuda. All are
`torch.cuda.max_memory_allocated`; the installed PyTorch is {torch}. No card was used.

In the first line of a row PyTorch is as it is. Nearly every source is older, so the lines
below it switch what is known to differ between the versions, all together, and then one
further thing at a time. A switch is either PyTorch's own environment variable or a patch
outside of the source's text, and all are described below; nothing is fitted to a row, but
for one size that says so. Where a figure is rounded, an error within the rounding is
"0, all digits".

Fill a folder for it with the sources' text: `FOLDER/<key>/<path>` as in
`scripts/accuracy_rows.py`, from the repository and commit that is named with each."""

TAIL = """
## What is not known

- cuDNN's workspaces: which algorithm it takes, and so how much, is not public, and no
  formula that was tried (Winograd's transforms; the operands once more in channels-last
  order) gives the four figures of S21. simcuda allocates none. Where a peak lies in a
  convolution, that is what is missing: 3 to 7 % of S21's, nothing where it lies
  elsewhere.
- What the allocator does not split off a block (up to 1 MiB each) depends on every
  earlier allocation, and so on every difference between two versions of PyTorch. The
  line "and asked for" shows how much of a peak it is, "and another history" how it moves.
- Where a card's figure was printed in MB, more digits are not to be had.
"""
