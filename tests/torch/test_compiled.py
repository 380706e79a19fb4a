# SPDX-License-Identifier: Apache-2.0
"""torch.compile and Triton, with and without values."""

import json
from pathlib import Path
from typing import Any, Tuple

import pytest

from stack import Run, environment

CASE = Path(__file__).parent / "cases" / "compiled.py"
NOTE = "torch.compile ran aot_eager in place of inductor"


def run(**settings: str) -> Run:
    # In this process: workers would each import PyTorch for a few kernels.
    env = dict(environment(**settings), TORCHINDUCTOR_COMPILE_THREADS="1")
    return Run([str(CASE)], env)


@pytest.fixture(scope="module")
def values(tmp_path_factory: pytest.TempPathFactory) -> Tuple[Any, str, Any]:
    report = tmp_path_factory.mktemp("compiled") / "report.json"
    ran = run(sim_order="late", report=str(report))
    return ran.result(), ran.err, json.loads(report.read_text())


@pytest.fixture(scope="module")
def shapes() -> Any:
    return run(sim_compute="shapes").result()


TRACED = """
import torch
layer = torch.compile(torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.GELU()).cuda())
optimizer = torch.optim.AdamW(layer.parameters())
for step in range(2):
    layer(torch.ones(4, 8, device="cuda")).square().mean().backward()
    optimizer.step()
"""


def test_nothing_of_ours_asks_where_a_tracers_tensor_lies() -> None:
    """It has no memory, and PyTorch warns of whoever asks."""
    env = dict(environment(sim_compute="auto"), TORCHINDUCTOR_COMPILE_THREADS="1")
    err = Run(["-c", TRACED], env).err

    assert "FakeTensor" not in err


@pytest.mark.parametrize("backend", ["aot_eager", "inductor", "reduce_overhead"])
def test_compiled_steps_are_the_eager_ones(values: Any, backend: str) -> None:
    result, _, _ = values

    assert result[backend] == [True] * 27


def test_inductor_is_replaced_where_values_count_and_said_once(values: Any) -> None:
    result, err, report = values

    assert result["kernels"] == 0
    assert err.count(NOTE) == 1
    assert [n["count"] for n in report["notes"] if n["what"].startswith(NOTE)] == [1]


def test_flex_attention_is_attention(values: Any) -> None:
    result, _, _ = values

    # Another order of sums: rounding of fp32 on gradients of about 1.
    assert all(difference < 1e-5 for difference in result["flex"])


def test_what_inductor_compiles_can_be_captured(values: Any) -> None:
    result, _, _ = values

    assert result["flex_in_a_graph"] == [True] * 3
    assert result["number_in_a_graph"] == [0.5, 0.5, 0.5, 1, 2]
    assert "during CUDA graph capture" in result["copied_into_a_graph"]


def test_a_triton_kernel_computes_in_stream_order(values: Any) -> None:
    result, _, _ = values

    assert result["kernel_of_the_user"] is True


def test_inductor_compiles_where_nothing_is_computed(shapes: Any) -> None:
    assert shapes["kernels"] > 0
    for backend in ("aot_eager", "inductor", "reduce_overhead"):
        assert len(shapes[backend]) == 27, shapes[backend]
    assert shapes["flex"] == [[1, 2, 128, 16]] * 3
    assert shapes["kernel_of_the_user"] in (True, False), shapes["kernel_of_the_user"]


# What cannot be compiled as a whole is compiled frame by frame.
BROKEN = """
import json, sys, torch
from torch import nn
from torch._C._dynamo.eval_frame import _debug_get_cache_entry_list as compiled

way = sys.argv[1]

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(16, 16)

    def forward(self, x):
        for _ in range(2):  # a loop is left to Python as a whole
            if way == "opaque":
                torch._dynamo.graph_break()
            x = x + torch.tanh(self.linear(x))
        return x

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Block() for _ in range(4))

    def forward(self, x):
        for layer in self.layers:
            if way in ("broken", "opaque"):
                torch._dynamo.graph_break()
            x = layer(x)
        return x

torch.manual_seed(0)
model = Net().cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.01)
step = torch.compile(model, backend="aot_eager", fullgraph=way == "whole")
losses = []
for _ in range(3):
    loss = step(torch.ones(2, 16, device="cuda")).square().sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    losses.append(loss.item().hex())
frames = sys.modules.get("actswap_torch.frames")
ours = [code.co_qualname for code in frames.own_codes() if compiled(code)]
print(json.dumps([losses, ours, bool(compiled(Block.forward.__code__))]))
"""


@pytest.mark.parametrize("policy", ["off", "offload:min=1KiB", "recompute"])
@pytest.mark.parametrize("way", ["broken", "opaque", "whole"])
def test_no_frame_of_ours_is_compiled(way: str, policy: str) -> None:
    losses, ours, theirs = Run(["-c", BROKEN, way], environment(policy=policy)).result()
    plain, _, _ = Run(["-c", BROKEN, "eager"], environment()).result()

    assert ours == []
    assert theirs == (way != "whole")
    assert losses == plain
