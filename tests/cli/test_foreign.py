# SPDX-License-Identifier: Apache-2.0
"""A library of NVIDIA's that slips into a rehearsed process ends it; empty ones stand for
them here."""

import os
import subprocess
from pathlib import Path

import pytest
from command import Command

EXIT_CANNOT = 125
EXIT_FAILED = 70
SCRIPT = """\
import ctypes, sys
for name in sys.argv[1:]:
    ctypes.CDLL(name)
import torch
print("trained", torch.ones(2, device="cuda").device)
"""


LATER = """\
import ctypes, sys, torch
x = torch.ones(2, device="cuda")
torch.cuda.synchronize()
for name in sys.argv[1:]:
    ctypes.CDLL(name)
print("opened", flush=True)
print("trained", (x + x).sum())
"""


def library(folder: Path, name: str, soname: str = "") -> Path:
    """An empty shared library."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    soname = soname or name
    command = ["cc", "-shared", "-x", "c", os.devnull, "-o", str(path)]
    subprocess.run([*command, f"-Wl,-soname,{soname}"], check=True)
    return path


def assert_refused(
    result: subprocess.CompletedProcess[str],
    path: Path,
    status: int = EXIT_CANNOT,
    out: str = "",
) -> None:
    assert (result.returncode, result.stdout) == (status, out)
    (line,) = (x for x in result.stderr.splitlines() if x.startswith("simcuda: error: "))
    assert line.startswith(f"simcuda: error: NVIDIA's {path} is in this process ")
    assert "start it with actswap rehearse and without LD_LIBRARY_PATH" in line


def rehearse(
    actswap: Command, python: str, *arguments: str, text: str = SCRIPT, **more: str
) -> subprocess.CompletedProcess[str]:
    script = actswap.script("train.py", text)
    return actswap("rehearse", "--", python, script, *arguments, **more)


@pytest.mark.parametrize(
    "name, soname",
    [
        ("libcublas.so.12", ""),
        ("libnvJitLink.so.13", ""),
        ("renamed.so", "libnccl.so.2"),
    ],
)
def test_library_that_the_script_opens_is_refused(
    actswap: Command, python: str, tmp_path: Path, name: str, soname: str
) -> None:
    path = library(tmp_path / "foreign", name, soname)

    assert_refused(rehearse(actswap, python, str(path)), path)


@pytest.mark.parametrize(
    "name, soname",
    [
        ("libcublas.so.12", ""),
        ("renamed.so", "libcudart.so.12"),
        ("libcudart.3eda8113.so.12", "libcudart.so.12"),
    ],
)
def test_library_that_is_opened_behind_pytorch_ends_the_run(
    actswap: Command, python: str, tmp_path: Path, name: str, soname: str
) -> None:
    path = library(tmp_path / "foreign", name, soname)

    result = rehearse(actswap, python, str(path), text=LATER)

    assert_refused(result, path, EXIT_FAILED, "opened\n")


# The second as auditwheel names a package's own copy of the runtime that ours stands for.
@pytest.mark.parametrize(
    "name, soname",
    [("libcudalike.so.1", ""), ("libcudart.3eda8113.so.13", "libcudart.so.13")],
)
def test_other_libraries_may_be_opened_behind_pytorch(
    actswap: Command, python: str, tmp_path: Path, name: str, soname: str
) -> None:
    path = library(tmp_path / "foreign", name, soname)

    result = rehearse(actswap, python, str(path), text=LATER)

    assert (result.returncode, result.stdout[:14]) == (0, "opened\ntrained")


def test_library_found_by_the_library_path_is_refused(
    actswap: Command, python: str, tmp_path: Path
) -> None:
    path = library(tmp_path / "foreign", "libcusolver.so.11")

    result = rehearse(actswap, python, path.name, LD_LIBRARY_PATH=str(path.parent))

    assert_refused(result, path)


def test_library_that_is_preloaded_is_refused(
    actswap: Command, python: str, tmp_path: Path
) -> None:
    path = library(tmp_path / "foreign", "libcufft.so.11")

    assert_refused(rehearse(actswap, python, LD_PRELOAD=str(path)), path)


def test_library_path_does_not_reach_what_is_ours(
    actswap: Command, python: str, tmp_path: Path
) -> None:
    for name in ("libcudart.so.13", "libcublas.so.13", "libcuda.so.1"):
        folder = library(tmp_path / "foreign", name).parent

    result = rehearse(actswap, python, LD_LIBRARY_PATH=str(folder))

    assert (result.returncode, result.stdout) == (0, "trained cuda:0\n")


def test_other_libraries_are_let_in(
    actswap: Command, python: str, tmp_path: Path
) -> None:
    path = library(tmp_path / "foreign", "libcudalike.so.1")

    result = rehearse(actswap, python, str(path), LD_PRELOAD=str(path))

    assert (result.returncode, result.stdout) == (0, "trained cuda:0\n")
