# SPDX-License-Identifier: Apache-2.0
"""Kernels that PyTorch compiles when it first runs need no compiler here."""

import json
from pathlib import Path
from typing import Any, Dict, Tuple

import pytest

from stack import Run, environment

CASE = Path(__file__).parent / "cases" / "run_time_kernels.py"
MODES = ("values", "auto", "shapes")
NOTE = "torch.jit ran without its fuser"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Dict[str, Tuple[Any, str, Any]]:
    found = {}
    for mode in MODES:
        report = tmp_path_factory.mktemp(mode) / "report.json"
        ran = Run([str(CASE)], environment(sim_compute=mode, report=str(report)))
        found[mode] = ran.result(), ran.err, json.loads(report.read_text())
    return found


@pytest.mark.parametrize("mode", ["values", "auto"])
def test_complex_operators_are_the_cpus(runs: Any, mode: str) -> None:
    result, _, _ = runs[mode]

    assert result["torch.complex64"] == result["torch.complex128"] == []


def test_they_take_the_same_memory_in_every_mode(runs: Any) -> None:
    peaks = {runs[mode][0]["peak"] for mode in MODES}

    assert len(peaks) == 1


@pytest.mark.parametrize("mode", MODES)
def test_scripted_modules_run_without_the_fuser_and_say_so(runs: Any, mode: str) -> None:
    result, err, report = runs[mode]

    assert result["scripted"] == [[3, 4]] * 4
    assert err.count(NOTE) == 1
    assert [n["count"] for n in report["notes"] if n["what"].startswith(NOTE)] == [1]


def test_no_empty_kernel_is_kept_for_later_processes(runs: Any) -> None:
    assert {runs[mode][0]["cache"] for mode in MODES} == {"0"}
