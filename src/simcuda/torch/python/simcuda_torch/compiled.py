# SPDX-License-Identifier: Apache-2.0
"""torch.compile where values count.

Inductor makes kernels, and kernels compute nothing on the simulated device. What it would
compile is run by aot_eager instead: the same graphs, forward and backward, as PyTorch's
own operators. What inductor makes constants of its kernels, these copy from the host: a
CUDA graph that is captured meanwhile takes them as constants, too. Tried on 2.15, the
rest also on 2.14.
"""

from __future__ import annotations

import ctypes
import sys
import typing

NOTE = "torch.compile ran aot_eager in place of inductor, whose kernels compute nothing"


def say_once(said: typing.List[bool] = []) -> None:
    if said:
        return
    said.append(True)
    sys.stderr.write(f"simcuda: {NOTE}\n")
    process = ctypes.CDLL(None)
    note = getattr(process, "actswap_note", None)
    if note is not None:
        # The report is written when Python's own strings are gone.
        process.strdup.restype = ctypes.c_void_p
        note(ctypes.c_void_p(process.strdup(NOTE.encode())))


def is_on_device(torch: typing.Any, value: typing.Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(is_on_device(torch, item) for item in value)
    return isinstance(value, torch.Tensor) and value.is_cuda


def uses_device(torch: typing.Any, module: typing.Any, inputs: typing.Any) -> bool:
    values = [node.meta.get("example_value") for node in module.graph.nodes]
    return is_on_device(torch, [*inputs, *values])


def with_constants(bodies: ctypes.CDLL, compiler: typing.Any) -> typing.Any:
    """Of what the compiler makes, each run is marked."""

    def compile(module: typing.Any, inputs: typing.Any) -> typing.Any:
        made = compiler(module, inputs)

        def run(arguments: typing.Any) -> typing.Any:
            bodies.simtorch_constants(1)
            try:
                return made(arguments)
            finally:
                bodies.simtorch_constants(-1)

        setattr(run, "_boxed_call", True)
        return run

    return compile


def replace_inductor(torch: typing.Any, bodies: ctypes.CDLL) -> None:
    """For the life of the process: a rehearsal ends with it."""
    wrapper = torch._TorchCompileInductorWrapper
    inductor = wrapper.__call__

    def call(
        self: typing.Any, module: typing.Any, inputs: typing.Any, **rest: typing.Any
    ) -> typing.Any:
        if not uses_device(torch, module, inputs):
            return inductor(self, module, inputs, **rest)
        from torch._dynamo.backends.debugging import aot_eager, boxed_nop

        say_once()
        marked = with_constants(bodies, boxed_nop)
        return aot_eager(module, inputs, fw_compiler=marked, bw_compiler=marked)

    wrapper.__call__ = call
