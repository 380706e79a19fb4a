# SPDX-License-Identifier: Apache-2.0
"""A saved tensor that the script holds as well stays until the script lets go of it."""

from pathlib import Path

from stack import Run, environment

SCRIPT = str(Path(__file__).parent / "cases" / "holders.py")
ALL = 4 << 20  # one tensor a block


def test_what_the_script_holds_stays_as_long() -> None:
    env = environment(policy="offload", sim_compute="shapes")

    assert Run([SCRIPT], env).result() == {
        "nobody": [ALL, ALL],
        "storage": [0, 0],
        "view": [0, 0],
        "detached": [0, 0],
        "tensor": [0, 0],
        "between": [ALL, ALL],
        "before backward": [ALL, ALL],
    }
