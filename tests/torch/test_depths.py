# SPDX-License-Identifier: Apache-2.0
"""What running blocks again brings and costs, by the depth of a model."""

from concurrent.futures import ThreadPoolExecutor
from math import isqrt
from pathlib import Path
from typing import Any, Dict, Tuple

import pytest
from stack import Run, environment

CASE = str(Path(__file__).parent / "cases" / "depths.py")
DEPTHS = (4, 16, 36, 64)  # full segments all, of four and of square roots
DEEP = 36  # of the model whose step is timed
# How many blocks run again together, of so many.
TOGETHER = {
    "recompute": lambda layers: 1,
    "recompute:every=4": lambda layers: 4,
    "recompute:segments=sqrt": lambda layers: isqrt(layers),
}
INPUT = 64 * 128 * 4 * 4  # bytes that a block takes
# Of each tensor that a block saves, and there are sixteen, 256 numbers of 4 bytes at most
# stay as a sample; an allocation is of so many 512 bytes.
SAMPLES = 16 * 256 * 4 + 512
# Reading a sample and comparing it: at most so many kernels a block, of 1.3 us each
# (docs/simcuda.md).
KERNELS_MS = 32 * 1.3e-3

policies = pytest.mark.parametrize("policy", TOGETHER)


@pytest.fixture(scope="module")
def runs() -> Dict[str, Any]:
    def run(policy: str) -> Any:
        env = environment(policy=policy, sim_compute="shapes")
        return Run([CASE, *map(str, DEPTHS)], env).result()

    with ThreadPoolExecutor(2) as pool:
        return dict(zip(("off", *TOGETHER), pool.map(run, ("off", *TOGETHER))))


def more(run: Any, less: int, layers: int, which: int) -> int:
    """Bytes of a model of `layers` beyond one of `less`: after forward (0), peak (1)."""
    sizes = run["bytes"]
    return sizes[str(layers)][which] - sizes[str(less)][which]


def groups(policy: str, layers: int) -> Tuple[int, int]:
    each = TOGETHER[policy](layers)
    return layers // each, each


@policies
@pytest.mark.parametrize("less, layers", list(zip(DEPTHS, DEPTHS[1:])))
def test_memory_is_that_of_inputs_and_of_one_segment(
    runs: Any, policy: str, less: int, layers: int
) -> None:
    """Chen et al. (arXiv 1604.06174): an input for each segment, and what one saves."""
    saved = more(runs["off"], less, layers, 0) // (layers - less)
    kept, each = groups(policy, layers)
    kept_less, each_less = groups(policy, less)
    after = (kept - kept_less) * INPUT
    peak = after + (each - each_less) * saved

    for which, expected in enumerate((after, peak)):
        beyond = more(runs[policy], less, layers, which) - expected
        assert 0 <= beyond <= (layers - less) * SAMPLES


def test_a_deep_model_takes_one_forward_more(runs: Any) -> None:
    """30 to 33 % in public; less where nothing behind the last saved tensor is run."""
    forward, backward, blocks, tail = runs["off"]["times"]
    assert 0.30 < blocks / (forward + backward) < 0.34

    for policy in TOGETHER:
        kept, _ = groups(policy, DEEP)
        expected = blocks - kept * tail
        found = sum(runs[policy]["times"][:2]) - forward - backward
        assert 0 <= found - expected < DEEP * KERNELS_MS, policy
