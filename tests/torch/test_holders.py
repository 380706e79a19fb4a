# SPDX-License-Identifier: Apache-2.0
"""A saved tensor that the script holds as well stays until the script lets go of it."""

from pathlib import Path

from stack import Run, environment

SCRIPT = str(Path(__file__).parent / "cases" / "holders.py")
ALL = 4 << 20  # one tensor a block
GOES = [[ALL, ALL, ALL]] * 3
STAYS = [[0, 0, 0]] * 3


def test_what_the_script_holds_stays_as_long() -> None:
    """And from the second step on nothing of it is copied, until it is not held."""
    env = environment(policy="offload", sim_compute="shapes")

    assert Run([SCRIPT], env).result() == {
        "nobody": GOES,
        "storage": [[0, 0, ALL], *STAYS[1:]],
        "view": STAYS,
        "detached": STAYS,
        "tensor": STAYS,
        "between": GOES,
        "before backward": GOES,
    }
