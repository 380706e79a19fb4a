# SPDX-License-Identifier: Apache-2.0
"""examples/trainer under every policy and order: bit-equal, and memory is released.

trainer.py TRAINER LIBACTSWAP LIBRARY...     the libraries are the simulated device's
"""

import json
import os
import subprocess
import sys
import tempfile
from typing import Any

TRAINER, ACTSWAP, *DEVICE = sys.argv[1:]
BLOCKS, ROWS, COLUMNS = 4, 4096, 64
ACTIVATION = ROWS * COLUMNS * 4
STEPS = 3


def train(
    order: str, policy: str, watched: bool = True, **more: str
) -> tuple[list[str], dict[str, int]]:
    """The lines that must be equal, and the figures of the library."""
    preload = [ACTSWAP, *DEVICE] if watched else DEVICE
    environment = {
        name: value for name, value in os.environ.items() if "ACTSWAP" not in name
    }
    environment |= {
        "LD_PRELOAD": " ".join(preload),
        "ACTSWAP_SIM_GPU": "h100-80gb",
        "ACTSWAP_SIM_COMPUTE": "values",
        "ACTSWAP_SIM_ORDER": order,
        "ACTSWAP_POLICY": policy,
        "ACTSWAP_REPORT": "off",
        "ACTSWAP_LOG": "error",
    } | more
    sizes = [str(n) for n in (STEPS, BLOCKS, ROWS, COLUMNS)]
    done = subprocess.run(
        [TRAINER, *sizes], env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, (order, policy, more, done.stderr)
    assert "simcuda: race" not in done.stderr, (order, policy, done.stderr)
    lines = done.stdout.splitlines()
    words = lines[-1].split() if watched else []
    figures = {words[i]: int(words[i + 1]) for i in range(0, len(words), 2)}
    return lines[: STEPS + 1], figures


def report_of(**settings: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "report.json")
        train("early", "off", True, ACTSWAP_REPORT=path, **settings)
        with open(path, encoding="utf-8") as file:
            report: dict[str, Any] = json.load(file)
    return report


def check_parts() -> None:
    """Each block made its output and what it hides; the last output is over when the loss
    has made a gradient."""
    report = report_of()
    rows = {row["module"]: row["peak_bytes"] for row in report["modules"]}
    expected = {f"blocks.{n}": 2 * ACTIVATION for n in range(BLOCKS)}
    expected |= {f"blocks.{BLOCKS - 1}": ACTIVATION, "loss": ACTIVATION}
    assert rows == expected, rows


def check_stacks() -> None:
    """Its saves are told by its own functions, which no other object could name."""
    told = report_of(ACTSWAP_STACKS="native")
    program = os.path.basename(TRAINER)
    assert told["sites"], told["warnings"]
    for site in told["sites"]:
        frames = told["stacks"][site["stack"]]
        assert frames[-1].startswith(f"{program} "), frames
        assert f"{program} main" in frames, frames
        assert "libactswap" not in " ".join(frames), frames


def check_no_cupti() -> None:
    """Where there is no CUPTI, the report says that times are not measured."""
    told = report_of(ACTSWAP_CUPTI="1")
    why = "libcupti.so.13 is not there"
    assert told["device_times"]["reason"] == why, told["device_times"]
    assert told["degraded"] == [{"what": f"device times: not measured: {why}"}]


def check_steps() -> None:
    lines, _ = train("early", "off", ACTSWAP_STEPS="2")
    assert [line.split()[:2] for line in lines[:2]] == [["loss", "1"], ["loss", "2"]]
    assert lines[2].startswith("parameters "), lines


def main() -> None:
    plain, _ = train("early", "off", watched=False)
    assert plain[0].startswith("loss 1 ") and plain[-1].startswith("parameters ")
    assert len({line.split()[-1] for line in plain}) == STEPS + 1, "it learns something"

    # The first block's input is older than the forward; the other blocks' inputs and
    # every hidden activation go out, come back and are freed in between.
    moved = STEPS * (2 * BLOCKS - 1) * ACTIVATION
    for order in ("early", "late"):
        off_lines, off = train(order, "off")
        assert off_lines == plain, (order, off_lines, plain)
        assert off["released"] == off["out"] == 0

        out_lines, out = train(order, "offload", ACTSWAP_SIM_CHECK="races")
        assert out_lines == plain, (order, out_lines, plain)
        assert out["out"] == out["in"] == out["released"] == moved, out
        assert out["pages"] == 0, out
        assert out["after-forward"] < off["after-forward"], (out, off)
        assert out["peak"] < off["peak"], (out, off)

        again_lines, again = train(order, "recompute")
        assert again_lines == plain, (order, again_lines, plain)
        assert again["after-forward"] < off["after-forward"], (again, off)

    # Whatever the device refuses once, one activation stays and the run goes on with the
    # same numbers.
    for fault in (
        "cudaHostAlloc:2=2",
        "cudaStreamCreateWithFlags:2=2",  # the first is the trainer's own
        "cudaEventCreateWithFlags:3=2",
        "cudaEventRecord:5=700",
        "cudaStreamWaitEvent:4=700",
        "cudaMemcpyAsync:36=700",  # those before are of the trainer's parameters
    ):
        lines, figures = train("late", "offload", ACTSWAP_SIM_FAULT=fault)
        assert lines == plain, (fault, lines)
        assert figures["out"] == moved - ACTIVATION, (fault, figures)
    lines, figures = train("late", "offload", ACTSWAP_HOST_MEMORY="2097152")
    assert lines == plain
    # Two buffers of pinned memory: two activations a step find room.
    assert figures["out"] == STEPS * 2 * ACTIVATION, figures
    for order in ("early", "late"):
        lines, figures = train(
            order,
            "offload",
            ACTSWAP_HOST_MEMORY="2097152",
            ACTSWAP_DISK=f"{tempfile.gettempdir()}:1GiB",
        )
        assert lines == plain
        assert figures["out"] == figures["in"] == figures["released"] == moved, figures
    check_parts()
    check_stacks()
    check_no_cupti()
    check_steps()
    print("trainer: bit-equal")


main()
