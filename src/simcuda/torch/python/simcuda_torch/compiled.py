# SPDX-License-Identifier: Apache-2.0
"""Compilers: what cannot compile here is left out, and said.

torch.jit's fuser compiles with NVRTC, which is closed. torch.compile where values count:
inductor makes kernels, and kernels compute nothing on the simulated device. What it would
compile is run by aot_eager instead: the same graphs, forward and backward, as PyTorch's
own operators. What inductor makes constants of its kernels, these copy from the host: a
CUDA graph that is captured meanwhile takes them as constants, too. Tried on 2.15, the
rest also on 2.14.
"""

from __future__ import annotations

import ctypes
import sys
import typing

INDUCTOR = (
    "torch.compile ran aot_eager in place of inductor, whose kernels compute nothing"
)
FUSER = (
    "torch.jit ran without its fuser, which compiles with NVRTC: "
    "on a card fused operators may need less memory"
)


def say_once(text: str, said: typing.Set[str] = set()) -> None:
    if text in said:
        return
    said.add(text)
    sys.stderr.write(f"simcuda: {text}\n")
    process = ctypes.CDLL(None)
    note = getattr(process, "actswap_note", None)
    if note is not None:
        # The report is written when Python's own strings are gone.
        process.strdup.restype = ctypes.c_void_p
        note(ctypes.c_void_p(process.strdup(text.encode())))


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

        say_once(INDUCTOR)
        marked = with_constants(bodies, boxed_nop)
        return aot_eager(module, inputs, fw_compiler=marked, bw_compiler=marked)

    wrapper.__call__ = call


def leave_fuser(torch: typing.Any) -> None:
    """Scripted and traced modules run operator by operator on the device."""
    torch._C._jit_override_can_fuse_on_gpu(False)
    scripted = torch.jit._script.RecursiveScriptModule
    create = scripted.__init__

    def created(self: typing.Any, *args: typing.Any) -> None:
        create(self, *args)
        say_once(FUSER)

    scripted.__init__ = created
