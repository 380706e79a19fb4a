# SPDX-License-Identifier: Apache-2.0
"""CUDA graphs of PyTorch's, against the same work without one."""

from pathlib import Path
from typing import Any

import pytest

from stack import Run, environment

CASE = Path(__file__).parent / "cases" / "replay.py"


@pytest.fixture(scope="module", params=["early", "late"])
def results(request: pytest.FixtureRequest) -> Any:
    return Run([str(CASE)], environment(sim_order=request.param)).result()


def test_replayed_steps_are_the_eager_ones(results: Any) -> None:
    steps = results["whole_steps"]

    assert steps.keys() == {"adamw", "fused", "sgd", "autocast"}
    for name, (differing, distinct_losses) in steps.items():
        assert differing == [], name
        assert distinct_losses == 4, name


def test_graphed_callables_are_the_module(results: Any) -> None:
    assert results["graphed_callables"] == [True] * 15


def test_each_replay_draws_its_own_numbers(results: Any) -> None:
    assert results["numbers_of_each_replay"] == {
        "default": [True] * 27,
        "own": [True] * 27,
    }


def test_streams_fork_and_join_in_a_graph(results: Any) -> None:
    assert results["streams_within"] is True


def test_graphs_share_a_pool_and_give_it_back(results: Any) -> None:
    # Two blocks of 4 MiB in one segment of 20 MiB; a pool of one's own is no graph's.
    assert results["pools"] == {
        "value": [6.0],
        "shared": 20 << 20,
        "inside": 4 << 20,
        "left": 0,
    }


def test_a_replay_copies_what_the_host_has_then(results: Any) -> None:
    assert results["pinned_copies_are_in_it"] == [0.0, 2.0, 4.0]


def test_no_value_comes_out_of_a_capture(results: Any) -> None:
    told = results["a_value_is_not_to_be_had_in_a_capture"]

    assert all("captur" in said for said in told["said"]), told
    assert told["after"] == 6.0
