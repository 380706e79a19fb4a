# SPDX-License-Identifier: Apache-2.0
"""Activations that go on to the disk: the same bits, or an error, and nothing is left."""

import json
from pathlib import Path
from typing import Any, Dict

import pytest
from stack import Run, environment
from test_equal import FLOOR, NAMES, STEPS, Training, differences, simulated

CASE = str(Path(__file__).parent / "cases" / "disk.py")
HOST = "1MiB"  # of 5 to 9 that a step of each saves


@pytest.fixture(scope="module", params=["early", "late"])
def disk(request: Any, tmp_path_factory: Any) -> Training:
    folder = tmp_path_factory.mktemp("disk")
    run = Training(
        "cuda",
        policy=FLOOR,
        host_memory=HOST,
        disk=f"{folder}:1GiB",
        sim_order=request.param,
        sim_check="races" if request.param == "late" else "off",
    )
    assert list(folder.iterdir()) == []
    return run


@pytest.mark.parametrize("name", NAMES)
def test_the_disk_changes_no_bit(disk: Training, name: str) -> None:
    plain = simulated("off", "early").saved[name]

    assert differences(plain, disk.saved[name]) == []


def test_all_that_offload_moves_is_moved(disk: Training) -> None:
    moves, steps = disk.report["moves"], disk.report["steps"]
    runs = STEPS * len(NAMES)

    assert disk.report["device"].get("races", 0) == 0
    assert moves["disk"]["out_bytes"] > 0 and "degraded" not in disk.report
    assert moves["pinned_peak_bytes"] <= 1 << 20
    assert moves["disk"]["in_bytes"] > runs << 20
    assert moves["disk"]["peak_bytes"] <= max(steps["out_bytes"]) + (1 << 20)
    full = [row for row in disk.report["kept"] if "pinned" in row["reason"]]
    assert full == []


def step(tmp_path: Path, how: str, size: str = "1GiB", **more: str) -> Dict[str, Any]:
    (tmp_path / "disk").mkdir()
    settings = {
        "policy": FLOOR,
        "host_memory": "3MiB",
        "disk": f"{tmp_path}/disk:{size}",
        "report": str(tmp_path / "report.json"),
    }
    run = Run([CASE, f"{tmp_path}/disk", how], environment(**{**settings, **more}))
    said = run.result()
    said["report"] = json.loads((tmp_path / "report.json").read_text())
    said["err"] = run.err
    return said


def test_the_file_has_no_name_and_a_child_does_not_keep_it(tmp_path: Path) -> None:
    said = step(tmp_path, "forked")

    assert said["raised"] == ""
    assert (said["files"], said["names"], said["child"]) == (1, [], 0)


def test_a_spoilt_file_is_an_error_that_says_so(tmp_path: Path) -> None:
    said = step(tmp_path, "spoilt")

    assert said["raised"].startswith("actswap: cannot bring a saved tensor back")
    assert "the disk does not give back what was written" in said["err"]
    assert "other bytes came back" in said["report"]["degraded"][0]["what"]


@pytest.fixture(scope="module")
def off_sum(tmp_path_factory: Any) -> float:
    return step(tmp_path_factory.mktemp("off"), "whole", policy="off")["sum"]


@pytest.mark.parametrize(
    "size, more, why",
    [
        ("1MiB", {}, "no more room in"),
        ("1GiB", {"disk": "/proc/none:1GiB"}, "cannot make a file in /proc/none"),
    ],
)
def test_what_finds_no_room_stays_and_the_report_says_why(
    off_sum: float, tmp_path: Path, size: str, more: Dict[str, str], why: str
) -> None:
    said = step(tmp_path, "whole", size, **more)

    assert said["raised"] == "" and said["sum"] == off_sum
    assert why in said["report"]["degraded"][0]["what"]
    kept = {row["reason"]: row["count"] for row in said["report"]["kept"]}
    assert kept["no pinned memory left, nor on the disk"] > 0
