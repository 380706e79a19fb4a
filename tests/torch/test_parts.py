# SPDX-License-Identifier: Apache-2.0
"""Which module made each activation that is alive at the peak."""

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Dict, List, Tuple

import pytest

from stack import ROOT, Run, environment

CASES = Path(__file__).parent / "cases"
GPT = ("train_gpt.py", "--layers=3", "--vocab=512", "--steps=3")
# All examples, one under all policies, and models of other kinds.
RUNS = [
    ("off", *GPT),
    ("offload:min=1KiB", *GPT),
    ("recompute", *GPT),
    ("off", "train_mlp.py"),
    ("off", "train_llama.py", "--layers=2", "--steps=2"),
    ("off", "train_lora.py", "--layers=2", "--steps=2"),
    ("off", "train_resnet.py", "--steps=2", "--batch=32", "--side=128"),
    ("off", "lstm"),
    ("off", "unet"),
    ("off", "gan"),
    ("off", "penalty"),
]


def rows(report: Any) -> Dict[str, int]:
    modules = {row["module"]: row["peak_bytes"] for row in report["modules"]}
    assert len(modules) == len(report["modules"])
    return modules


def activation(report: Any) -> int:
    return sum(
        row["bytes"]
        for row in report["peak"]["by_category"]
        if row["category"] == "activation"
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Tuple[Any, Any, Any]:
    report = tmp_path_factory.mktemp("parts") / "report.json"
    env = environment(report=str(report), sim_compute="shapes")
    expected, held = Run([str(CASES / "parts.py"), "forward"], env).result()
    return json.loads(report.read_text()), expected, held


def test_each_activation_bears_the_name_of_its_module(made: Any) -> None:
    report, expected, _ = made
    expected = {
        name: 1024 * (kib[0] if isinstance(kib, list) else kib)
        for name, kib in expected.items()
    }
    assert rows(report) == expected
    assert activation(report) == sum(expected.values())


def test_classes_work_as_before_and_are_put_back(made: Any) -> None:
    _, _, held = made
    assert [what for what, holds in held.items() if not holds] == []


def test_what_runs_again_bears_its_name(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    env = environment(report=str(report), sim_compute="shapes")
    Run([str(CASES / "parts.py"), "again"], env)
    told = json.loads(report.read_text())

    assert (told["peak"]["phase"], told["peak"]["block"]) == ("backward", "a")
    made = rows(told)
    assert made["a"] >= 128 << 10
    assert made["a.a"] == 3 << 10
    assert sum(made.values()) == activation(told)


def train(report: Path, policy: str, what: str, *arguments: str) -> Any:
    env = environment(report=str(report), policy=policy, sim_compute="shapes")
    env.update(OMP_NUM_THREADS="1", HF_HUB_OFFLINE="1")
    example = what.endswith(".py")
    script = ROOT / "examples" / what if example else CASES / "parts_train.py"
    Run([str(script), *arguments] if example else [str(script), what], env)
    return json.loads(report.read_text())


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> List[Any]:
    folder = tmp_path_factory.mktemp("trained")
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        runs = [pool.submit(train, folder / f"{n}.json", *r) for n, r in enumerate(RUNS)]
        return [run.result() for run in runs]


def of(trained: List[Any], what: str) -> Any:
    return next(report for run, report in zip(RUNS, trained) if run[1] == what)


def test_rows_sum_up_to_the_activations(trained: List[Any]) -> None:
    told = {
        run: (sum(rows(report).values()), activation(report))
        for run, report in zip(RUNS, trained)
    }
    assert all(there for there, _ in told.values())
    assert {name: sums for name, sums in told.items() if sums[0] != sums[1]} == {}


def test_known_models_have_known_rows(trained: List[Any]) -> None:
    # The loss of the script: a difference of 512 x 512 numbers, and their mean.
    assert rows(of(trained, "train_mlp.py"))["(outside)"] == 512 * 512 * 4 + 512
    llama = rows(of(trained, "train_llama.py"))
    assert {"model.layers.0.self_attn", "model.layers.1.mlp", "model.norm"} <= {*llama}
    resnet = rows(of(trained, "train_resnet.py"))
    assert {"conv1", "bn1", "layer1.0.conv1", "layer4.1.bn2"} <= {*resnet}
    assert {"embed", "rnn", "head"} <= {*rows(of(trained, "lstm"))}
    assert {"pool", "down1.1", "up1.3", "UNet"} <= {*rows(of(trained, "unet"))}
    gan = rows(of(trained, "gan"))
    assert {name.split(".")[0] for name in gan} >= {"Generator", "Discriminator"}


def test_sites_name_the_module_they_are_in(trained: List[Any]) -> None:
    report = of(trained, "train_gpt.py")
    named = {
        report["stacks"][site["stack"]][-1].split()[-1]: site["module"]
        for site in report["sites"]
    }
    assert named["Attention.mix"] == "blocks.*.attention"
    assert named["Block.forward"] in ("blocks.*", None)
