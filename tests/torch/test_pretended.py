# SPDX-License-Identifier: Apache-2.0
"""PyTorch on a card that pretends to be small (ACTSWAP_MEMORY) is PyTorch on that card:
each call of its allocator, where memory runs out, and what it then says."""

import json
import re
from pathlib import Path
from typing import Any, Dict

import pytest
from stack import Run, environment

SCRIPT = str(Path(__file__).parent / "cases" / "card.py")
ALLOCATORS = ["expandable_segments:True", "backend:cudaMallocAsync"]
MIB = 1 << 20


def trained(allocator: str, gpu: str, **settings: str) -> Dict[str, Any]:
    env = environment(
        sim_gpu=gpu, sim_compute="shapes", sim_order="early", log="quiet", **settings
    )
    if allocator:
        env["PYTORCH_ALLOC_CONF"] = allocator
    return Run([SCRIPT], env).result()


# Both cards' contexts are of one size.
@pytest.mark.parametrize("allocator", ALLOCATORS)
def test_a_small_card_and_one_that_pretends(allocator: str, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    small = trained(allocator, "a100-40gb")
    total = small["total"][0]
    ours = trained(allocator, "a100-80gb", memory=str(total), report=str(report))

    assert ours == small
    assert len(small["messages"]) == 3 and len(small["refused"]) == 2
    assert all("39.59 GiB" in message for message in small["messages"])
    assert "backend" in allocator or len(small["calls"]) > 500
    seen = json.loads(report.read_text())
    assert seen["device"]["total_bytes"] == seen["oom"]["total_bytes"] == total
    assert seen["device"]["card_bytes"] > 2 * total
    assert seen["peak"]["bytes"] == small["peak"]


def test_a_context_of_another_size_is_all_that_differs() -> None:
    """What the driver holds for itself is the card's own, and so is what is left."""
    small = trained("", "l40s")
    ours = trained("", "h100-80gb", memory=str(small["total"][0]))
    more = (481 - 426) * MIB

    assert len(small["calls"]) > 500 and len(small["messages"]) == 3
    assert ours["calls"] == small["calls"]
    assert ours["depths"] == small["depths"] and ours["refused"] == small["refused"]
    assert ours["total"] == small["total"] and ours["peak"] == small["peak"]
    assert small["free"] - ours["free"] == more
    assert small["left"][0] - ours["left"][0] == more
    for here, there in zip(ours["messages"], small["messages"]):
        hidden = r"[\d.]+ \wiB(?= is free| memory in use)"
        assert re.sub(hidden, "", here) == re.sub(hidden, "", there)
