# SPDX-License-Identifier: Apache-2.0
"""PyTorch runs on every generation of cards that its wheel has code for."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from stack import Run, environment

SCRIPT = str(Path(__file__).parent / "cases" / "cards.py")
# Compute capability 7.5, 8.6, 8.9, 10.0, 12.0; of 8.9 the wheel has no code of its own.
CARDS = ("t4", "a10g", "l40s", "b200", "rtx5090")
OLD = "v100-16gb"  # 7.0: CUDA 13 has none at all


@pytest.fixture(scope="module")
def runs() -> dict[str, Run]:
    def run(card: str) -> Run:
        env = environment(sim_gpu=card, log="quiet")
        return Run([SCRIPT], env | {"OMP_NUM_THREADS": "1"}, status=None)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(zip((*CARDS, OLD), pool.map(run, (*CARDS, OLD))))


@pytest.mark.parametrize("card", CARDS)
def test_each_generation_computes_as_the_cpu(runs: dict[str, Run], card: str) -> None:
    assert runs[card].status == 0, runs[card].err

    same = runs[card].result()["same"]
    assert len(same) == 10
    assert all(same.values()), same


def test_a_card_that_the_wheel_has_no_code_for_is_refused(runs: dict[str, Run]) -> None:
    assert runs[OLD].status == 1
    assert "no kernel image is available for execution on the device" in runs[OLD].err
    assert "compute capability (CC) 7.0" in runs[OLD].err, "PyTorch's own warning"
