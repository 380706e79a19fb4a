# SPDX-License-Identifier: Apache-2.0
"""torch.profiler sees the simulated device: each kernel and copy, as long as it takes."""

from pathlib import Path
from typing import Any, Dict, List

import pytest
from stack import Run, environment

CASE = str(Path(__file__).parent / "cases" / "profiled.py")
# A time is written in whole nanoseconds of the program's clock, each way.
ROUNDING_NS = 3


@pytest.fixture(scope="module", params=["auto late", "values early", "auto late bare"])
def told(request: pytest.FixtureRequest) -> Dict[str, Any]:
    compute, order, *bare = request.param.split()
    env = environment(sim_compute=compute, sim_order=order)
    if bare:
        env["LD_PRELOAD"] = " ".join(env["LD_PRELOAD"].split()[1:])
        assert "libactswap" not in env["LD_PRELOAD"]
    run = Run([CASE], env)
    assert "closed library" not in run.err
    return run.result()


def of(trace: Dict[str, Any], *categories: str) -> List[Dict[str, Any]]:
    return [event for event in trace["events"] if event["cat"] in categories]


def ns(events: List[Dict[str, Any]]) -> float:
    return sum(event["dur"] for event in events) * 1e3


def test_every_kernel_is_there_and_as_long_as_on_the_clock(told: Dict[str, Any]) -> None:
    for name in set(told) - {"subscribers"}:
        # Memsets and copies on the device are kernels to the clock.
        kernels = of(told[name], "kernel", "gpu_memset")
        kernels += [e for e in of(told[name], "gpu_memcpy") if "DtoD" in e["name"]]
        assert len(kernels) == told[name]["kernels"], name
        slack = ROUNDING_NS * len(kernels)
        assert ns(kernels) == pytest.approx(told[name]["kernels_ns"], abs=slack), name
    assert told["train"]["kernels"] > 15
    assert not of(told["nothing"], "kernel")


def test_key_averages_have_the_same_device_time(told: Dict[str, Any]) -> None:
    for name in ("train", "again", "copies", "streams"):
        events = of(told[name], "kernel", "gpu_memcpy", "gpu_memset")
        assert told[name]["averages_us"] * 1e3 == pytest.approx(
            ns(events), abs=ROUNDING_NS * len(events)
        ), name


def test_copies_say_what_they_moved(told: Dict[str, Any]) -> None:
    copies = of(told["copies"], "gpu_memcpy")
    found = [(e["name"][7:], e["args"]["bytes"]) for e in copies]

    assert found[:4] == [
        ("HtoD (Pinned -> Device)", 4 << 20),
        ("HtoD (Pageable -> Device)", 1 << 20),
        ("DtoH (Device -> Pinned)", 4 << 20),
        ("DtoH (Device -> Pageable)", 1 << 18),
    ]
    # 64 rows of 16 of 64 floats: what lies between them is not moved.
    assert found[-1] == ("DtoH (Device -> Pageable)", 64 * 16 * 4)
    for way, clock in (("HtoD", "in_ns"), ("DtoH", "out_ns")):
        there = [e for e in copies if way in e["name"]]
        slack = ROUNDING_NS * len(there)
        assert ns(there) == pytest.approx(told["copies"][clock], abs=slack)


def test_device_work_follows_the_call_and_the_operator_that_it_is_of(
    told: Dict[str, Any],
) -> None:
    for name in ("train", "again", "copies", "streams"):
        calls = {e["args"]["correlation"]: e for e in of(told[name], "cuda_runtime")}
        for event in of(told[name], "kernel", "gpu_memcpy"):
            call = calls[event["args"]["correlation"]]
            assert event["ts"] >= call["ts"], (name, event, call)
            want = "cudaLaunchKernel" if event["cat"] == "kernel" else "cudaMemcpy"
            assert call["name"].startswith(want), (name, event, call)
    operators = told["train"]["operators"]
    for event in of(told["train"], "kernel"):
        if event["name"] in ("aten::addmm", "aten::gelu", "aten::gelu_backward"):
            operator = operators[str(event["args"]["External id"])]
            assert operator == event["name"]


def test_a_stream_does_one_thing_at_a_time(told: Dict[str, Any]) -> None:
    for name in set(told) - {"subscribers", "graph"}:
        ends: Dict[int, float] = {}
        for event in sorted(
            of(told[name], "kernel", "gpu_memcpy", "gpu_memset"), key=lambda e: e["ts"]
        ):
            stream = event["args"]["stream"]
            assert event["ts"] >= ends.get(stream, 0) - 0.01, (name, event)
            ends[stream] = event["ts"] + event["dur"]
    assert len({e["args"]["stream"] for e in of(told["streams"], "kernel")}) == 2


def test_a_graph_captured_before_is_seen_at_each_replay(told: Dict[str, Any]) -> None:
    kernels = of(told["graph"], "kernel")
    copies = of(told["graph"], "gpu_memcpy")

    assert [e["name"] for e in kernels] == ["aten::add.Tensor", "aten::mul.Tensor"] * 2
    assert [e["args"]["bytes"] for e in copies] == [4000] * 2
    launches = [
        e for e in of(told["graph"], "cuda_runtime") if e["name"] == "cudaGraphLaunch"
    ]
    assert {e["args"]["correlation"] for e in kernels + copies} == {
        e["args"]["correlation"] for e in launches
    }
    assert len(launches) == 2


def test_there_is_one_subscriber_at_most(told: Dict[str, Any]) -> None:
    refused, not_there = 39, 1

    assert told["subscribers"] == [0, refused, 0, 0, not_there, 0, 0, 2]


def test_what_takes_longer_on_the_card_is_complete(told: Dict[str, Any]) -> None:
    if "long" in told:  # nothing is computed
        assert len(of(told["long"], "kernel")) == 4
        assert ns(of(told["long"], "kernel")) > 4 * 2 * 16384**3 / 66.9e12 * 1e9
