# SPDX-License-Identifier: Apache-2.0
"""record_stream and memory pools: right in every order, with the checker silent."""

from pathlib import Path
from typing import Any

import pytest
from stack import Run, environment

CASE = str(Path(__file__).parent / "cases" / "pools.py")


@pytest.mark.parametrize("order", ["early", "late", "seed:3"])
def test_blocks_are_given_out_behind_their_last_use(order: str, tmp_path: Path) -> None:
    run = Run([CASE, str(tmp_path)], environment(sim_order=order, sim_check="races"))
    told: Any = run.result()

    block = told.pop("recorded_block_is_not_given_out_before_its_use")
    # Under `early` the copy is over by the time that the next block is asked for.
    assert block[:2] == [[3.0], 5.0]
    assert block[2:] == ([False, False] if order == "early" else [True, True])
    assert told == {
        "recorded_blocks_are_bounded": [[80.0], [400.0], True, True],
        "recorded_on_two_streams_waits_for_both": [[[3.0], [3.0]], [5.0], 2],
        "pool_keeps_to_itself": [True, True, [4.0, 5.0], True, True],
        "pool_of_another_stream": [[12.0], [9.0]],
        "graph_with_a_stream_of_its_own": [[[3.0], [6.0], [9.0]] + [[9.0]] * 3, True],
        "graphs_that_share_a_pool": [[1.0], [4.0], [5.0], [10.0]],
        "pool_with_an_allocator_of_its_own": [[4.0], True, True],
    }
    assert "simcuda: race" not in run.err, run.err
