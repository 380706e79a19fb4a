# SPDX-License-Identifier: Apache-2.0
"""Random numbers, attention and operators that need values, on the simulated device."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from stack import Run, environment, private

CASE = Path(__file__).parent / "cases" / "bodies.py"
ORDERS = pytest.mark.parametrize("order", ["early", "late"])


def check(name: str, *arguments: str, **settings: str) -> Any:
    return Run([str(CASE), name, *arguments], environment(**settings)).result()


def test_a_seed_gives_the_numbers_of_a_real_card() -> None:
    uniform, normal = check("philox")

    published = "0.3990 0.5167 0.0249 0.9401 0.9459 0.7967 0.4150 0.8203 0.2290 0.9096"
    assert uniform == [float(x) for x in published.split()]
    assert normal == [-0.9247, -0.4253, -2.6438, 0.1452, -0.1209]


@ORDERS
def test_the_generator_state_decides_the_numbers(order: str) -> None:
    found = check("generator", sim_order=order)

    assert {name: bad for name, bad in found.items() if not all(bad)} == {}


def test_dropout_drops_the_share_it_was_asked_for() -> None:
    share, largest = check("dropout_share")

    # Five standard deviations of a million draws.
    assert abs(share - 0.25) < 5 * (0.25 * 0.75 / (1 << 20)) ** 0.5
    assert largest == pytest.approx(1 / 0.75, rel=1e-6)


@ORDERS
def test_recomputed_dropout_is_the_same_dropout(order: str) -> None:
    found = check("recompute", sim_order=order)

    assert len(found) == 4 and all(found)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("case", ["plain", "causal", "mask", "longer"])
def test_attention_has_the_bits_of_the_cpu(case: str, dtype: str) -> None:
    assert check("attend", case, dtype) == 0


def test_softmax_of_half_in_single_precision_is_the_formula() -> None:
    found = check("softmax_widens")

    assert found == {"softmax": [True, True], "log_softmax": [True, True]}


def test_frozen_parameters_leave_the_other_gradients_as_they_are() -> None:
    assert check("frozen") == []


def test_histc_places_integers_by_integers() -> None:
    found = check("histc_of_integers")

    # 29 / 100 * 100 would be in bin 28; all of -1 to 101 in four; 4 to 6 in three.
    assert found == [[0, 3, 7, 29, 99], [5, 1, 0, 2], [0, 3, 0]]


# Not the CPU's own kernels: rounding of the type, a few times.
@pytest.mark.parametrize("dtype, most", [("float32", 2e-6), ("bfloat16", 2e-2)])
@pytest.mark.parametrize("case", ["bias", "grouped"])
def test_attention_by_the_formula_is_as_exact_as_its_type(
    case: str, dtype: str, most: float
) -> None:
    assert check("attend", case, dtype) < most


@ORDERS
def test_sizes_may_depend_on_values(order: str) -> None:
    found = check("values", sim_order=order)

    assert len(found) == 11 and all(found)


def test_shapes_says_which_operator_needs_values() -> None:
    said = check("nonzero", sim_compute="shapes")

    assert said.startswith("simcuda: aten::nonzero ")
    assert "ACTSWAP_SIM_COMPUTE=shapes" in said


def test_host_arguments_are_those_of_the_call() -> None:
    assert check("changed_after", sim_order="late") == [[2.0] * 4, [1.0, 3.0]]


@ORDERS
def test_an_overflow_halves_the_scale_and_skips_the_step(order: str) -> None:
    assert check("scaler", sim_order=order) == [[512.0, True], [512.0, False]]


@ORDERS
def test_large_results_are_computed_where_they_lie(order: str) -> None:
    found = check("host_memory", sim_order=order)

    # A result computed elsewhere first would be 64 MiB more.
    assert {name: grown for name, grown in found.items() if grown > 32 << 20} == {}
    assert len(found) == 7


def test_another_pytorch_is_refused_before_anything_runs(tmp_path: Path) -> None:
    copy = tmp_path / "actswap"
    shutil.copytree(private(), copy)
    bodies = next(copy.glob("simtorch-*.so"))
    bodies.rename(copy / "simtorch-1.2.3.so")
    env = environment()
    env["LD_PRELOAD"] = env["LD_PRELOAD"].replace(str(private()), str(copy))

    run = Run([str(CASE), "philox"], env, status=125)

    assert run.out == ""
    assert "simcuda: error: there are no operator bodies for PyTorch" in run.err
    assert "has them for 1.2.3" in run.err
