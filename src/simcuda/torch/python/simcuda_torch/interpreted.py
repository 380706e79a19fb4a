# SPDX-License-Identifier: Apache-2.0
"""Triton's kernels under mode values, for the checker of races.

Triton's interpreter takes all tensors to the host, runs the kernel there and brings all
of them back. For the checker a launch is what it is on a card: work of the stream, which
nobody waits for, and which reads and writes what the kernel loads and stores. Tried on
Triton 3.9.
"""

from __future__ import annotations

import ctypes
import sys
import typing

from simcuda_torch.kernels import Access, AfterImport


class Effort(ctypes.Structure):
    """struct sim_effort of simcuda.h: the copies have taken their time already."""

    _fields_ = [
        ("kernels", ctypes.c_uint),
        ("flops", ctypes.c_double),
        ("rate", ctypes.c_int),
        ("bytes", ctypes.c_double),
        ("dispatched", ctypes.c_bool),
        ("unknown", ctypes.c_bool),
    ]


class Work(ctypes.Structure):
    """struct sim_work of simcuda.h."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("run", ctypes.c_void_p),
        ("destroy", ctypes.c_void_p),
        ("arg", ctypes.c_void_p),
        ("assumes", ctypes.c_int),
        ("effort", ctypes.POINTER(Effort)),
    ]


class Launch:
    """Whose tensors are on the host, and which of their bytes the kernel used."""

    def __init__(self) -> None:
        # Of the host's start: the device's, and the size.
        self.storages: typing.Dict[int, typing.Tuple[int, int]] = {}
        # Of the host's start and whether it is written: from, to.
        self.used: typing.Dict[typing.Tuple[int, bool], typing.Tuple[int, int]] = {}

    def pair(self, device: typing.Any, host: typing.Any) -> None:
        if isinstance(device, tuple):
            for one, other in zip(device, host):
                self.pair(one, other)
            return
        while not hasattr(device, "untyped_storage"):
            if not hasattr(device, "base"):
                return
            device, host = device.base, host.base
        if device.is_cuda:
            storage, other = device.untyped_storage(), host.untyped_storage()
            self.storages[other.data_ptr()] = (storage.data_ptr(), storage.nbytes())

    def use(self, pointers: typing.Any, mask: typing.Any, size: int, write: bool) -> None:
        taken = pointers[mask] if mask is not None else pointers
        if not taken.size:
            return
        for start, (_, length) in self.storages.items():
            mine = taken[(taken >= start) & (taken < start + length)]
            if mine.size:
                low, high = int(mine.min()), int(mine.max()) + size
                was = self.used.get((start, write), (low, high))
                self.used[start, write] = (min(low, was[0]), max(high, was[1]))

    def accesses(self) -> typing.List[Access]:
        return [
            Access(self.storages[start][0] + low - start, high - low, write, write, True)
            for (start, write), (low, high) in self.used.items()
        ]


class Watched:
    """In place of the interpreter's own loads and stores, which it calls."""

    def __init__(self, real: typing.Any) -> None:
        self.real = real
        self.launch: typing.Optional[Launch] = None

    def __getattr__(self, name: str) -> typing.Any:
        return getattr(self.real, name)

    def use(self, pointers: typing.Any, mask: typing.Any, size: int, *ways: bool) -> None:
        for write in ways if self.launch else ():
            typing.cast(Launch, self.launch).use(pointers, mask, size, write)

    def load(
        self, pointers: typing.Any, mask: typing.Any, *rest: typing.Any
    ) -> typing.Any:
        loaded = self.real.load(pointers, mask, *rest)
        self.use(pointers, mask, loaded.itemsize, False)
        return loaded

    def store(
        self, pointers: typing.Any, value: typing.Any, mask: typing.Any
    ) -> typing.Any:
        self.use(pointers, mask, value.itemsize, True)
        return self.real.store(pointers, value, mask)

    def atomic_cas(self, pointers: typing.Any, *rest: typing.Any) -> typing.Any:
        self.use(pointers, None, rest[0].itemsize, False, True)
        return self.real.atomic_cas(pointers, *rest)

    def atomic_rmw(
        self,
        way: typing.Any,
        pointers: typing.Any,
        value: typing.Any,
        mask: typing.Any,
        *rest: typing.Any,
    ) -> typing.Any:
        self.use(pointers, mask, value.itemsize, False, True)
        return self.real.atomic_rmw(way, pointers, value, mask, *rest)


names: typing.Dict[str, ctypes.Array[ctypes.c_char]] = {}  # their addresses are kept


def submit(process: ctypes.CDLL, kernel: str, launch: Launch) -> None:
    taken = launch.accesses()
    name = names.setdefault(kernel, ctypes.create_string_buffer(kernel.encode()))
    work = Work(ctypes.addressof(name), None, None, None, 0, ctypes.pointer(Effort()))
    stream = sys.modules["torch"].cuda.current_stream().cuda_stream
    process.sim_submit(
        ctypes.c_void_p(stream),
        ctypes.byref(work),
        (Access * len(taken))(*taken),
        ctypes.c_size_t(len(taken)),
    )


def replace_launches(interpreter: typing.Any) -> None:
    """For the life of the process: a rehearsal ends with it."""
    process = ctypes.CDLL(None)
    watched = interpreter._interpreter = Watched(interpreter._interpreter)
    executor = interpreter.GridExecutor
    take_to_host, call = executor._init_args_hst, executor.__call__

    def take_and_note(self: typing.Any, args: typing.Any, more: typing.Any) -> typing.Any:
        hosts, more_hosts = take_to_host(self, args, more)
        if watched.launch:
            watched.launch.pair(tuple(args), tuple(hosts))
            watched.launch.pair(tuple(more.values()), tuple(more_hosts.values()))
        return hosts, more_hosts

    def call_and_submit(self: typing.Any, *args: typing.Any, **more: typing.Any) -> None:
        launch = watched.launch = Launch()
        process.sim_check_pause(1)
        try:
            call(self, *args, **more)
        finally:
            watched.launch = None
            process.sim_check_pause(-1)
            submit(process, self.fn.__name__, launch)

    executor._init_args_hst = take_and_note
    executor.__call__ = call_and_submit


def watch() -> None:
    AfterImport("triton.runtime.interpreter", replace_launches)
