# SPDX-License-Identifier: Apache-2.0
"""Loads the operator bodies of the simulated device once PyTorch is imported.

The simulated runtime puts this package on sys.path inside `import torch`; PyTorch calls
activate() when the import ends. Without bodies the device would compute nothing, so
every failure here ends the process.
"""

from __future__ import annotations

import ctypes
import os
import pathlib
import sys
import typing

from simcuda_torch import compiled, interpreted, kernels, races

EXIT_CANNOT = 125


def fail(message: str) -> typing.NoReturn:
    sys.stderr.write(f"simcuda: error: {message}\n")
    sys.stderr.flush()
    os._exit(EXIT_CANNOT)


def bodies_for(version: str, folder: pathlib.Path) -> pathlib.Path:
    """The library that was built for this PyTorch."""
    path = folder / f"simtorch-{version}.so"
    if not path.exists():
        built = sorted(p.stem.split("-", 1)[1] for p in folder.glob("simtorch-*.so"))
        fail(
            f"there are no operator bodies for PyTorch {version}; "
            f"this actswap has them for {', '.join(built) or 'none'}: "
            "build it with that PyTorch, or install one of these"
        )
    return path


def check_guard(runtime: ctypes.CDLL) -> None:
    """Ends the process when a library of NVIDIA's is mapped, or as soon as one is."""
    message = ctypes.create_string_buffer(1024)
    if runtime.sim_guard(message, ctypes.c_size_t(len(message))):
        fail(message.value.decode(errors="replace"))
    runtime.sim_guard_stay()


def watch_packages(bodies: ctypes.CDLL) -> None:
    """Takes over operators of other packages before Python first looks them up."""
    namespace = sys.modules["torch._ops"]._OpNamespace  # tried: torch 2.15
    look_up = namespace.__getattr__

    def adopt_then_look_up(self: typing.Any, name: str) -> typing.Any:
        bodies.simtorch_adopt()
        return look_up(self, name)

    namespace.__getattr__ = adopt_then_look_up


def activate() -> None:
    """Replaces the CUDA kernels of PyTorch's operators. Called once, by PyTorch."""
    torch = sys.modules["torch"]
    version = torch.__version__.split("+")[0]
    if torch.version.cuda is None:
        return
    folder = pathlib.Path(__file__).resolve().parents[2]
    try:
        bodies = ctypes.CDLL(str(bodies_for(version, folder)))
    except OSError as error:
        fail(f"the operator bodies cannot be loaded: {error}")
    bodies.simtorch_error.restype = ctypes.c_char_p
    if bodies.simtorch_activate() < 0:
        fail(f"the operator bodies cannot start: {bodies.simtorch_error().decode()}")
    watch_packages(bodies)
    runtime = ctypes.CDLL(None)
    runtime.sim_code_is(torch._C._cuda_getArchFlags().encode())
    check_guard(runtime)
    if os.environ.get("ACTSWAP_SIM_CHECK", "off") not in ("", "off"):
        races.watch(torch, runtime)
        interpreted.watch()
    compiled.leave_fuser(torch)
    compute = os.environ.get("ACTSWAP_SIM_COMPUTE", "auto")
    if compute == "values":
        compiled.replace_inductor(torch, bodies)
    elif compute == "auto":
        kernels.watch_triton()
