# SPDX-License-Identifier: Apache-2.0
"""Interposed calls return what the real ones do, and the library sees them.

Each surrounding runs without the preload, with the runtime preloaded too, and with the
runtime found as a wheel finds it.
"""

from __future__ import annotations

import pytest
from place import Place

CALLS = """\
cudaMalloc 0
cudaMalloc 0
cudaMallocAsync 0
seen with three: {three}
cudaMalloc of too much 2
cudaGetLastError 2
cudaFree of nothing 0
cudaFree of what is not a device's 1
cudaGetLastError 1
cudaFree 0
cudaFree of what is free 1
cudaGetLastError 1
cudaFreeAsync 0
seen with one: {one}
cudaFree 0
seen at the end: {end}
cudaStreamCreate 0
cudaStreamCreateWithFlags 0
cudaStreamCreateWithPriority 0
cudaStreamCreateWithFlags of none 1
cudaGetLastError 1
cudaStreamDestroy 0
cudaStreamDestroy 0
cudaStreamDestroy 0
cudaStreamDestroy of none 400
cudaGetLastError 400
"""
BARE = CALLS.format(three="no library", one="no library", end="no library")
SEEN = CALLS.format(
    three="live 7340032, peak 7340032",
    one="live 1048576, peak 7340032",
    end="live 0, peak 7340032",
)

# After a fork the real runtime answers 3, and so it must be behind the hooks.
FORKED = "".join(
    (
        f"{line.split(':')[0]}: left alone\n"
        if line.startswith("seen")
        else line.rsplit(" ", 1)[0] + " 3\n"
    )
    for line in BARE.splitlines()
)

SURROUNDINGS = {
    "plain": SEEN,
    "thread": SEEN,
    "_exit": SEEN,
    "fork": SEEN + "child\n" + FORKED + "child ended 0\n",
    "child": "child\n" + SEEN + "child ended 0\n",
}


def bare(text: str) -> str:
    """The same, as it is with no library to see it."""
    return "".join(
        f"{line.split(':')[0]}: no library\n" if line.startswith("seen") else line + "\n"
        for line in text.splitlines()
    )


@pytest.mark.parametrize("mode", SURROUNDINGS)
def test_bare(place: Place, mode: str) -> None:
    assert place.snippet(mode) == bare(SURROUNDINGS[mode])
    assert place.files() == []


@pytest.mark.parametrize("mode", SURROUNDINGS)
def test_preloaded(place: Place, mode: str) -> None:
    preload = f"{place.library} {place.runtime}"
    assert place.snippet(mode, preload=preload) == SURROUNDINGS[mode]


@pytest.mark.parametrize("mode", SURROUNDINGS)
def test_runtime_found_by_rpath(place: Place, mode: str) -> None:
    assert place.snippet(mode, preload=str(place.library)) == SURROUNDINGS[mode]


def test_runtime_loaded_late_and_locally(place: Place) -> None:
    calls = str(place.programs / "libhookcalls.so")
    assert place.snippet("local", calls) == BARE
    assert place.snippet("local", calls, preload=str(place.library)) == SEEN


@pytest.mark.parametrize("order", ["ours first", "ours last"])
def test_from_the_constructor_of_another_library(place: Place, order: str) -> None:
    early = str(place.programs / "libhookearly.so")
    both = [str(place.library), early]
    assert place.snippet("none", preload=early) == BARE
    if order == "ours last":
        both.reverse()
    assert place.snippet("none", preload=" ".join(both)) == SEEN


def test_with_all_symbols_bound_at_once(place: Place) -> None:
    out = place.snippet("plain", preload=str(place.library), LD_BIND_NOW="1")
    assert out == SEEN


def test_a_program_on_the_skip_list_is_left_alone(place: Place) -> None:
    out = place.snippet("plain", preload=str(place.library), ACTSWAP_SKIP="sh,snippet")
    assert out == CALLS.format(three="left alone", one="left alone", end="left alone")
    assert place.files() == []


