# SPDX-License-Identifier: Apache-2.0
"""What actswap_save() names an activation, in the report."""

import sys

import library

BYTES = 1 << 20


def framework() -> None:
    """Three storages: one is older than the forward, one is made and saved in it, and
    one is made in it and not saved."""
    old, saved, temporary = (n * BYTES for n in (1, 2, 3))
    library.attach()
    library.allocated(old, BYTES)
    library.mark(library.FORWARD)
    library.allocated(saved, BYTES)
    library.allocated(temporary, BYTES)
    assert library.save(old, BYTES) > 0
    assert library.save(saved, BYTES) > 0
    library.mark(library.BACKWARD)


def main() -> None:
    expected = {"activation": BYTES, "unknown": 2 * BYTES}
    for policy in ("off", "recompute"):
        peak = library.report_of(__file__, "framework", policy=policy)["peak"]
        found = {entry["category"]: entry["bytes"] for entry in peak["by_category"]}
        assert found == expected, (policy, found)
    print("names: right")


if sys.argv[1:] == ["framework"]:
    framework()
else:
    main()
