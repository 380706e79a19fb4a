# SPDX-License-Identifier: Apache-2.0
"""Every hooked call says what it says on the bare device, with right arguments and with
each of them wrong in turn, wherever it comes from, and leaves the books empty."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from place import Place

JEMALLOC = sorted(Path("/usr/lib").glob("*/libjemalloc.so.2"))


def every(place: Place, mode: str, preload: str = "", **more: str) -> tuple[str, str]:
    settings = {"ACTSWAP_SIM_GPU": "h100-80gb", "ACTSWAP_LOG": "quiet"} | more
    program = place.program("snippet-every")
    done = place.run(program, mode, preload=preload, **settings)
    assert done.returncode == 0, (done.returncode, done.stdout[-300:], done.stderr[-300:])
    return done.stdout, done.stderr


@pytest.mark.parametrize("mode", ["plain", "thread", "_exit", "fork", "child"])
def test_from_anywhere(place: Place, mode: str) -> None:
    bare, _ = every(place, mode)
    said, _ = every(place, mode, str(place.library))

    assert "0 bytes left behind" in bare
    assert bare.count("\n") > 250
    assert said == bare


def test_from_the_constructor_of_another_library(place: Place) -> None:
    early = str(place.programs / "libhookeveryearly.so")
    bare, _ = every(place, "none", early)

    for both in ([str(place.library), early], [early, str(place.library)]):
        assert every(place, "none", " ".join(both))[0] == bare


def test_with_all_symbols_bound_at_once(place: Place) -> None:
    said, _ = every(place, "plain", str(place.library), LD_BIND_NOW="1")

    assert said == every(place, "plain")[0]


def test_with_another_interposer_before_and_after(place: Place) -> None:
    """It sees the same calls, too, but for those that libactswap makes itself."""
    between = str(place.programs / "libhookbetween.so")
    bare, seen = every(place, "plain", between)

    for both in ([str(place.library), between], [between, str(place.library)]):
        said, told = every(place, "plain", " ".join(both))
        assert said == bare
        assert counts(told) == counts(seen)


def counts(told: str) -> list[str]:
    """Of calls that take and free."""
    (line,) = re.findall(r"^between: (.*)$", told, re.MULTILINE)
    return [part for part in line.split(", ") if "GetInfo" not in part]


@pytest.mark.skipif(not JEMALLOC, reason="libjemalloc2 is not installed")
def test_with_another_malloc_before_and_after(place: Place) -> None:
    malloc = str(JEMALLOC[0])
    bare, _ = every(place, "plain", malloc)

    for both in ([str(place.library), malloc], [malloc, str(place.library)]):
        assert every(place, "plain", " ".join(both))[0] == bare