# The call before fails by count, so that every path of a wrapper is taken.
@pytest.mark.parametrize("call", [1, 2])
def test_a_refused_allocation_is_not_counted(place: Place, call: int) -> None:
    fault = f"cudaMalloc:{call}=2"
    without = place.snippet("plain", ACTSWAP_SIM_FAULT=fault)
    out = place.snippet("plain", preload=str(place.library), ACTSWAP_SIM_FAULT=fault)
    assert bare(out) == without
    assert "cudaMalloc 2" in without
    live = {1: 6291456, 2: 3145728}[call]
    assert f"seen with three: live {live}, peak {live}" in out
    assert "seen at the end: live 0" in out


@pytest.mark.parametrize("call", ["cudaFree:5=1", "cudaFreeAsync:1=1"])
def test_a_refused_free_leaves_the_memory_in_the_books(place: Place, call: str) -> None:
    without = place.snippet("plain", ACTSWAP_SIM_FAULT=call)
    out = place.snippet("plain", preload=str(place.library), ACTSWAP_SIM_FAULT=call)
    assert bare(out) == without
    assert "seen at the end: live 0" not in out


DRIVER = """\
cuMemAlloc_v2 0, live 1000
cuMemAlloc_v2 0, live 1500
cuMemAlloc_v2 that fails 2, live 1500
cuMemFree_v2 0, live 500
cuMemFree_v2 that fails 1, live 500
cuMemCreate 0, live 500
cuMemCreate that fails 2, live 500
cuMemRelease 0, live 500
cuMemRelease that fails 1, live 500
cuMemFree_v2 0, live 0
cuGetProcAddress 0, live 0
cuGetProcAddress 0, live 0
found 0, live 100
found 0, live 0
cuGetProcAddress of none 500, live 0
cuGetProcAddress_v2 0, live 0
cuGetProcAddress_v2 0, live 0
found 0, live 100
found 0, live 0
cuGetProcAddress_v2 of none 500, live 0
status 1
cuMemGetInfo_v2 0, live 0
cuDeviceTotalMem_v2 0, live 0
cuDeviceTotalMem_v2 that fails 101, live 0
3072 of 4096, 4096 MiB
cuMemAlloc_v2 of 2 GiB 0, live 2147483648
set
"""


def test_driver_calls_and_what_the_driver_calls_from_inside(place: Place) -> None:
    program = place.program("driver-calls")
    without = place.run(program)
    assert without.returncode == 0, without.stderr
    lines = [line.split(", live")[0] for line in DRIVER.splitlines()]
    assert without.stdout.splitlines() == lines

    result = place.run(program, preload=str(place.library))
    assert result.returncode == 0, result.stderr
    assert result.stdout == DRIVER
    (report,) = place.reports()
    assert report["peak"]["source"] == "driver"
    assert report["peak"]["bytes"] == 2 << 30
    assert report["peak"]["driver_bytes"] == 2 << 30


def test_a_driver_alone_may_pretend_to_have_less(place: Place) -> None:
    result = place.run(
        place.program("driver-calls"),
        preload=str(place.library),
        ACTSWAP_MEMORY="2.5GiB",
    )
    assert result.returncode == 0, result.stderr
    small = DRIVER.replace("3072 of 4096, 4096 MiB", "1536 of 2560, 2560 MiB").replace(
        "of 2 GiB 0, live 2147483648\nset", "of 2 GiB 2, live 0\nuntouched"
    )
    assert result.stdout == small


def test_without_a_runtime_behind_them_the_calls_say_so(place: Place) -> None:
    """A program that looks whether CUDA is there must not be told that it is."""
    script = (
        "import ctypes\n"
        "lib = ctypes.CDLL(None)\n"
        "p = ctypes.c_void_p()\n"
        "print(lib.cudaMalloc(ctypes.byref(p), 512), lib.cudaFree(None),"
        " lib.cuMemFree_v2(0))\n"
    )
    result = place.run("python3", "-c", script, preload=str(place.library))
    assert (result.stdout, result.stderr, result.returncode) == ("3 3 3\n", "", 0)
    assert place.files() == []
