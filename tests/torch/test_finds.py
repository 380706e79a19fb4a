# SPDX-License-Identifier: Apache-2.0
"""Blocks are found in scripts that say nothing, however their models are written down,
and running them again changes no bit."""

import json
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Dict, List, Tuple

import pytest

from stack import Run, environment

CASE = str(Path(__file__).parent / "cases" / "finds.py")
TRIPLE = ["layers.0", "layers.1", "layers.2"]
FOUND: Dict[str, List[str]] = {
    "Mixed": [*TRIPLE, "layers.3"],
    "Dictionary": ["layers.l0", "layers.l1", "layers.l2"],
    "Pairs": [f"layers.{n}.{m}" for n in range(3) for m in range(2)],
    "Attributes": ["down1", "down2", "down3"],
    "Experts": TRIPLE,
    "ResNet": ["layer1.0", "layer1.1", "layer2.0", "layer2.1"],
    "Stages": [f"stages.{n}.blocks.{m}" for n in range(2) for m in range(2)],
    "Diffusion": [f"down_blocks.{n}.resnets.{m}" for n in range(2) for m in range(2)],
    "EncoderDecoder": [
        f"{part}.{n}" for part in ("encoder", "decoder") for n in range(3)
    ],
    "DataParallel": [f"module.{name}" for name in TRIPLE],
    "DistributedDataParallel": [f"module.{name}" for name in TRIPLE],
    "FSDPSharded": TRIPLE,
    "Inner": TRIPLE,
}


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Tuple[Any, Any, Any]:
    report = tmp_path_factory.mktemp("finds") / "report.json"
    env = environment(policy="recompute", report=str(report))
    with ThreadPoolExecutor(2) as pool:
        plain = pool.submit(Run, [CASE], environment(policy="off"))
        other = Run([CASE], env)
        return plain.result().result(), other.result(), json.loads(report.read_text())


def test_blocks_of_each_kind_are_found_and_run_again(ran: Any) -> None:
    found = defaultdict(list)
    for row in ran[2]["recompute"]["blocks"]:
        assert (row["block"], row["reason"]) == (row["block"], None)
        assert row["trials"] == row["recomputed"] == 1
        model, _, path = row["block"].partition(".")
        found[model].append(path)

    assert dict(found) == FOUND


def test_running_them_again_changes_no_bit(ran: Any) -> None:
    assert ran[0] == ran[1]


def test_a_script_without_blocks_is_told_so(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    Run([CASE, "convolutions"], environment(policy="recompute", report=str(report)))
    told = json.loads(report.read_text())["recompute"]

    assert told["blocks_found"] == 0
    assert told["said"][0].startswith("no blocks found, so that nothing is run again")
    assert "ModuleList" in told["said"][0] and "offload" in told["said"][0]
