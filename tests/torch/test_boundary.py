# SPDX-License-Identifier: Apache-2.0
"""offload:only=boundary moves what a block takes from the one before, bit-equal."""

import pytest
from test_equal import NAMES, STEPS, Training, differences, simulated

# Elements that pass from block to block, of four bytes. The first of MLP's layers takes
# the batch, which is older than the forward.
BYTES = {"gpt": 3 * 2 * 128 * 128 * 4, "mlp": (4 - 1) * 512 * 128 * 4}


@pytest.fixture(scope="module")
def boundary() -> Training:
    return Training("cuda", policy="offload:only=boundary", sim_order="late")


@pytest.mark.parametrize("name", NAMES)
def test_only_what_blocks_take_from_each_other_moves(
    boundary: Training, name: str
) -> None:
    expected = [BYTES[name.split("-")[0]]] * STEPS

    for field in ("out_bytes", "in_bytes", "released_bytes"):
        assert boundary.steps(name, field) == expected, field
    plain = simulated("off", "early")
    for less, more in zip(
        boundary.steps(name, "after_forward_bytes"),
        plain.steps(name, "after_forward_bytes"),
    ):
        assert less == more - expected[0]


@pytest.mark.parametrize("name", NAMES)
def test_it_changes_no_bit(boundary: Training, name: str) -> None:
    plain = simulated("off", "early").saved[name]

    assert differences(plain, boundary.saved[name]) == []
