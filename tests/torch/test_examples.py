# SPDX-License-Identifier: Apache-2.0
"""The examples train as they do on the CPU.

Those with Hugging Face and torchvision need what scripts/setup --examples installs.
"""

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Dict, Iterator, List, Tuple

import pytest
import torch

from stack import Run, environment

CASE = str(Path(__file__).parent / "cases" / "examples.py")
STEPS = 3
# Random numbers, or operators in a type, that the CPU has otherwise.
OWN = ("lora-dropout", "resnet-amp")
SAME = (
    *("gpt", "mlp"),
    *("llama", "llama-grouped", "llama-bf16", "llama-checkpoint", "lora"),
    *("resnet", "trainer", "trainer-bf16"),
)
# Whose memory does not depend on values: without a mask of its own, transformers looks at
# what the positions are.
SHAPED = (
    "gpt",
    "mlp",
    "llama",
    "llama-grouped",
    "llama-bf16",
    "llama-checkpoint",
    "resnet",
    "resnet-amp",
)
PASSES: Dict[str, Dict[str, str]] = {
    "cpu": {},
    "late": {},
    "early": {"sim_order": "early"},
    "seed": {"sim_order": "seed:1", "sim_check": "races", "policy": "offload:min=1KiB"},
    "shapes": {"sim_compute": "shapes"},
    "auto": {"sim_compute": "auto"},
    "offload": {"policy": "offload:min=1KiB"},
    "recompute": {"policy": "recompute"},
}


@pytest.fixture(scope="module")
def passes(tmp_path_factory: pytest.TempPathFactory) -> Dict[str, Path]:
    top = tmp_path_factory.mktemp("examples")

    def run(name: str) -> Path:
        folder = top / name
        folder.mkdir()
        env = environment(report=str(folder / "report.json"), **PASSES[name])
        env.update(OMP_NUM_THREADS="1", HF_HUB_OFFLINE="1")
        device, names = "cuda", [*SAME, *OWN]
        if name == "cpu":
            del env["LD_PRELOAD"]
            device, names = "cpu", [*SAME]
        traced = ["--trace"] if name in ("late", "shapes", "auto") else []
        Run([CASE, str(folder), device, *traced, *names], env)
        return folder

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(zip(PASSES, pool.map(run, PASSES)))


def load(folder: Path, name: str) -> Any:
    return torch.load(folder / f"{name}.pt")


def tensors(saved: Dict[str, Any]) -> List[torch.Tensor]:
    return [t for step in saved["gradients"] for t in step] + saved["parameters"]


def differing(one: Path, two: Path, names: Tuple[str, ...]) -> Iterator[Tuple[str, Any]]:
    for name in names:
        left, right = load(one, name), load(two, name)
        assert len(left["losses"]) == len(left["gradients"]) == STEPS
        if left["losses"] != right["losses"]:
            yield name, (left["losses"], right["losses"])
        pairs = list(zip(tensors(left), tensors(right)))
        assert len(pairs) == len(tensors(left)) == len(tensors(right))
        wrong = [i for i, (a, b) in enumerate(pairs) if not torch.equal(a, b)]
        if wrong:
            yield name, f"{len(wrong)} of {len(pairs)} tensors, the first is {wrong[0]}"


@pytest.mark.parametrize("order", ["late", "early"])
def test_examples_train_as_on_the_cpu(passes: Dict[str, Path], order: str) -> None:
    assert list(differing(passes["cpu"], passes[order], SAME)) == []


def test_examples_have_no_races_when_offloaded(passes: Dict[str, Path]) -> None:
    report = json.loads((passes["seed"] / "report.json").read_text())

    assert (report["device"]["races"], report["moves"]["out_bytes"] > 0) == (0, True)


@pytest.mark.parametrize("which", ["early", "seed", "offload", "recompute"])
def test_examples_keep_their_bits(passes: Dict[str, Path], which: str) -> None:
    assert list(differing(passes["late"], passes[which], (*SAME, *OWN))) == []


def test_offload_moved_activations_of_examples(passes: Dict[str, Path]) -> None:
    moves = json.loads((passes["offload"] / "report.json").read_text())["moves"]

    assert moves["out_bytes"] > 0
    assert moves["released_bytes"] > 0


@pytest.mark.parametrize(
    ("name", "way"),
    [(name, "shapes") for name in SHAPED] + [(name, "auto") for name in (*SAME, *OWN)],
)
def test_examples_allocate_alike_whatever_is_computed(
    passes: Dict[str, Path], name: str, way: str
) -> None:
    values, others = (
        json.loads((passes[which] / f"{name}.trace").read_text())
        for which in ("late", way)
    )

    assert len(values) > 500
    assert values == others


@pytest.mark.parametrize("way", ["late", "shapes"])
def test_what_holds_memory_is_what_the_script_has(
    passes: Dict[str, Path], way: str
) -> None:
    """All that is alive at each step, by its own storages."""
    for name in SAME + OWN:
        steps = json.loads((passes[way] / f"{name}.sums").read_text())
        assert len(steps) >= STEPS
        for ours, theirs in steps:
            found = {category: ours[category] for category in theirs}
            assert (name, found) == (name, theirs)
