# SPDX-License-Identifier: Apache-2.0
"""How the report names what actswap_save() saw, and what it did not see."""

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
    # What lives on after its phase without a name was made by the forward all the same.
    expected = {"activation": 2 * BYTES, "input": BYTES}
    for policy in ("off", "recompute"):
        peak = library.report_of(__file__, "framework", policy=policy)["peak"]
        found = {entry["category"]: entry["bytes"] for entry in peak["by_category"]}
        found.pop("context")  # the card's, not a tensor's
        assert found == expected, (policy, found)
    print("names: right")


if sys.argv[1:] == ["framework"]:
    framework()
else:
    main()
