# SPDX-License-Identifier: Apache-2.0
"""Memory does not depend on whether anything is computed."""

import json
import resource
from pathlib import Path
from typing import Any, Dict, List

import pytest

from stack import ROOT, Run, environment

CASE = Path(__file__).parent / "cases" / "allocations.py"
GPT = ["train_gpt.py", "--layers=2", "--batch=2", "--sequence=64", "--vocab=512"]
MLP = ["train_mlp.py", "--layers=3", "--batch=128"]
SCRIPTS: Dict[str, List[str]] = {
    "gpt": [*GPT, "--dropout=0.1"],
    "gpt-fused": [*GPT, "--attention=fused", "--fused"],
    "gpt-foreach": [*GPT, "--foreach"],
    "mlp": [*MLP, "--dropout=0.1"],
}


def trace(file: Path, script: str, arguments: List[str], **settings: str) -> Any:
    command = [str(CASE), str(file), str(ROOT / "examples" / script), *arguments]
    Run(command, environment(**settings))
    return json.loads(file.read_text())


CASES = [(name, "off") for name in SCRIPTS] + [("gpt", "offload"), ("gpt", "recompute")]


@pytest.mark.parametrize("name, policy", CASES)
def test_all_ways_to_compute_allocate_alike(
    tmp_path: Path, name: str, policy: str
) -> None:
    script, *arguments = SCRIPTS[name]

    values, auto, shapes = (
        trace(tmp_path / way, script, arguments, policy=policy, sim_compute=way)
        for way in ("values", "auto", "shapes")
    )

    assert len(values) > 500
    assert {"alloc", "free_completed", "segment_alloc"} <= {
        action for action, _ in values
    }
    assert auto == values
    assert shapes == values


@pytest.mark.parametrize("compute", ["auto", "shapes"])
def test_seven_billion_parameters_need_little_of_the_host(
    tmp_path: Path, compute: str
) -> None:
    report = tmp_path / "report.json"
    size = "--layers=32 --hidden=4096 --heads=32 --vocab=32000 --batch=4 --sequence=2048"
    arguments = [*size.split(), "--dtype=bfloat16", "--init=device", "--steps=2"]
    settings = {"sim_gpu": "b200", "sim_compute": compute, "report": str(report)}

    Run([str(ROOT / "examples" / "train_gpt.py"), *arguments], environment(**settings))

    told = json.loads(report.read_text())
    # Parameters and two moments in bf16, at least: what was trained was of that size.
    assert told["peak"]["bytes"] > 3 * 2 * 6_500_000_000
    assert told["steps"]["count"] == 2
    largest_kib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    assert largest_kib < 2 * 1024 * 1024
