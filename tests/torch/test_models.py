# SPDX-License-Identifier: Apache-2.0
"""Small models of all kinds train on the simulated device as they do on the CPU.

Each process trains all of them (cases/train_models.py), and is started again behind one
that ended it.
"""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Dict, Iterator, List, Sequence, Tuple

import pytest
import torch

from stack import environment

CASES = Path(__file__).parent / "cases"
sys.path.insert(0, str(CASES))

from models import MODELS  # noqa: E402
from models.registry import DRAWS, ORDER  # noqa: E402

SECONDS = 600
KINDS = ("losses", "gradients", "parameters")
PASSES: Dict[str, Dict[str, str]] = {
    "late": {},
    "early": {"sim_order": "early", "sim_check": "races"},
    "shapes": {"sim_compute": "shapes"},
    "auto": {"sim_compute": "auto"},
    "offload": {"policy": "offload:min=1KiB"},
    "recompute": {"policy": "recompute"},
}
# A counter of batches that a graph has raised is read at the end.
REFUSED = {"captured_convolution": "reads one Long"}
TRACED = ("late", "shapes", "auto")
ORDERED = [name for name, model in MODELS.items() if model.why == ORDER]


class Pass:
    """What one way of training all models gave: results and failures by name."""

    def __init__(
        self,
        folder: Path,
        device: str,
        *flags: str,
        names: Sequence[str] = tuple(MODELS),
        **settings: str,
    ) -> None:
        self.folder = folder
        self.names = list(names)
        self.failed: Dict[str, str] = {}
        folder.mkdir()
        self.env = environment(report=str(folder / "report.json"), **settings)
        # In this process: workers would each import PyTorch for a few kernels.
        self.env.update(OMP_NUM_THREADS="1", TORCHINDUCTOR_COMPILE_THREADS="1")
        self.env["TORCHINDUCTOR_CACHE_DIR"] = str(folder / "inductor")
        if device == "cpu":
            del self.env["LD_PRELOAD"]
        self.flags = [device, str(folder), *flags]
        left = self.names
        while left:
            left = self._train(left)

    def _train(self, names: List[str]) -> List[str]:
        """Returns those that are left."""
        command = [sys.executable, str(CASES / "train_models.py"), *self.flags, *names]
        done = subprocess.run(
            command, env=self.env, capture_output=True, text=True, timeout=SECONDS
        )
        last = ""
        for line in done.stdout.splitlines():
            word, name, *text = line.split(" ", 2)
            last = name if word == "start" else ""
            if word == "error":
                self.failed[name] = text[0]
        if not last:
            assert done.returncode == 0, done.stderr
            return []
        self.failed[last] = f"status {done.returncode}: {done.stderr.strip()[-300:]}"
        return names[names.index(last) + 1 :]

    def result(self, name: str) -> Dict[str, Any]:
        return torch.load(self.folder / f"{name}.pt")

    def report(self) -> Any:
        return json.loads((self.folder / "report.json").read_text())


@pytest.fixture(scope="module")
def passes(tmp_path_factory: pytest.TempPathFactory) -> Dict[str, Pass]:
    top = tmp_path_factory.mktemp("models")

    def run(name: str) -> Pass:
        if name == "cpu":
            return Pass(top / name, "cpu", "--drawn", str(top / "late"))
        if name == "alone":
            return Pass(top / name, "cuda", "--alone", names=ORDERED)
        flags = ["--trace"] if name in TRACED else []
        return Pass(top / name, "cuda", *flags, **PASSES[name])

    found = {"late": run("late")}
    others = ["cpu", "alone", *(name for name in PASSES if name != "late")]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found.update(zip(others, pool.map(run, others)))
    return found


def same_bits(left: torch.Tensor, right: torch.Tensor) -> bool:
    if left.shape != right.shape or left.dtype != right.dtype:
        return False
    one, two = (t.contiguous().view(-1).view(torch.uint8) for t in (left, right))
    return torch.equal(one, two) or torch.allclose(left, right, 0, 0, equal_nan=True)


def distance(left: List[torch.Tensor], right: List[torch.Tensor]) -> float:
    """The largest difference, by the largest value there is."""
    if len(left) != len(right) or any(a.shape != b.shape for a, b in zip(left, right)):
        return float("inf")
    if all(same_bits(a, b) for a, b in zip(left, right)):
        return 0.0
    largest = max(t.abs().max().item() for t in left if t.numel())
    apart = max((a - b).abs().max().item() for a, b in zip(left, right) if a.numel())
    return apart / largest if apart < largest else float("inf")


