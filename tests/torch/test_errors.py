# SPDX-License-Identifier: Apache-2.0
"""What PyTorch refuses on a card is refused on the simulated one, and by an exception."""

from pathlib import Path
from typing import Any

import pytest

from stack import Run, environment

CASE = Path(__file__).parent / "cases" / "errors.py"


def check(name: str, **settings: str) -> Any:
    return Run([str(CASE), name], environment(**settings)).result()


def test_wrong_calls_raise_what_they_raise_on_the_cpu() -> None:
    count, others = check("database", sim_order="early")

    assert count > 700
    # PyTorch has no CUDA kernel of it.
    assert [name for name, _ in others] == ["histogramdd"]


@pytest.mark.parametrize("compute", ["values", "auto"])
def test_what_the_host_code_would_see_is_seen_at_the_call(compute: str) -> None:
    found = check("calls", sim_order="late", sim_compute=compute)

    elsewhere = "Expected all tensors to be on the same device"
    for name, (kind, message) in found.items():
        assert kind == "RuntimeError", name
        assert message.startswith(elsewhere) == name.endswith("on the host"), name
    assert found["stride"][1] == "non-positive stride is not supported"
    assert found["padding"][1] == "negative padding is not supported"
    assert "expected input[2, 3, 8, 8] to have 6 channels" in found["groups"][1]
    assert "Kernel size can't be greater" in found["kernel"][1]
    assert "Float" in found["types"][1] and "Half" in found["types"][1]
    assert "0-dimensional value tensor" in found["fill"][1]


def test_numbers_that_the_cpu_refuses_are_refused() -> None:
    found = check("values", sim_order="early")

    assert {name: kinds for name, kinds in found.items() if kinds[0] != kinds[1]} == {}
    assert all(kinds[0] in ("RuntimeError", "IndexError") for kinds in found.values())


@pytest.mark.parametrize("compute", ["values", "auto"])
def test_what_is_found_later_is_a_failed_assertion(compute: str) -> None:
    run = Run([str(CASE), "later"], environment(sim_order="late", sim_compute=compute))
    found = run.result()
    line = 1 + CASE.read_text().splitlines().index(
        next(one for one in CASE.read_text().splitlines() if "the wrong line" in one)
    )
    text = "device-side assert triggered: aten::index_select "
    text += f"(errors.py:{line}): index out of range in self"

    assert found.pop("the next calls") == ["nothing", "torch.Size([2, 3])"]
    assert found.pop("the host") == ["nothing", "2.0"]
    assert found == {name: ["AcceleratorError", "CUDA error: " + text] for name in found}
    assert run.err.count("simcuda: ") == 1 and f"simcuda: {text}\n" in run.err
