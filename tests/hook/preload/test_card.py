# SPDX-License-Identifier: Apache-2.0
"""A card that pretends to be small (ACTSWAP_MEMORY) is one, call for call.

The program of card.c prints the same on the small simulated card without us and on a
large one that pretends: results, last errors, pointers, what is left. The cards of a
pair have contexts of one size, which the driver takes before anybody else.
"""

from __future__ import annotations

import subprocess

import pytest
from place import Place

# The large one, the small one, its total as the small card says it.
PAIRS = {
    "a100": ("a100-80gb", "a100-40gb", "40536MiB"),
    "ada": ("rtx6000ada", "l40s", "47576711168"),
    "older": ("rtx3090", "rtx3060", "12044MiB"),
}


def run(place: Place, *mode: str, **more: str) -> subprocess.CompletedProcess[str]:
    preload = str(place.library) if "ACTSWAP_MEMORY" in more else ""
    return place.run(place.program("card"), *mode, preload=preload, **more)


def out_of(place: Place, *mode: str, **more: str) -> str:
    result = run(place, *mode, **more)
    assert result.returncode == 0, result.stderr
    return result.stdout


def both(place: Place, pair: str, mode: str, **more: str) -> tuple[str, str]:
    """Of the small card, and of the large one that pretends."""
    large, small, total = PAIRS[pair]
    bare = out_of(place, mode, ACTSWAP_SIM_GPU=small, **more)
    ours = out_of(place, mode, ACTSWAP_SIM_GPU=large, ACTSWAP_MEMORY=total, **more)
    return bare, ours


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("order", ["early", "late"])
def test_every_call_answers_as_on_the_small_card(
    place: Place, pair: str, order: str
) -> None:
    bare, ours = both(place, pair, "fill", ACTSWAP_SIM_ORDER=order)
    assert bare.count(": 2, ") >= 12 and bare.count(": 0, set") >= 7
    assert ours == bare


@pytest.mark.parametrize("pair", PAIRS)
def test_each_device_is_small_by_itself(place: Place, pair: str) -> None:
    bare, ours = both(place, pair, "two", ACTSWAP_SIM_GPUS="2")
    assert ours == bare


def test_threads_take_as_much_together_as_there_is(place: Place) -> None:
    bare, ours = both(place, "a100", "threads")
    assert "\n156 taken\n" in bare
    assert ours == bare


def test_what_fits_beside_another_thread_is_never_refused(place: Place) -> None:
    bare, ours = both(place, "a100", "overlap")
    assert "\n0 refused\n" in bare
    assert ours == bare


# The call at which the program takes its first 6 GiB; what it takes then must find them.
def test_a_failing_real_call_takes_no_room(place: Place) -> None:
    bare, ours = both(place, "a100", "fill", ACTSWAP_SIM_FAULT="cudaMalloc:7=2")
    assert "cudaMalloc of 6 GiB: 2" in bare
    assert ours == bare


# The third is a claim's question, the fourth the report's.
@pytest.mark.parametrize(
    "call", ["cudaMemGetInfo:3=1", "cudaMemGetInfo:4=1", "cudaGetDevice:1=1"]
)
def test_what_we_ask_the_card_is_no_error_of_the_program(place: Place, call: str) -> None:
    large, small, total = PAIRS["a100"]
    bare = out_of(place, "info", ACTSWAP_SIM_GPU=small)
    ours = out_of(
        place, "info", ACTSWAP_SIM_GPU=large, ACTSWAP_MEMORY=total, ACTSWAP_SIM_FAULT=call
    )
    assert ours == bare


def test_the_report_says_what_is_pretended(place: Place) -> None:
    result = run(place, "info", ACTSWAP_SIM_GPU="h100-80gb", ACTSWAP_MEMORY="40GiB")
    (report,) = place.reports()
    assert report["device"]["total_bytes"] == 40 << 30
    assert report["device"]["card_bytes"] == 85028896768
    assert report["run"]["settings"]["memory_bytes"] == 40 << 30
    assert "peak on device   1.0 MiB of 40.0 GiB" in result.stderr
    assert "NVIDIA H100 80GB HBM3, pretending 40.0 GiB" in result.stderr
    assert report["warnings"] == []


def test_without_the_setting_nothing_is_pretended(place: Place) -> None:
    result = place.run(
        place.program("card"),
        "info",
        preload=str(place.library),
        ACTSWAP_SIM_GPU="h100-80gb",
    )
    assert result.stdout == out_of(place, "info", ACTSWAP_SIM_GPU="h100-80gb")
    (report,) = place.reports()
    assert (
        report["device"]["total_bytes"] == report["device"]["card_bytes"] == 85028896768
    )
    assert "memory_bytes" not in report["run"]["settings"]
    assert "pretending" not in result.stderr


def test_a_size_above_the_cards_own_is_a_warning(place: Place) -> None:
    result = run(place, "fill", ACTSWAP_SIM_GPU="a100-40gb", ACTSWAP_MEMORY="48GiB")
    assert result.stdout == out_of(place, "fill", ACTSWAP_SIM_GPU="a100-40gb")
    sentence = (
        "ACTSWAP_MEMORY: 48.0 GiB is more than the card has, 39.6 GiB:"
        + " its own size counts"
    )
    assert result.stderr.count(f"actswap: warning: {sentence}\n") == 1
    (report,) = place.reports()
    assert report["warnings"] == [sentence]
    assert report["device"]["total_bytes"] == report["device"]["card_bytes"]
    assert "pretending" not in result.stderr


def test_a_size_below_the_context_ends_the_run(place: Place) -> None:
    small = {"ACTSWAP_SIM_GPU": "a100-40gb", "ACTSWAP_MEMORY": "481MiB"}
    result = run(place, "info", **small)
    assert (result.returncode, result.stdout) == (78, "")
    assert result.stderr == (
        "actswap: error: ACTSWAP_MEMORY: a card of 481.0 MiB has no room: 481.0 MiB are"
        " in use before the program takes any, by the driver's context and by other"
        " programs\n"
    )
    assert place.files() == []


def test_a_lenient_size_below_the_context_is_left_out(place: Place) -> None:
    small = {"ACTSWAP_SIM_GPU": "a100-40gb", "ACTSWAP_MEMORY": "1MiB"}
    result = run(place, "info", ACTSWAP_STRICT="0", **small)
    assert result.returncode == 0
    assert result.stdout == out_of(place, "info", ACTSWAP_SIM_GPU="a100-40gb")
    assert "ACTSWAP_STRICT=0: the card's own size counts\n" in result.stderr
    (report,) = place.reports()
    assert report["device"]["total_bytes"] == report["device"]["card_bytes"]
