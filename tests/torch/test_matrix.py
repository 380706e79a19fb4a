# SPDX-License-Identifier: Apache-2.0
"""Each program under each policy, in an order that changes from day to day: the bits of
the run without a policy, and nothing left. scripts/matrix runs all orders, and for long.

MATRIX_SEED repeats a day's choice, which the names of the tests say.
"""

import os
import random
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from typing import Dict, Tuple

import pytest

from cells import OFF, ORDERS, POLICIES, Trained, differences, troubles

STEPS = 3
SEED = int(os.environ.get("MATRIX_SEED", date.today().toordinal()))
CELLS = [
    (policy.name, random.Random(f"{SEED} {policy.name}").choice(ORDERS).format(seed=SEED))
    for policy in POLICIES
]
Ran = Tuple[Trained, Dict[str, Trained]]


@pytest.fixture(scope="module")
def ran() -> Ran:
    off = Trained(OFF, "early", STEPS)
    assert off.error == ""
    orders = dict(CELLS)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        done = pool.map(lambda p: Trained(p, orders[p.name], STEPS, off=off), POLICIES)
        return off, {trained.policy.name: trained for trained in done}


@pytest.mark.parametrize("policy, order", CELLS)
def test_programs_train_as_without_a_policy(ran: Ran, policy: str, order: str) -> None:
    off, others = ran
    found = {name: differences(name, off, others[policy]) for name in off.said}

    assert len(off.said) > 13
    assert {name: texts for name, texts in found.items() if texts} == {}
    assert troubles(others[policy]) == []


def test_what_is_let_go_is_less_with_more_room(ran: Ran) -> None:
    _, others = ran
    out = {name: sum(t.report["steps"]["out_bytes"]) for name, t in others.items()}
    gone = {name: t.report["moves"]["released_bytes"] for name, t in others.items()}

    # Not of what is copied: what others hold is found out by copying it once, and under
    # a budget later.
    assert gone["offload"] > gone["budget-10"] > gone["budget-50"] > 0
    assert out["offload"] > out["boundary"] > 0
    assert out["offload"] >= out["disk"] > out["tiny-host"] > 0
    assert others["disk"].report["moves"]["disk"]["in_bytes"] > 0
