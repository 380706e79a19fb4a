# SPDX-License-Identifier: Apache-2.0
"""Reports written by hand, as docs/actswap.report-1.schema.json describes them."""

import json
import math
from pathlib import Path
from typing import Any

GIB = 1 << 30
MIB = 1 << 20
MS = 1_000_000


def small(**changes: Any) -> dict[str, Any]:
    """The least that an early version wrote; "a__b" names a nested field."""
    whole: dict[str, Any] = {
        "schema": "actswap.report/1",
        "complete": True,
        "ended": "exit",
        "run": {
            "id": "r1",
            "command": ["python", "train.py", "--lr", "1e-3"],
            "pid": 4711,
            "rank": 0,
            "world_size": 1,
            "settings": {"policy": "off"},
        },
        "device": {
            "name": "NVIDIA H100 80GB HBM3",
            "total_bytes": 80 * GIB,
            "measured": False,
            "simulated": True,
            "compute": "values",
        },
        "steps": {
            "count": 2,
            "peak_bytes": [4 * GIB, 5 * GIB],
            "after_forward_bytes": [3 * GIB, 4 * GIB],
            "loss_bits": [["0x3f800000"], ["0x3f000000"]],
            "gradient_digest": ["0x1", "0x2"],
        },
        "peak": {
            "source": "allocator",
            "bytes": 5 * GIB,
            "reserved_bytes": 6 * GIB,
            "step": 1,
            "phase": "backward",
            "by_category": [
                {"category": "activation", "bytes": 4 * GIB, "source": "adapter"},
                {"category": "parameter", "bytes": GIB, "source": "adapter"},
            ],
        },
        "moves": {"out_bytes": 0, "in_bytes": 0, "released_bytes": 0},
        "warnings": [],
    }
    return change(whole, **changes)


def change(whole: dict[str, Any], **changes: Any) -> dict[str, Any]:
    for name, value in changes.items():
        place = whole
        *parents, last = name.split("__")
        for parent in parents:
            place = place[parent]
        place[last] = value
    return whole


def timeline(steps: int, rows: int) -> dict[str, Any]:
    """Teeth: activations grow in forward and shrink in backward, as gradients grow."""
    series: dict[str, list[int]] = {
        "parameter": [], "optimizer_state": [], "gradient": [], "input": [],
        "activation": [], "temporary": [], "cached": [],
    }  # fmt: skip
    times, numbers, phases = [], [], []
    for row in range(rows):
        step, part = divmod(row * steps / rows, 1)
        forward = part < 0.35
        full = part / 0.35 if forward else max(0.0, (0.92 - part) / 0.57)
        held = int(4 * GIB * full)
        values = {
            "parameter": GIB,
            "optimizer_state": 2 * GIB if step or part > 0.95 else 0,
            "gradient": 0 if forward else int(GIB * min(1, (part - 0.35) / 0.57)),
            "input": 64 * MIB,
            "activation": held,
            "temporary": int(256 * MIB * abs(math.sin(row))),
        }
        times.append(int(row * steps / rows * 400 * MS))
        total = sum(values.values())
        values["cached"] = 9 * GIB - total if step else 0
        numbers.append(int(step))
        for name, value in values.items():
            series[name].append(value)
        phases.append(
            "forward" if forward else "backward" if part < 0.92 else "optimizer"
        )
    return {
        "t_ns": times,
        "series": series,
        "step": numbers,
        "reserved_bytes": [sum(column) for column in zip(*series.values())],
        "phase": phases,
        "rule": "max",
    }


def full(**changes: Any) -> dict[str, Any]:
    """Everything that the schema knows."""
    whole = small()
    whole["timeline"] = timeline(6, 600)
    held = [{"category": "parameter", "bytes": GIB, "count": 9, "source": "adapter"}]
    moment = {"bytes": GIB, "by_category": held}
    whole["peak"].update(before=moment, after=moment, static_bytes=GIB)
    whole["peak"]["by_category"] += [
        {"category": "cached", "bytes": GIB, "source": "allocator"},
        {"category": "context", "bytes": 512 * MIB, "source": "inferred"},
    ]
    whole["advice"] = ["activations are 80 % of the peak: offload is worth it"]
    whole["stacks"] = [
        ["train.py:42 main", "train.py:18 step", f"model.py:{118 + n} Block.forward"]
        for n in range(20)
    ]
    whole["sites"] = [
        {
            "stack": n,
            "category": "activation",
            "module": f"blocks.{n}.mlp",
            "peak_bytes": (20 - n) * 16 * MIB,
            "count": 4 + n,
            "idle_ns": {"p10": 3 * MS, "p50": (5 + n) * 9 * MS, "p90": 400 * MS},
        }
        for n in range(20)
    ]
    whole["modules"] = [
        {"module": f"blocks.{n}", "category": "activation", "peak_bytes": (9 - n) * MIB}
        for n in range(8)
    ]
    edges = [MS << n for n in range(11)]
    whole["idle_gap"] = {
        "edges_ns": edges,
        "bytes": [0, MIB, 40 * MIB, 200 * MIB, 700 * MIB, GIB, GIB, GIB, 300 * MIB, 0],
        "count": [0, 3, 4, 9, 12, 30, 31, 30, 5, 0],
        "break_even_ns": 31 * MS,
    }
    whole["run"]["settings"]["budget_bytes"] = 44 * GIB
    whole["budget"] = {
        "bytes": 44 * GIB, "kept": True, "over_bytes": 0, "spare_bytes": 39 * GIB,
    }  # fmt: skip
    whole["steps"]["time_ns"] = [900 * MS, 400 * MS]
    whole["steps"]["peak_reserved_bytes"] = [6 * GIB, 6 * GIB]
    whole["verdict"] = [
        {"gpu": "L40S 48GB", "usable_bytes": 44 * GIB, "fits": "as_is",
         "peak_bytes": 5 * GIB, "short_bytes": None, "basis": "simulated"},
    ]  # fmt: skip
    whole["run"].update(
        started_unix_ns=1_796_000_000_000_000_000,
        host="node1",
        actswap="0.1.0",
        framework="torch 2.15.0",
        torch="2.15.0",
    )
    return change(whole, **changes)


def out_of_memory(**changes: Any) -> dict[str, Any]:
    whole = full(
        complete=False,
        ended="oom",
        steps__count=0,
        oom={
            "asked_bytes": 512 * MIB,
            "in_use_bytes": 78 * GIB,
            "total_bytes": 80 * GIB,
            "free_bytes": 2 * GIB,
            "largest_free_bytes": 96 * MIB,
            "step": 0,
            "phase": "forward",
            "block": "blocks.2",
            "held_by": [
                {"category": "parameter", "bytes": 15 * GIB},
                {"category": "activation", "bytes": 46 * GIB},
            ],
            "to_come": [{"category": "optimizer_state", "bytes": 30 * GIB}],
        },
    )
    return change(whole, **changes)


def write(folder: Path, name: str, content: Any) -> str:
    """As `folder/name`, folders made; returns the name."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return name
