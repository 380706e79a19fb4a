# SPDX-License-Identifier: Apache-2.0
"""PyTorch's ways to take memory: what is counted is what PyTorch and the device count, to
the byte, and what is computed does not hang on it, under no policy and under each."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List, Tuple

import pytest
from stack import Run, environment

CASES = Path(__file__).parent / "cases"
sys.path.insert(0, str(CASES))
POLICIES = ["off", "offload:min=0", "recompute"]
WITHOUT: Dict[str, Dict[str, str]] = {
    "no cache": {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"},
    "pools of the driver": {"PYTORCH_ALLOC_CONF": "backend:cudaMallocAsync"},
    "plug": {},
}
CONTEXT = 504365056  # of the simulated card, docs/simcuda.md


def train(
    folder: Path, policy: str, *how: str, **more: str
) -> Tuple[Dict[str, Any], Dict[str, Any]]:
    path = folder / "report.json"
    # Early, as memory that is freed in order is free once its turn has come.
    settings = environment(policy=policy, report=str(path), sim_order="early") | more
    said = Run([str(CASES / "backends.py"), *how], settings).result()
    return said, json.loads(path.read_text())


@pytest.fixture(scope="module")
def losses(tmp_path_factory: pytest.TempPathFactory) -> List[str]:
    said, _ = train(tmp_path_factory.mktemp("plain"), "off", "cache")
    return list(said["losses"])


def device_bytes(report: Dict[str, Any]) -> int:
    return sum(row["bytes"] for row in report["taken"] if row["kind"] == "device")


def agrees(said: Dict[str, Any], report: Dict[str, Any], policy: str) -> None:
    peak = report["peak"]

    assert (peak["source"], peak["bytes"]) == ("allocator", said["peak"])
    assert peak["reserved_bytes"] == said["reserved_peak"]
    assert said["reserved"] == said["gone"] - CONTEXT
    assert (report["moves"]["out_bytes"] > 0) == (policy != "off")


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("conf", ["", "expandable_segments:True"])
def test_the_allocators_of_pytorch(
    losses: List[str], tmp_path: Path, conf: str, policy: str
) -> None:
    said, report = train(tmp_path, policy, "cache", PYTORCH_ALLOC_CONF=conf)

    assert said["losses"] == losses
    agrees(said, report, policy)
    assert device_bytes(report) == said["gone"] - CONTEXT


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("how", ["pool", "graph"])
def test_pools_and_graphs(
    losses: List[str], tmp_path: Path, how: str, policy: str
) -> None:
    said, report = train(tmp_path, policy, how)

    assert said["losses"] == (losses[1:] if how == "graph" else losses)
    agrees(said, report, policy)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("how", list(WITHOUT))
def test_without_a_cache_the_driver_is_the_source(
    losses: List[str], tmp_path: Path, how: str, policy: str
) -> None:
    said, report = train(tmp_path, policy, *words(how, tmp_path), **WITHOUT[how])
    peak = report["peak"]

    assert said["losses"] == losses
    assert (peak["source"], peak["bytes"]) == ("driver", peak["driver_bytes"])
    assert peak["driver_bytes"] == max(
        row["peak_bytes"] for row in report["taken"] if row["kind"] == "device"
    )


def words(how: str, folder: Path) -> List[str]:
    if how != "plug":
        return ["cache"]
    from pools import ALLOCATOR

    (folder / "allocator.c").write_text(ALLOCATOR)
    library = str(folder / "allocator.so")
    source = str(folder / "allocator.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    return ["plug", library]