def trained(*passes: Pass) -> Iterator[Tuple[str, Any]]:
    for name, model in MODELS.items():
        if all(name in one.names and name not in one.failed for one in passes):
            yield name, model


def differing(one: Pass, two: Pass, exact: bool) -> Iterator[Tuple[str, str, float]]:
    """Models that are further apart than they may be, with by how much."""
    for name, model in trained(one, two):
        left, right = one.result(name), two.result(name)
        assert left["losses"], name
        for kind in KINDS:
            apart = distance(left[kind], right[kind])
            if not apart <= (0 if exact else model.bound):
                yield name, kind, apart


def test_there_are_models_of_many_kinds() -> None:
    exact = [name for name, model in MODELS.items() if not model.bound]

    assert len(MODELS) > 150
    assert len(exact) > 0.9 * len(MODELS)


def test_the_cpu_trains_every_model(passes: Dict[str, Pass]) -> None:
    assert passes["cpu"].failed == {}


@pytest.mark.parametrize("order", ["late", "early"])
def test_models_train_as_on_the_cpu(passes: Dict[str, Pass], order: str) -> None:
    assert passes[order].failed == {}
    assert list(differing(passes["cpu"], passes[order], exact=False)) == []


def test_a_backward_on_one_thread_adds_up_as_on_the_cpu(passes: Dict[str, Pass]) -> None:
    assert len(ORDERED) > 2
    assert passes["alone"].failed == {}
    assert list(differing(passes["cpu"], passes["alone"], exact=True)) == []


def test_models_have_no_races(passes: Dict[str, Pass]) -> None:
    assert passes["early"].report()["device"]["races"] == 0


@pytest.mark.parametrize("which", ["early", "offload", "recompute"])
def test_nothing_of_ours_makes_nodes_of_autograd(
    passes: Dict[str, Pass], which: str
) -> None:
    """Their numbers decide how a backward through a backward rounds."""
    different = {}
    for name, _ in trained(passes["late"], passes[which]):
        plain, other = (passes[p].result(name)["nodes"] for p in ("late", which))
        if plain != other:
            different[name] = (plain, other)

    assert different == {}


@pytest.mark.parametrize("policy", ["offload", "recompute"])
def test_a_policy_changes_no_bit_of_a_model(passes: Dict[str, Pass], policy: str) -> None:
    assert passes[policy].failed == {}
    assert list(differing(passes["late"], passes[policy], exact=True)) == []


def test_offload_moved_activations_of_models(passes: Dict[str, Pass]) -> None:
    moves = passes["offload"].report()["moves"]

    assert moves["out_bytes"] > 0
    assert moves["released_bytes"] > 0


def test_shapes_trains_models_or_says_what_it_needs(passes: Dict[str, Pass]) -> None:
    failures = dict(passes["shapes"].failed)

    for name in [name for name in failures if MODELS[name].values]:
        assert MODELS[name].values in failures.pop(name)
    assert failures == {}


def test_auto_trains_models_or_says_what_it_needs(passes: Dict[str, Pass]) -> None:
    failures = dict(passes["auto"].failed)

    for name, why in REFUSED.items():
        assert why in failures.pop(name)
    assert failures == {}


def order(trace: List[Tuple[str, int]], race: str) -> List[Any]:
    """Allocations in order; if threads race, what is freed as a bag."""
    if not race:
        return trace
    if race == DRAWS:
        return sorted(trace)
    freed = [entry for entry in trace if entry[0].startswith("free")]
    return [[entry for entry in trace if entry[0] == "alloc"], sorted(freed)]


@pytest.mark.parametrize("way", ["shapes", "auto"])
def test_models_allocate_alike_whatever_is_computed(
    passes: Dict[str, Pass], way: str
) -> None:
    different = {}
    for name, model in trained(passes["late"], passes[way]):
        if model.values and way == "shapes":
            continue
        # Under values PyTorch's operators run in place of inductor's kernels.
        other = "shapes" if model.compiled else "late"
        left, right = (passes[which].result(name)["trace"] for which in (other, way))
        assert len(left) > 50, name
        if order(left, model.race) != order(right, model.race):
            different[name] = (len(left), len(right))

    assert different == {}
