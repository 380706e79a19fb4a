# SPDX-License-Identifier: Apache-2.0
"""PyTorch's expandable segments: the driver's virtual memory in place of cudaMalloc."""

import json
from pathlib import Path

from stack import Run, environment

SCRIPT = str(Path(__file__).parent / "cases" / "segments.py")


def test_expandable_segments_hold_what_others_hold(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    env = environment(report=str(report))
    plain = Run([SCRIPT], environment()).result()
    env["PYTORCH_ALLOC_CONF"] = "expandable_segments:True"
    said = Run([SCRIPT], env).result()
    seen = json.loads(report.read_text())

    assert said == plain | {"expandable": True}
    assert not plain["expandable"]
    assert said["count"] == 1 and said["driver has what is reserved"]
    assert said["given back"] and said["out of memory"]
    assert said["sums"] == [n * (50 << 20) for n in range(5)]
    assert said["again"] == 7 * (80 << 20) + 2
    assert seen["peak"]["bytes"] == said["peak"]
    assert seen["device"]["simulated"] and seen["device"]["total_bytes"]
