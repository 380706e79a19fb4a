# SPDX-License-Identifier: Apache-2.0
"""What the library counts is what torch.cuda counts, to the byte."""

import json
from pathlib import Path
from typing import Any, List, Tuple

import pytest

from stack import Run, environment

CASES = Path(__file__).parent / "cases"
FLOOR = "offload:min=64KiB"
POLICIES = pytest.mark.parametrize("policy", ["off", FLOOR, "recompute"])


def train(folder: Path, model: str, **settings: str) -> Tuple[List[Any], Any]:
    """What torch said of each step, and the report."""
    report = folder / "report.json"
    env = environment(report=str(report), **settings)
    told = Run([str(CASES / "ledger.py"), model], env).result()
    return told, json.loads(report.read_text())


def check(told: List[Any], report: Any) -> None:
    steps = report["steps"]
    ours = [list(pair) for pair in zip(steps["peak_bytes"], steps["peak_reserved_bytes"])]
    assert ours == told
    assert report["peak"]["source"] == "allocator"
    assert all(len(losses) == 1 and losses[0] for losses in steps["loss_bits"])
    assert report["peak"]["bytes"] == max(peak for peak, _ in told)
    # The caching allocator is the only one to take memory here.
    assert report["peak"]["driver_bytes"] == max(reserved for _, reserved in told)


@POLICIES
def test_elementwise(tmp_path: Path, policy: str) -> None:
    check(*train(tmp_path, "elementwise", policy=policy, sim_compute="shapes"))


@POLICIES
@pytest.mark.parametrize("compute", ["shapes", "values"])
def test_gpt(tmp_path: Path, policy: str, compute: str) -> None:
    check(*train(tmp_path, "gpt", policy=policy, sim_compute=compute))


def test_each_byte_at_the_peak_has_a_category(tmp_path: Path) -> None:
    _, report = train(tmp_path, "elementwise", policy="off", sim_compute="shapes")
    peak = report["peak"]
    named = {entry["category"]: entry["bytes"] for entry in peak["by_category"]}
    for outside in ("cached", "context", "comm", "other"):
        named.pop(outside, None)
    assert sum(named.values()) == peak["bytes"]
    # Four weights of 64 KiB, two moments each.
    assert named["parameter"] == 4 * 65536
    assert named["optimizer_state"] >= 2 * named["parameter"]


def test_the_report_knows_the_versions(tmp_path: Path) -> None:
    import torch

    _, report = train(tmp_path, "elementwise", policy="off", sim_compute="shapes")
    assert report["run"]["torch"] == torch.__version__
    assert report["run"]["framework"] == f"torch {torch.__version__}"


def test_out_of_memory_ends_the_report(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    script = (
        "import torch\n"
        "kept = torch.empty(1 << 28, device='cuda')\n"
        "torch.empty(1 << 36, device='cuda')\n"
    )
    run = Run(["-c", script], environment(report=str(report)), status=1)

    assert "torch.OutOfMemoryError" in run.err
    assert run.err.count("actswap: error: out of memory") == 1
    assert "asked for 256.0 GiB, in use 1.0 GiB, reserved 1.0 GiB" in run.err
    assert json.loads(report.read_text())["ended"] == "oom"


def test_a_step_after_it_means_that_the_script_got_over_it(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    script = (
        "import torch\n"
        "w = torch.nn.Parameter(torch.zeros(8, device='cuda'))\n"
        "try:\n"
        "    torch.empty(1 << 36, device='cuda')\n"
        "except torch.OutOfMemoryError:\n"
        "    w.grad = torch.zeros_like(w)\n"
        "    torch.optim.SGD([w], lr=1.0).step()\n"
    )
    Run(["-c", script], environment(report=str(report), sim_compute="shapes"))

    assert json.loads(report.read_text())["ended"] == "exit"


def test_without_the_cache_each_tensor_is_seen_at_the_driver(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    env = environment(report=str(report))
    env["PYTORCH_NO_CUDA_MEMORY_CACHING"] = "1"
    script = (
        "import torch\n"
        "a = torch.empty(1000, device='cuda')\n"
        "b = torch.empty(2000, device='cuda')\n"
        "del a\n"
        "c = torch.empty(500, device='cuda')\n"
    )
    Run(["-c", script], env)

    peak = json.loads(report.read_text())["peak"]
    assert (peak["source"], peak["bytes"]) == ("driver", 12000)


def test_workers_of_a_data_loader_are_left_alone(tmp_path: Path) -> None:
    script = (
        "import torch\n"
        "from torch.utils.data import DataLoader\n"
        "w = torch.nn.Parameter(torch.zeros(8, device='cuda'))\n"
        "for batch in DataLoader(range(8), num_workers=2, batch_size=4):\n"
        "    w.grad = torch.zeros_like(w)\n"
        "    torch.optim.SGD([w], lr=1.0).step()\n"
        "    print(batch.tolist())\n"
    )
    env = environment(report=str(tmp_path / "r%p.json"), sim_compute="shapes", log="info")
    run = Run(["-c", script], env)

    assert run.out == "[0, 1, 2, 3]\n[4, 5, 6, 7]\n"
    assert run.err.count("actswap: policy off") == 1
    assert run.err.count("peak on device") == 1
    (report,) = tmp_path.glob("*.json")
    assert json.loads(report.read_text())["steps"]["count"] == 2


def test_digests_of_gradients_agree_between_policies(tmp_path: Path) -> None:
    digests = []
    for policy in ("off", FLOOR, "recompute"):
        folder = tmp_path / policy
        folder.mkdir()
        _, report = train(folder, "gpt", policy=policy, digest="1")
        digests.append(report["steps"]["gradient_digest"])
    assert digests[0] == digests[1] == digests[2]
    assert len(set(digests[0])) == 4, "each step has its own"
    assert None not in digests[0]
