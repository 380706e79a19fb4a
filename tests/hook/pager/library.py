# SPDX-License-Identifier: Apache-2.0
"""The C interface for tests that are Python: a framework without tensors.

The library and the simulated device are preloaded into this process.
"""

import ctypes
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

FORWARD, BACKWARD, BACKWARD_END, OPTIMIZER, STEP = range(5)

_Allocate = ctypes.CFUNCTYPE(ctypes.c_void_p)
_Release = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)


class _Verbs(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("allocate", _Allocate),
        ("release", _Release),
        ("framework", ctypes.c_char_p),
    ]


class _Saved(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("device", ctypes.c_int),
        ("address", ctypes.c_void_p),
        ("bytes", ctypes.c_size_t),
        ("used_bytes", ctypes.c_size_t),
        ("version", ctypes.c_uint64),
        ("stream", ctypes.c_void_p),
        ("ref", ctypes.c_void_p),
    ]


_library = ctypes.CDLL(None)
_verbs = _Verbs(ctypes.sizeof(_Verbs), _Allocate(lambda: None), _Release(lambda *_: None))


def attach() -> None:
    assert _library.actswap_attach(ctypes.byref(_verbs), None) == 0


def mark(moment: int) -> None:
    assert _library.actswap_mark(moment) == 0


def device_memory(size: int) -> int:
    address = ctypes.c_void_p()
    assert _library.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(size)) == 0
    assert address.value
    return address.value


def allocated(address: int, size: int) -> None:
    reserved = ctypes.c_size_t(size)
    _library.actswap_allocated(
        0, ctypes.c_void_p(address), ctypes.c_size_t(size), reserved, None
    )


def save(address: int, size: int) -> int:
    """0: it has a page. Else the reason why not."""
    what = _Saved(ctypes.sizeof(_Saved), 0, address, size, size, 0, None, 1)
    page = ctypes.c_void_p()
    reason: int = _library.actswap_save(ctypes.byref(what), ctypes.byref(page))
    assert (reason == 0) == bool(page.value)
    return reason


def report_of(script: str, argument: str, **settings: str) -> Any:
    """The report of a process of its own, which runs the script with that argument."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "report.json"
        environment = os.environ | {
            f"ACTSWAP_{name.upper()}": value for name, value in settings.items()
        }
        environment |= {"ACTSWAP_REPORT": str(file), "ACTSWAP_LOG": "error"}
        command = [sys.executable, script, argument]
        subprocess.run(command, env=environment, check=True, timeout=60)
        return json.loads(file.read_text())
