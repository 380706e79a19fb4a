# SPDX-License-Identifier: Apache-2.0
"""Every operator that can be called in a general way computes on the simulated device
what it computes on the CPU, bit for bit; those that write do so where they should."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Dict, List, Tuple

import pytest

from stack import Run, environment

CASES = Path(__file__).parent / "cases"
SHARDS = 2
Outcomes = Dict[str, List[Tuple[str, str]]]

RANDOM = "draws random numbers: the device's generator is not the CPU's"
SAVED = "saves for its backward what the CPU does not, or in another form"
NO_KERNEL = "PyTorch has no CUDA kernel"
CUDA_REFUSES = "PyTorch's CUDA code refuses what the CPU takes"
EMPTY = "leaves its result as it is"
NO_SAMPLE = "the operator database has no call of this form"
ARGUMENTS = "its arguments are bound in ways that the schema does not say"
HARDWARE = "this CPU has no kernel for any sample"
RESIZES = "PyTorch itself resizes self and reads what was never written"

# What differs for a reason. A prefix ends with *.
DIFFERENT = {
    "aten._embedding_bag*": SAVED,
    "aten._histogramdd_*": NO_KERNEL,
    "aten.histogram*": NO_KERNEL,
    "aten._scaled_dot_product_flash_attention_for_cpu*": NO_KERNEL,
    "aten._native_batch_norm_legit*": SAVED,
    "aten.native_batch_norm*": SAVED,
    "aten.log_sigmoid_*": SAVED,
    "aten.empty*": EMPTY,
    "aten.new_empty*": EMPTY,
    "aten.set_.source_Tensor": EMPTY,
    "aten.addbmm_.default": RESIZES,
    "aten.bernoulli*": RANDOM,
    "aten.cauchy_.default": RANDOM,
    "aten.exponential_.default": RANDOM,
    "aten.geometric_.default": RANDOM,
    "aten.log_normal_.default": RANDOM,
    "aten.multinomial*": RANDOM,
    "aten.normal*": RANDOM,
    "aten.rand*": RANDOM,
    "aten.rrelu_with_noise*": RANDOM,
    "aten.uniform_.default": RANDOM,
    "aten._fused_adagrad_*": CUDA_REFUSES,
    "aten._fused_adam_*": CUDA_REFUSES,
    "aten._fused_adamw_*": CUDA_REFUSES,
    "aten._fused_sgd_*": CUDA_REFUSES,
    "aten._foreach_addcdiv_.Tensor": CUDA_REFUSES,
    "aten._foreach_addcmul_.Tensor": CUDA_REFUSES,
    "aten._log_softmax_backward_data.out": CUDA_REFUSES,
    "aten._softmax_backward_data.out": CUDA_REFUSES,
    "aten._logcumsumexp.out": CUDA_REFUSES,
    "aten.col2im.out": CUDA_REFUSES,
    "aten.dot*": CUDA_REFUSES,
    "aten.vdot*": CUDA_REFUSES,
    "aten.max.unary_out": CUDA_REFUSES,
    "aten.max_unpool2d.out": CUDA_REFUSES,
    "aten.min.unary_out": CUDA_REFUSES,
}

# Operators that write and of which no call was made.
UNCOVERED = {
    "aten._addmm_activation.out": ARGUMENTS,
    "aten._compute_linear_combination.out": ARGUMENTS,
    "aten._convert_indices_from_*": ARGUMENTS,
    "aten._fused_moving_avg_obs_fq_helper.default": ARGUMENTS,
    "aten._philox_*": ARGUMENTS,
    "aten._scaled_*": HARDWARE,
    "aten._int_mm.out": ARGUMENTS,
    "aten._index_put_impl_.default": NO_SAMPLE,
    "aten._native_batch_norm_legit.no_stats_out": NO_SAMPLE,
    "aten._slow_conv2d_*": NO_SAMPLE,
    "aten._upsample_*": NO_SAMPLE,
    "aten.adaptive_avg_pool*": NO_SAMPLE,
    "aten.all.dims_out": NO_SAMPLE,
    "aten.any.dims_out": NO_SAMPLE,
    "aten.exp2_.default": NO_SAMPLE,
    "aten.isin.*": ARGUMENTS,
    "aten.linalg_eigvals.out": ARGUMENTS,
    "aten.norm.dtype_out": NO_SAMPLE,
    "aten.random_.from": RANDOM,
    "aten.randperm.generator_out": RANDOM,
    "aten.reflection_pad*": NO_SAMPLE,
    "aten.replication_pad3d*": NO_SAMPLE,
    "aten.scatter*": NO_SAMPLE,
    "aten.searchsorted.Scalar_out": ARGUMENTS,
    "aten.set_.source_Storage*": EMPTY,
    "aten.slow_conv_transpose*": NO_SAMPLE,
    "aten.split_with_sizes_copy.out": NO_SAMPLE,
    "aten.sspaddmm.out": ARGUMENTS,
    "aten.upsample_*": NO_SAMPLE,
}


def listed(name: str, table: Dict[str, str]) -> bool:
    return any(
        name.startswith(key[:-1]) if key.endswith("*") else name == key for key in table
    )


@pytest.fixture(scope="session")
def harvested(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Calls of operators, made on the CPU without anything of ours."""
    path = tmp_path_factory.mktemp("operators") / "calls"
    script = str(CASES / "op_calls.py")
    subprocess.run([sys.executable, script, str(path)], check=True, capture_output=True)
    return path


