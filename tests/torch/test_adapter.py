# SPDX-License-Identifier: Apache-2.0
"""The adapter inside a real PyTorch: how it gets in, and what it must not break."""

import sys
from functools import lru_cache
from pathlib import Path
from typing import Any, Dict

import pytest

from stack import Run, environment

CASES = Path(__file__).parent / "cases"
FLOOR = "offload:min=64KiB"


# --- Getting in

WHO = (
    "import sys, torch\n"
    "adapter = getattr(sys.modules.get('actswap_torch'), '_adapter', None)\n"
    "print(type(adapter).__name__)\n"
)


@pytest.mark.parametrize("flag", ["-u", "-I", "-E", "-S"])
def test_import_torch_starts_the_adapter(flag: str) -> None:
    env, script = environment(), WHO
    if flag == "-S":  # which leaves the way to site-packages to the script
        folders = [path for path in sys.path if path.endswith("site-packages")]
        script = f"import sys\nsys.path += {folders}\n" + script
    run = Run(["-c", script], env, flags=[flag])

    assert run.out == "Adapter\n"


def test_autoload_off_still_starts_it() -> None:
    env = environment()
    env["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"

    assert Run(["-c", WHO], env).out == "Adapter\n"


def test_the_environment_stays_as_it_was() -> None:
    env = environment()
    script = (
        "import os, json\nbefore = dict(os.environ)\nimport torch\n"
        "print(json.dumps([before == dict(os.environ), before['LD_PRELOAD']]))"
    )
    same, preload = Run(["-c", script], env).result()

    assert same
    assert preload == env["LD_PRELOAD"]


def test_torch_without_cuda_work_prints_nothing() -> None:
    script = (
        "import torch\nx = torch.ones(3, requires_grad=True)\n"
        "torch.nn.Linear(3, 3)(x * x).sum().backward()"
    )
    env = environment()
    del env["ACTSWAP_LOG"]
    run = Run(["-c", script], env)

    assert (run.out, run.err) == ("", "")


# --- Graphs


@pytest.fixture(scope="module", params=[FLOOR, "recompute", "off"])
def policy(request: Any) -> Any:
    return request.param


@pytest.fixture(scope="module")
def graphs(policy: str) -> Dict[str, Any]:
    return Run([str(CASES / "graphs.py")], environment(policy=policy)).result()


def test_pages_live_and_die_with_the_graph(graphs: Any, policy: str) -> None:
    pages = graphs["pages_live_and_die_with_the_graph"]

    # A first forward under recompute is on trial, and all that it saves is kept.
    assert (pages["during"] > 0) == (policy in (FLOOR, "recompute"))
    assert (pages["before"], pages["unused"], pages["used"]) == (0, 0, 0)


@pytest.mark.parametrize(
    "name",
    [
        "twice_over_a_retained_graph",
        "gradient_of_a_gradient",
        "views_of_one_storage",
        "complex_conjugates_and_negatives",
    ],
)
def test_gradients_are_the_cpu_s(graphs: Any, name: str) -> None:
    same = graphs[name]

    assert same and same == [True] * len(same)


def test_an_exception_unwinds(graphs: Any) -> None:
    result = graphs["an_exception_in_a_block"]

    assert result["said"] == "the user's own"
    assert (result["left"], result["after"]) == (0, 0)
    assert result["held"][0] >= result["held"][1] > 0
    assert result["same"] == [True] * 6


def test_in_place_changes_raise_pytorch_s_error(graphs: Any) -> None:
    right = [
        text.replace("torch.FloatTensor", "torch.cuda.FloatTensor")
        for text in graphs["changed_on_the_cpu"]
    ]

    assert all("modified by an inplace operation" in text for text in right)
    assert graphs["changed_on_the_device"] == right


def test_a_custom_function_gets_its_parameter_back(graphs: Any) -> None:
    result = graphs["a_custom_function_gets_its_parameter_back"]

    assert result == {"same": True, "gradient": [3.0]}


def test_forward_in_another_thread(graphs: Any, policy: str) -> None:
    result = graphs["another_thread"]

    # Under recompute it is a new model's first step, in which what is tried moves.
    assert (result["pages"] > 0) == (policy != "off")
    assert result["same"] == [True] * 6


def test_copies_hold_nothing_of_ours(graphs: Any) -> None:
    assert graphs["copies_hold_nothing_of_ours"] == {
        "names": True,
        "attributes": [],
        "twin": True,
        "stored": True,
        "actswap": False,
    }


def test_hooks_of_the_user_win(graphs: Any, policy: str) -> None:
    result = graphs["hooks_of_the_user_win"]

    assert result["seen"]
    assert result["pages"] == 0


# --- Loops

ONLY_ON_DEVICE = (
    "autocast",
    "differentiated_twice_after_plain_steps",
    "dropout",
    "only_named_arguments_with_dropout",
)


@lru_cache(maxsize=None)
def loops(policy: str) -> Dict[str, Any]:
    script = str(CASES / "loops.py")
    if policy:
        return Run([script, "cuda"], environment(policy=policy)).result()
    plain = environment()
    del plain["LD_PRELOAD"]
    return Run([script, "cpu"], plain).result()


@pytest.mark.parametrize("policy", ["off", FLOOR, "recompute"])
def test_loops_end_with_the_plain_bits(policy: str) -> None:
    ours, plain = loops(policy), loops("")
    # Other generators, other lists of operators, another order of sums.
    for name in ONLY_ON_DEVICE:
        plain[name] = loops("off")[name]
    raised = [name for name, digest in plain.items() if ": " in str(digest)]

    assert raised == []
    assert {k: v for k, v in ours.items() if v != plain[k]} == {}
    assert ours.keys() == plain.keys()


# --- Failure

BROKEN = """
import json, sys, torch
import actswap_torch
actswap_torch._adapter._places.adopt = lambda root: 1 / 0
model = torch.nn.Sequential(*(torch.nn.Linear(256, 256) for _ in range(2))).cuda()
x = torch.ones(256, 256).cuda()
early = (x * x.requires_grad_()).sum()
for _ in range(2):
    model(x.detach()).sum().backward()
early.backward()
print(json.dumps([
    torch.autograd._engine_run_backward.__module__,
    "saved_tensors" in vars(torch.autograd.function.BackwardCFunction),
    len(torch.nn.modules.module._global_forward_pre_hooks),
    torch._C._autograd._top_saved_tensors_default_hooks(True) is None,
    float(x.grad.sum()) == 2 * 256 * 256,
]))
"""


def test_a_failure_of_ours_switches_us_off() -> None:
    run = Run(["-c", BROKEN], environment(policy=FLOOR))

    assert run.result() == ["torch.autograd.graph", False, 0, True, True]
    assert run.err.count("switched off: ZeroDivisionError") == 1


# --- Function transforms


def test_function_transforms_run_with_us_loaded() -> None:
    script = str(CASES / "transforms.py")
    plain = environment()
    del plain["LD_PRELOAD"]
    right = Run([script, "cpu"], plain).result()
    assert right.pop("hooks are back") is False

    ours = Run([script, "cuda"], environment(policy=FLOOR)).result()

    assert ours.pop("hooks are back") is True
    assert ours == right


LAST = """
import torch
model = torch.nn.Sequential(*[torch.nn.Linear(8, 8) for _ in range(200)]).cuda()
model(torch.ones(4, 8, device="cuda")).sum().backward()
"""


def test_a_script_may_end_with_a_backward() -> None:
    """Its thread still holds our hooks then, when the interpreter ends."""
    for _ in range(3):
        Run(["-c", LAST], environment(sim_compute="shapes", sim_order="early"))
