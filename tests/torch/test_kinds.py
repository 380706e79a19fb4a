# SPDX-License-Identifier: Apache-2.0
"""Recurrent networks, sparse tensors, packages' operators and others that have no CPU
kernel of the same name compute on the simulated device what the CPU computes."""

import json
from pathlib import Path
from typing import Any, Dict

import pytest

from stack import Run, environment

CASES = Path(__file__).parent / "cases"


def check(name: str, **settings: str) -> Any:
    return Run([str(CASES / "kinds.py"), name], environment(**settings)).result()


def beyond(found: Dict[str, Any], most: float) -> Dict[str, Any]:
    return {
        name: apart
        for name, apart in found.items()
        if isinstance(apart, str) or apart > most
    }


# The same kernels on the same numbers, but where the CPU's own choice differs (a layer's
# weights without a gap, fused cells) sums are in another order.
@pytest.mark.parametrize("order", ["early", "late"])
def test_recurrent_networks_compute_what_the_cpu_does(order: str) -> None:
    found = check("recurrent", sim_order=order)

    assert beyond(found, 1e-6) == {}
    assert len(found) == 23
    assert sum(apart == 0 for apart in found.values()) > 10


def test_sparse_tensors_compute_what_the_cpu_does() -> None:
    found = check("sparse")

    assert beyond(found, 2e-7) == {}
    assert len(found) == 21


def test_operators_of_the_device_alone_follow_their_formula() -> None:
    found = check("others")

    assert beyond({n: a for n, a in found.items() if "bfloat16" not in n}, 2e-6) == {}
    assert beyond(found, 1e-2) == {}
    assert found["rms norm float64"] < 1e-14


def test_bags_of_every_form_compute_what_the_cpu_does() -> None:
    found = check("bags")

    assert beyond(found, 0) == {}
    assert len(found) > 90


def test_a_list_is_multiplied_as_one_tensor_is() -> None:
    found = check("lists")

    assert beyond(found, 0) == {}
    assert len(found) > 20


def test_a_package_computes_with_its_cpu_kernel() -> None:
    assert check("packages") == {"torch.library": 0}


def test_an_operator_without_a_body_is_an_error_that_names_it() -> None:
    assert "simcuda: aten::_cslt_compress has no body" in check("missing")


def test_their_allocations_do_not_depend_on_values(tmp_path: Path) -> None:
    traces = []
    for compute in ("values", "shapes"):
        file = tmp_path / compute
        command = [str(CASES / "allocations.py"), str(file), str(CASES / "layers.py")]
        Run(command, environment(sim_compute=compute))
        traces.append(json.loads(file.read_text()))

    assert len(traces[0]) > 300
    assert traces[0] == traces[1]
