# SPDX-License-Identifier: Apache-2.0
"""Blocks are run again only where a trial has shown that this is the same, and nothing is
left behind: losses, gradients, parameters, random numbers, counters and what hooks saw.
"""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Dict, List, Tuple

import pytest

from stack import Run, environment

CASE = str(Path(__file__).parent / "cases" / "again.py")
POLICIES = (
    "off",
    "recompute",
    "recompute:every=2",
    "recompute:segments=sqrt,boundary=offload",
)
BLOCKS = 3  # of each model
GENERATORS, STATE = "random generators", "attributes and counters"
# Of the models whose blocks need more than what PyTorch's checkpoint puts back.
PUT_BACK: Dict[str, List[str]] = {
    "PythonRandomModel": [GENERATORS],
    "NumpyRandomModel": [GENERATORS],
    "OwnGeneratorModel": [GENERATORS],
    "GlobalGeneratorModel": [GENERATORS],
    "CounterModel": [STATE],
    "GlobalCounterModel": [STATE],
    "ReplacedBufferModel": [STATE],
    "RemembersModel": [STATE],
    "CachedModel": [STATE],
    "MakesAnewModel": [STATE],
    "NormModel": ["buffers"],
    "AccumulatedModel": ["buffers"],
    "SpectralModel": [STATE, "buffers"],
    "GradSwitchedModel": [STATE],
    "RoutingModel": ["buffers"],
    "GlobalObjectModel": [STATE],
    "InHelperModel": [STATE],
    "HelperModuleModel": [STATE],
    "ClosureCountModel": [STATE],
    "ClosureGeneratorModel": [GENERATORS, STATE],
    "HostGeneratorModel": [GENERATORS],
    "ClassCountModel": [STATE],
    "FunctionCountModel": [STATE],
    "DefaultCountModel": [STATE],
    "ArraySumModel": [STATE],
    "OwnSeedModel": [STATE],
    "HooksInsideModel": [STATE],
    "ContextModel": [STATE],
    "SideModel": [STATE],
}
WRITES = "it writes a tensor that cannot be put back"
# Blocks that are left alone, and why.
LEFT = {
    "IteratorModel": "run again, it left other state behind",
    "ChangedInputModel": "its input is changed in place before its backward",
    "ChangedLaterModel": "its input is changed in place before its backward",
    "UserHooksModel": "hooks of the script would run again",
    "CheckpointedModel": "the script recomputes it, or a part of it, itself",
    "ReentrantModel": "the script recomputes it, or a part of it, itself",
    "OutsideModel": "the script recomputes it, or a part of it, itself",
    "RaisesAgainModel": "run again, it raised an error",
    "OtherPathModel": "run again, it saved another number of tensors",
    "OtherValuesModel": "run again, it saved other values",
    "OtherDrawModel": "run again, it drew other random numbers",
    "SteppedBetweenModel": "its parameters change before its backward",
    "FrozenFirstModel.blocks.0": "no backward has come to it yet, so that it was not "
    "tried",
    "ClosureTensorModel": "run again, it saved other values",
    "ReadGlobalModel": "run again, it saved other values",
    "CountedGlobalModel": "run again, it left other state behind",
    "TensorCountModel": WRITES,
    "TensorSumModel": WRITES,
    "GlobalTensorModel": WRITES,
    "GradientHooksModel": "hooks of the script would run again",
    "GradientInsideModel": "run again, it raised an error",
    "CompiledModel.blocks.1": "compiled, scripted or with a forward of its own",
}


OTHER = "other bits, or others than bits are left"
# What PyTorch's checkpoint, not the reentrant one, does to the same blocks; others are as
# without it. The reentrant one gives the first block no gradient, as a batch has none.
STOCK = {
    "changed_input": "RuntimeError",
    "changed_later": "RuntimeError",
    "routing": "CheckpointError",
    "own_function": "CheckpointError",
    "trained_mode": "CheckpointError",
    "raises_again": "ValueError",
    "transform_inside": "RuntimeError",
} | dict.fromkeys(
    "python_random numpy_random own_generator global_generator counter global_counter "
    "iterator batch_norm spectral replaced_buffer remembers makes_anew cache user_hooks "
    "grad_switched accumulated other_values other_draw stepped_between starts_late "
    "starts_on_host global_object global_object_in_helper helper_module closure_count "
    "closure_generator closure_tensor host_generator class_count function_count "
    "default_count tensor_count array_sum written_late read_global counted_global "
    "context_variable functional own_seed hooks_inside own_state_in_context".split(),
    OTHER,
)
REENTRANT = ["called_twice", "shared", "frozen_first", "odd_outputs", "compiled"]


