# SPDX-License-Identifier: Apache-2.0
"""Pages come back while the work before them runs: a step takes hardly longer than the
longer of its arithmetic and its copies."""

import json
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Dict, Sequence, Tuple

import pytest
from stack import Run, environment

CASE = str(Path(__file__).parent / "cases" / "ahead.py")
IN, OUT = 55.43e6, 55.06e6  # bytes a ms, of an H100's link
# Width, rows and blocks: bound by arithmetic, by the link, and by both about alike.
SIZES = [(12288, 2048, 14), (2048, 16384, 24), (10240, 4096, 24)]
STEPS = 4


def timed(size: Sequence[int], **settings: str) -> Tuple[Dict[str, float], Any]:
    report = Path(mkdtemp(prefix="actswap-test-")) / "report.json"
    env = environment(sim_compute="shapes", report=str(report), **settings)
    said = Run([CASE, *map(str, size)], env).result()
    return said, json.loads(report.read_text())


@pytest.mark.parametrize("size", SIZES)
def test_a_step_takes_the_longer_of_arithmetic_and_copies(size: Sequence[int]) -> None:
    plain, _ = timed(size, policy="off")
    moved, report = timed(size, policy="offload")
    moves, steps = report["moves"], report["steps"]
    rest = plain["whole"] - plain["forward"] - plain["backward"]
    bound = (
        rest
        + max(plain["forward"], steps["out_bytes"][-1] / OUT)
        + max(plain["backward"], steps["in_bytes"][-1] / IN)
    )

    print(size, plain, moved, bound, moves["brought"], moves["ahead"])
    assert moved["whole"] <= 1.05 * bound
    # In all steps but the first, which nothing is known of.
    assert moves["ahead"] >= 0.95 * moves["brought"] * (STEPS - 1) / STEPS
    assert moves["released_bytes"] == moves["out_bytes"] == moves["in_bytes"] > 0
