# SPDX-License-Identifier: Apache-2.0
"""Several devices of one process: torch.cuda.nccl and torch.nn.DataParallel."""

import json
from pathlib import Path
from typing import List

import pytest
from stack import Run, environment

CASE = str(Path(__file__).parent / "cases" / "replicas.py")


@pytest.mark.parametrize("order", ["early", "late"])
def test_collectives_compute_what_the_cpu_does(order: str) -> None:
    settings = environment(sim_order=order, sim_check="races", sim_gpus="3")

    assert Run([CASE, "collectives"], settings).result() == {
        "wrong": [],
        "broadcast": True,
        "gathered": True,
        "races": 0,
    }


@pytest.fixture(scope="module")
def losses() -> List[str]:
    settings = environment(sim_order="early", sim_gpus="2", policy="off")
    plain = Run([CASE, "train"], settings).result()

    assert all(plain["equal"])
    return plain["losses"]


@pytest.mark.parametrize(
    "order, policy",
    [("late", "off"), ("seed:5", "offload:min=0"), ("late", "recompute")],
)
def test_data_parallel_trains_as_its_replicas_in_turn(
    losses: List[str], tmp_path: Path, order: str, policy: str
) -> None:
    settings = environment(
        sim_order=order,
        sim_check="races",
        sim_gpus="2",
        policy=policy,
        report=str(tmp_path / "report.json"),
    )
    run = Run([CASE, "train"], settings)
    found = run.result()
    report = json.loads((tmp_path / "report.json").read_text())

    assert (found["losses"], found["races"]) == (losses, 0), run.err
    assert all(found["equal"])
    assert (report["moves"]["out_bytes"] > 0) == policy.startswith("offload")