def shard(calls: Path, which: str, first: int) -> Outcomes:
    found: Outcomes = {}
    script, env = str(CASES / "operators.py"), environment()
    env["OMP_NUM_THREADS"] = "1"
    while True:
        arguments = [script, str(calls), which, str(first), str(SHARDS)]
        run = Run(arguments, env, status=None)
        begun = ""
        for line in run.out.splitlines():
            word, _, rest = line.partition(" ")
            if word == "start":
                begun = rest
            elif word == "done":
                name, _, outcomes = rest.partition(" ")
                found[name] = [(v, o) for v, o in json.loads(outcomes)]
                first += SHARDS
                begun = ""
        if not begun:
            assert run.out.endswith("end\n"), run.err
            return found
        found[begun] = [("any", f"status {run.status}: {run.err[-300:]}")]
        first += SHARDS


def stale(table: Dict[str, str], names: List[str]) -> List[str]:
    """Entries that excuse nothing."""
    return [key for key in table if not any(listed(n, {key: ""}) for n in names)]


def outcomes_of(calls: Path, which: str) -> Outcomes:
    merged: Outcomes = {}
    with ThreadPoolExecutor(SHARDS) as pool:
        for part in pool.map(lambda i: shard(calls, which, i), range(SHARDS)):
            merged.update(part)
    return merged


def wrong(outcomes: Outcomes) -> Dict[str, List[Tuple[str, str]]]:
    good = ("equal", "refused")
    found = {n: [o for o in all_ if o[1] not in good] for n, all_ in outcomes.items()}
    return {n: bad for n, bad in found.items() if bad and not listed(n, DIFFERENT)}


@pytest.mark.slow
def test_operators_give_the_bits_of_the_cpu(harvested: Path) -> None:
    outcomes = outcomes_of(harvested, "calls")

    assert wrong(outcomes) == {}
    equal = [n for n, found in outcomes.items() if ("contiguous", "equal") in found]
    assert len(equal) > 500


@pytest.mark.slow
def test_operators_write_what_and_where_the_cpu_does(harvested: Path) -> None:
    outcomes = outcomes_of(harvested, "writes")

    assert wrong(outcomes) == {}
    covered = {
        n for n, found in outcomes.items() if any(o != "refused" for _, o in found)
    }
    missing = sorted(n for n in outcomes if n not in covered)
    assert [n for n in missing if not listed(n, UNCOVERED)] == []
    assert stale(UNCOVERED, missing) == []
    assert len(covered) > 500
    for variant, least in (("sliced", 480), ("transposed", 480), ("aliased", 250)):
        equal = [n for n, found in outcomes.items() if (variant, "equal") in found]
        assert len(equal) > least, variant
    mixed = [n for n, found in outcomes.items() if ("mixed", "equal") in found]
    assert len(mixed) > 150
