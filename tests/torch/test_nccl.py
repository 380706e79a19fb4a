# SPDX-License-Identifier: Apache-2.0
"""A process group of one rank on `nccl`."""

from pathlib import Path
from typing import Any, Dict

import pytest

from stack import Run, environment

SCRIPT = str(Path(__file__).parent / "cases" / "nccl.py")
SAME = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
HALF = [value / 2 for value in SAME]


def run(order: str, backend: str) -> Dict[str, Any]:
    env = environment(sim_order=order)
    env["TORCH_DIST_USE_NCCL2"] = backend
    done = Run([SCRIPT, "cuda"], env)

    assert "closed library called" not in done.err
    return done.result()


# PyTorch 2.15 has two: the one that it starts with, and the one before.
@pytest.mark.parametrize("order, backend", [("early", "1"), ("late", "0")])
def test_one_rank_trains_as_without_a_group(order: str, backend: str) -> None:
    said = run(order, backend)
    collectives = said.pop("collectives")

    for name, result in collectives.items():
        if name.startswith("half"):
            assert result == HALF, name
        elif name == "three times":
            assert result == [3 * value for value in SAME]
        elif name == "rounded":
            assert result == [True, True]
        elif name == "objects":
            assert result == [{"a": 1}]
        else:
            assert result == SAME, name
    assert len(collectives) == 17
    assert said == Run([SCRIPT, "cpu"], environment()).result()
