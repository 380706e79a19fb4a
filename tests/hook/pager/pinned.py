# SPDX-License-Identifier: Apache-2.0
"""How much may be pinned on the simulated device: under `shapes` as much as is asked for,
without a byte of it being touched."""

import resource
import sys

import library

BYTES = 60 << 30
TOUCHED_MAX_KIB = 256 << 10  # of memory, Python and the libraries included


def framework(reason: str) -> None:
    library.attach()
    address = library.device_memory(BYTES)
    library.mark(library.FORWARD)
    library.allocated(address, BYTES)
    found = library.save(address, BYTES)
    assert found == int(reason), found
    touched = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert touched < TOUCHED_MAX_KIB, touched


def moves(reason: int, **settings: str) -> tuple[int, int]:
    report = library.report_of(__file__, str(reason), policy="offload", **settings)
    return report["moves"]["pinned_peak_bytes"], report["moves"]["pinned_cap_bytes"]


def main() -> None:
    full = 7  # ACTSWAP_KEPT_HOST_FULL
    assert moves(0, sim_compute="shapes") == (BYTES, None)
    assert moves(full, sim_compute="shapes", host_memory="4GiB") == (0, 4 << 30)
    assert moves(full, sim_compute="values", host_memory="1GiB") == (0, 1 << 30)
    print("pinned: right")


if sys.argv[1:]:
    framework(sys.argv[1])
else:
    main()