def train(folder: Path, policy: str) -> Tuple[Any, Any]:
    report = folder / f"{POLICIES.index(policy)}.json"
    run = Run([CASE], environment(policy=policy, report=str(report)))
    return run.result(), json.loads(report.read_text())


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Dict[str, Tuple[Any, Any]]:
    folder = tmp_path_factory.mktemp("again")
    with ThreadPoolExecutor(2) as pool:
        runs = {policy: pool.submit(train, folder, policy) for policy in POLICIES}
        return {policy: run.result() for policy, run in runs.items()}


def of(name: str, table: Dict[str, Any], otherwise: Any) -> Any:
    return table.get(name, table.get(name.split(".")[0], otherwise))


@pytest.mark.parametrize("policy", POLICIES[1:])
def test_no_bit_and_nothing_else_differs(trained: Any, policy: str) -> None:
    plain, other = trained["off"][0][0], trained[policy][0][0]

    assert len(plain) > 70 and not any(isinstance(said, str) for said in plain.values())
    # What starts to differ on the host alone is found by the next trial, and said.
    late = {"starts_on_host"}
    assert {kind for kind in plain if plain[kind] != other[kind]} == late


@pytest.mark.parametrize("policy", POLICIES[1:])
def test_each_block_is_run_again_or_says_why_not(trained: Any, policy: str) -> None:
    told = trained[policy][1]["recompute"]
    assert told["values_compared"]
    assert told["blocks_found"] == len(told["blocks"]) > 100

    for row in told["blocks"]:
        if row["block"].startswith("WrittenLate"):
            assert (row["reason"], row["broken_step"]) == (WRITES, row["proven_step"] + 2)
            continue
        if row["block"].startswith("Starts"):
            assert row["reason"].endswith("it saved other values")
            assert row["proven_step"] < row["broken_step"]
            continue
        why = of(row["block"], LEFT, None)
        assert (row["block"], row["reason"]) == (row["block"], why)
        assert row["decision"] == ("keep" if why else "recompute")
        if not why:
            # Three steps, in one of which some are tried again; some run twice or thrice.
            assert row["trials"] + row["recomputed"] in (3, 6, 9)
            assert min(row["trials"], row["recomputed"]) >= 1
            assert row["put_back"] == of(row["block"], PUT_BACK, [])


@pytest.mark.parametrize("policy", POLICIES[1:])
def test_gradients_of_a_block_that_starts_to_misbehave_are_refused(
    trained: Any, policy: str
) -> None:
    (_, refused), report = trained[policy]
    rows = [r for r in report["recompute"]["blocks"] if "StartsLate" in r["block"]]
    sampled = [r["block"] for r in rows if "after its trials" in r["reason"]]

    assert trained["off"][0][1] == []
    # In the sixth step, which the script does again. One may be on trial in it, which
    # gives it its own gradients.
    assert len(refused) == 1 and all(block in refused[0] for block in sampled)
    assert len(sampled) >= BLOCKS - 1
    assert {row["broken_step"] for row in rows} == {rows[0]["broken_step"]}


def test_what_starts_to_misbehave_is_found_and_said(trained: Any) -> None:
    report = trained["recompute"][1]
    said = [w for w in report["warnings"] if "block Starts" in w]

    assert len(said) == 6 and all("Model.blocks." in w for w in said)
    assert sum("the step's gradients were refused" in w for w in said) >= BLOCKS - 1
    assert sum("may not be those of a run without" in w for w in said) >= BLOCKS
    # Each of the proven blocks is tried again within this many steps.
    assert report["recompute"]["tried_again_within_steps"] > 0


@pytest.mark.parametrize("how", ("other", "reentrant"))
def test_stock_checkpoint_is_wrong_where_others_are_not(trained: Any, how: str) -> None:
    names = [] if how == "other" else REENTRANT
    stock = Run([CASE, f"--stock={how}", *names], environment(policy="off")).result()[0]
    plain = trained["off"][0][0]
    found = {
        name: said.split(":")[0] if isinstance(said, str) else OTHER
        for name, said in stock.items()
        if said != plain[name]
    }

    assert found == (STOCK if how == "other" else dict.fromkeys(REENTRANT, OTHER))


def test_off_says_nothing_of_it(trained: Any) -> None:
    assert "recompute" not in trained["off"][1]


def test_memory_falls_with_boundaries_on_the_host(trained: Any) -> None:
    moved = {policy: run[1]["steps"]["out_bytes"] for policy, run in trained.items()}

    assert not any(moved["off"])
    first, later = moved["recompute"][0], moved["recompute"][1:3]
    assert first > 0 and later == [0, 0]  # trials keep all, and nothing leaves after them
    assert all(moved[POLICIES[3]][:3])
