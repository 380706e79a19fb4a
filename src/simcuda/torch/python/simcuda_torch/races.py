# SPDX-License-Identifier: Apache-2.0
"""Tells the checker of races where Python reads a tensor on the host by itself."""

from __future__ import annotations

import ctypes
import functools
import sys
import typing

# They read the tensor's memory without calling an operator. Tried: torch 2.15.
READERS = ("numpy", "tolist", "__array__")


def extent_bytes(tensor: typing.Any) -> int:
    """From the first element to the last."""
    if tensor.layout is not sys.modules["torch"].strided or not tensor.numel():
        return 0
    last = sum((n - 1) * step for n, step in zip(tensor.shape, tensor.stride()))
    return int((last + 1) * tensor.element_size())


def watch(torch: typing.Any, runtime: ctypes.CDLL) -> None:
    """Notes a read wherever a CPU tensor is handed over or listed."""
    note = runtime.sim_check_host
    note.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_bool, ctypes.c_char_p]
    note.restype = None

    plain_types = (torch.Tensor, torch.nn.Parameter)

    def wrap(reader: str) -> None:
        plain = getattr(torch.Tensor, reader)
        name = ctypes.create_string_buffer(f"Tensor.{reader}".encode())
        names.append(name)

        @functools.wraps(plain)
        def noted(
            self: typing.Any, *args: typing.Any, **kwargs: typing.Any
        ) -> typing.Any:
            if type(self) in plain_types and self.device.type == "cpu":
                note(self.data_ptr(), extent_bytes(self), False, name)
            return plain(self, *args, **kwargs)

        setattr(torch.Tensor, reader, noted)

    for reader in READERS:
        wrap(reader)


names: list[ctypes.Array[ctypes.c_char]] = []  # the checker keeps their addresses
