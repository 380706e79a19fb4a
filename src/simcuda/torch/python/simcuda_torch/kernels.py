# SPDX-License-Identifier: Apache-2.0
"""Triton's kernels under mode auto: the device is told which tensors each launch uses.

Nothing computes them, so what they write has no values any more. Of a launch that is not
told, or of which it cannot be said, nothing on any device has. Tried on Triton 3.9.
"""

from __future__ import annotations

import ctypes
import inspect
import sys
import typing

from simcuda_torch import writes


class Access(ctypes.Structure):
    """struct sim_access of simcuda.h."""

    _fields_ = [
        ("address", ctypes.c_void_p),
        ("bytes", ctypes.c_size_t),
        ("write", ctypes.c_bool),
        ("unread", ctypes.c_bool),
        ("gaps", ctypes.c_bool),
        ("rows", ctypes.c_size_t * 4),
    ]


def flat(kinds: typing.Any, arguments: typing.Any) -> typing.Iterator[typing.Any]:
    """The arguments that the compiled kernel takes, each with its kind."""
    for kind, argument in zip(kinds, arguments):
        if isinstance(kind, tuple):
            yield from flat(kind, argument)
        elif kind != "constexpr":
            yield kind, argument


def tensor_of(argument: typing.Any) -> typing.Any:
    """The tensor whose memory a pointer argument is in; None: it cannot be said."""
    torch = sys.modules["torch"]
    while not isinstance(argument, torch.Tensor):
        argument = getattr(argument, "base", None)
        if argument is None:
            return None
    return argument


def read_of(argument: typing.Any) -> typing.Optional[Access]:
    """The view that it was given; None: it cannot be said, or is no device memory."""
    tensor = tensor_of(argument)
    if tensor is None or not tensor.is_cuda or not tensor.numel():
        return None
    last = sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride()))
    size = (last + 1) * tensor.element_size()
    # What it leaves out of that may never have been written.
    return Access(tensor.data_ptr(), size, False, False, True)


def access_to(kernel: str, argument: typing.Any) -> typing.Optional[Access]:
    """All of the storage: a kernel may go beyond the view that it was given."""
    tensor = tensor_of(argument)
    if tensor is None:
        return None
    storage = tensor.untyped_storage()
    start, size = storage.data_ptr(), storage.nbytes()
    if not size and not tensor.numel():
        return Access(start, 0, True, False, False)
    if not start <= tensor.data_ptr() < start + size:
        return None
    if not tensor.is_cuda:
        ctypes.CDLL(None).sim_missed_refuse()
        raise RuntimeError(
            f"simcuda: kernel {kernel} writes to memory of the host, which "
            "ACTSWAP_SIM_COMPUTE=auto does not compute; use values "
            "(actswap rehearse --compute values)"
        )
    return Access(start, size, True, False, False)


class Launcher:
    """In place of Triton's own, which it calls."""

    def __init__(self, real: typing.Any, compiled: typing.Any) -> None:
        self.real = real
        self.kernel = compiled.metadata.name
        self.kinds = list(compiled.src.signature.values())
        self.found = known_uses(compiled)
        parameters = list(inspect.signature(real).parameters.values())
        self.fixed = len(parameters) - 1
        if parameters[-1].kind is not inspect.Parameter.VAR_POSITIONAL:
            self.found = None
        process = ctypes.CDLL(None)
        self.begin, self.end = process.sim_launch_begin, process.sim_launch_end

    def __getattr__(self, name: str) -> typing.Any:
        return getattr(self.real, name)

    def accesses(self, arguments: typing.Any) -> typing.Optional[typing.List[Access]]:
        if self.found is None or len(arguments) != len(self.kinds):
            return None
        taken, read = list(flat(self.kinds, arguments)), []
        if any("tensordesc" in kind for kind, _ in taken):
            written = [one for kind, one in taken if kind[0] == "*" or "desc" in kind]
        elif len(taken) != self.found.taken:
            return None
        else:
            read, written = (
                [taken[i][1] for i in places if taken[i][0][0] == "*"]
                for places in (self.found.read, self.found.written)
            )
        found = [access_to(self.kernel, one) for one in written]
        if None in found:
            return None
        known = [*map(read_of, read), *found]
        return [access for access in known if access is not None]

    def __call__(self, *arguments: typing.Any) -> typing.Any:
        named = self.accesses(arguments[self.fixed :])
        if named is None:
            return self.real(*arguments)
        kernel, array = self.kernel.encode(), (Access * len(named))(*named)
        self.begin(kernel, array, ctypes.c_size_t(len(named)))
        try:
            return self.real(*arguments)
        finally:
            self.end()


def known_uses(compiled: typing.Any) -> typing.Optional[writes.Uses]:
    metadata = compiled.metadata
    # Scratch memory is written as well, and whose it was before is not known.
    if metadata.global_scratch_size or metadata.profile_scratch_size:
        return None
    if sys.modules["triton"].knobs.compilation.override:
        return None
    for name, path in compiled.metadata_group.items():
        if name.endswith(".ttir"):
            return writes.of_kernel(str(path), metadata.name)
    return None


def name_uses(compiler: typing.Any) -> None:
    """For the life of the process: a rehearsal ends with it."""
    kernel = compiler.CompiledKernel
    start = kernel._init_handles

    def start_and_watch(self: typing.Any) -> None:
        start(self)
        if not isinstance(self._run, Launcher):
            self._run = Launcher(self._run, self)

    kernel._init_handles = start_and_watch


class AfterImport:
    """Runs an action on a module once it has been imported."""

    def __init__(self, name: str, action: typing.Callable[[typing.Any], None]) -> None:
        self.name, self.action = name, action
        if name in sys.modules:
            action(sys.modules[name])
        else:
            sys.meta_path.insert(0, typing.cast(typing.Any, self))

    def find_spec(
        self, name: str, path: typing.Any = None, target: typing.Any = None
    ) -> typing.Any:
        if name != self.name:
            return None
        sys.meta_path.remove(typing.cast(typing.Any, self))
        for finder in sys.meta_path:
            spec = finder.find_spec(name, path, target)
            if spec is not None and spec.loader is not None:
                self.follow(spec.loader)
                return spec
        return None

    def follow(self, loader: typing.Any) -> None:
        load = loader.exec_module

        def load_and_act(module: typing.Any) -> None:
            load(module)
            self.action(module)

        loader.exec_module = load_and_act


def watch_triton() -> None:
    AfterImport("triton.compiler.compiler", name_uses)
