# SPDX-License-Identifier: Apache-2.0
"""ACTSWAP_CUPTI: the report's device times are the device's, and profilers go first."""

import json
from pathlib import Path
from typing import Any, Dict, List, Tuple

import pytest
from stack import Run, environment

CASE = str(Path(__file__).parent / "cases" / "telemetry.py")
PHASES = ("forward", "backward", "optimizer", "recompute", "other")


def train(folder: Path, *options: str, **settings: str) -> Tuple[Any, Any]:
    """What the script printed, and its report."""
    path = folder / "report.json"
    chosen = {"cupti": "1", "report": str(path), "sim_compute": "auto", **settings}
    told = Run([CASE, *options], environment(**chosen)).result()
    return told, json.loads(path.read_text())


def same_work(one: List[Any], other: List[Any]) -> bool:
    """The same kernels and copies; times are rounded to the program's clock and back."""
    pairs = [
        sorted(work, key=lambda row: (row[0], row[2] or 0, row[1]))
        for work in (one, other)
    ]
    return len(one) == len(other) and all(
        a[0] == b[0] and a[2] == b[2] and abs(a[1] - b[1]) <= 3 for a, b in zip(*pairs)
    )


def what(report: Dict[str, Any]) -> List[str]:
    return [row["what"] for row in report.get("degraded", [])]


@pytest.fixture(scope="module")
def offloaded(tmp_path_factory: pytest.TempPathFactory) -> Tuple[Any, Any]:
    return train(tmp_path_factory.mktemp("offload"), policy="offload")


def test_kernels_take_what_the_clock_says(offloaded: Tuple[Any, Any]) -> None:
    times, clock = offloaded[1]["device_times"], offloaded[1]["clock"]

    assert times["measured"] and times["reason"] is None and not times["dropped"]
    assert times["kernels"] == clock["kernels"] > 100
    assert times["kernels_ns"] == clock["kernels_ns"]


def test_copies_are_the_pager_s_and_the_script_s(offloaded: Tuple[Any, Any]) -> None:
    times, moves = offloaded[1]["device_times"], offloaded[1]["moves"]
    batch = 128 * 64 * 4

    # The losses, of a number each, come to the host, too.
    assert times["out"]["bytes"] - moves["out_bytes"] <= 4 * 8
    assert moves["out_bytes"] > 1 << 20
    # The first step's batch was on its way before there was a step.
    extra = times["in"]["bytes"] - moves["in_bytes"]
    assert extra in (3 * batch, 4 * batch), extra
    for way, rate in (("in", 55.43), ("out", 55.06)):
        measured = times[way]["pinned_bytes"] / times[way]["pinned_ns"]
        assert measured == pytest.approx(rate, rel=0.01)


def test_each_kernel_is_one_part_s_and_like_blocks_take_alike(
    offloaded: Tuple[Any, Any],
) -> None:
    times = offloaded[1]["device_times"]
    modules = {row["name"]: row for row in times["modules"]}

    placed = sum(row[f"{phase}_ns"] for row in modules.values() for phase in PHASES)
    assert placed + times["unplaced_ns"] == times["kernels_ns"]
    assert times["unplaced_ns"] < times["kernels_ns"] // 100
    for part in ("", ".up", ".down"):
        forwards = {modules[f"{n}{part}"]["forward_ns"] for n in range(3)}
        assert len(forwards) == 1 and forwards.pop() > 0, part
    assert all(modules[f"{n}.down"]["backward_ns"] > 0 for n in range(3))
    assert modules[None]["optimizer_ns"] > 0
    assert sum(row["optimizer_ns"] for row in modules.values()) == (
        modules[None]["optimizer_ns"]
    )


def test_figures_do_not_depend_on_the_order(
    offloaded: Tuple[Any, Any], tmp_path: Path
) -> None:
    _, other = train(tmp_path, "fork", policy="offload", sim_order="early")

    assert other["device_times"] == offloaded[1]["device_times"]


def test_recompute_has_its_own_time(tmp_path: Path) -> None:
    _, report = train(tmp_path, policy="recompute", sim_compute="values")
    times = report["device_times"]

    assert times["kernels_ns"] == report["clock"]["kernels_ns"]
    assert sum(row["recompute_ns"] for row in times["modules"]) > 0


def test_a_profiler_has_the_field_alone(tmp_path: Path) -> None:
    traces, reports = [], []
    for way in ("off", "late", "first"):
        (tmp_path / way).mkdir()
        cupti = "0" if way == "off" else "1"
        told, report = train(tmp_path / way, "profile", way, cupti=cupti)
        traces.append(told["work"])
        reports.append(report)
    bare, off = traces[0], reports[0]

    assert "device_times" not in off and not what(off)
    assert len(bare) > 80
    assert same_work(traces[1], bare) and same_work(traces[2], bare)
    late, first = reports[1:]
    assert what(late) == [
        "device times: a profiler took CUPTI, and none are measured since"
    ]
    assert late["device_times"]["measured"]
    assert 0 < late["device_times"]["kernels"] < late["clock"]["kernels"]
    assert what(first) == ["device times: not measured: a profiler was there first"]
    assert not first["device_times"]["measured"] and not first["device_times"]["kernels"]


@pytest.mark.parametrize(
    "fault, said",
    [
        (
            "cuptiActivityRegisterCallbacks:1+=39",
            "cuptiActivityRegisterCallbacks is refused as another tool has CUPTI (39)",
        ),
        (
            "cuptiActivityEnable:3=999",
            "cuptiActivityEnable fails: CUPTI does not work here (999)",
        ),
    ],
)
def test_where_cupti_refuses_the_run_goes_on(
    tmp_path: Path, fault: str, said: str
) -> None:
    told, report = train(tmp_path, sim_fault=fault, sim_compute="values")

    assert len(set(told["losses"])) == 4
    assert what(report) == [f"device times: not measured: {said}"]
    assert report["device_times"]["reason"] == said
    assert not report["device_times"]["kernels"]


def test_a_run_that_leaves_at_once_is_none_of_ours_to_hold(tmp_path: Path) -> None:
    _, report = train(tmp_path, "leave")

    assert not report["complete"] and report["device_times"]["measured"]
