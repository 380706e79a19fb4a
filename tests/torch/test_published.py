# SPDX-License-Identifier: Apache-2.0
"""A seed gives the numbers that people have printed on real cards."""

import sys
from pathlib import Path

import pytest

from stack import Run, environment

CASES = Path(__file__).parent / "cases"
sys.path.insert(0, str(CASES))

from published import CARDS, ROWS  # noqa: E402


@pytest.mark.parametrize("card", CARDS)
def test_draws_are_those_of_a_real_card(card: str) -> None:
    rows = {**ROWS, card: CARDS[card]}
    found = Run([str(CASES / "published.py"), card], environment(sim_gpu=card)).result()

    assert found == {name: printed for name, (_, _, printed) in rows.items()}
