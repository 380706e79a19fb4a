# SPDX-License-Identifier: Apache-2.0
"""How a rehearsal ends: the program's exit code, and one line when there is no report."""

import os
import signal
import subprocess
from pathlib import Path

import pytest
from command import Command, errors

USES_CUDA = """
import torch
torch.zeros(4, device="cuda")
"""


@pytest.fixture
def bare_python(tmp_path: Path, python: str) -> str:
    """A virtual environment with no package at all."""
    folder = tmp_path / "bare"
    subprocess.run([python, "-m", "venv", "--without-pip", str(folder)], check=True)
    return str(folder / "bin" / "python")


@pytest.fixture
def cpu_torch(tmp_path: Path) -> str:
    """Not PyTorch: a package that says what a PyTorch built without CUDA says."""
    package = tmp_path / "cpu-only" / "torch"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("from torch import version\n")
    (package / "version.py").write_text("__version__ = '2.15.0+cpu'\ncuda = None\n")
    return str(package.parent)


def no_folder_is_left(actswap: Command) -> bool:
    return not list(actswap.folder.glob("actswap-*"))


def test_script_that_never_uses_cuda(actswap: Command, python: str) -> None:
    script = actswap.script("train.py", "import torch\nprint(torch.ones(2).sum())\n")

    result = actswap("rehearse", "--", python, script)

    assert result.stdout == "tensor(2.)\n"
    assert errors(result) == [
        "actswap: error: train.py never used CUDA: nothing was moved to the device "
        '(model.to("cuda")), so there is nothing to report'
    ]
    assert result.returncode == 1
    assert no_folder_is_left(actswap)


def test_pytorch_missing(actswap: Command, bare_python: str) -> None:
    script = actswap.script("train.py", "import torch\n")

    result = actswap("rehearse", "--", bare_python, script)

    assert "No module named 'torch'" in result.stderr
    assert errors(result) == [
        f"actswap: error: train.py never used CUDA: PyTorch is not installed for "
        f"{bare_python}; {bare_python} -m pip install torch"
    ]
    assert result.returncode == 1
    assert no_folder_is_left(actswap)


def test_pytorch_missing_for_a_program_with_a_shebang(
    actswap: Command, bare_python: str
) -> None:
    script = actswap.script("train", f"#!{bare_python}\nimport torch\n")
    (actswap.folder / script).chmod(0o755)

    result = actswap("rehearse", "./train")

    assert errors(result) == [
        f"actswap: error: train never used CUDA: PyTorch is not installed for "
        f"{bare_python}; {bare_python} -m pip install torch"
    ]
    assert result.returncode == 1


def test_pytorch_without_cuda(actswap: Command, python: str, cpu_torch: str) -> None:
    script = actswap.script("train.py", "import torch\n")

    result = actswap("rehearse", "--", python, script, PYTHONPATH=cpu_torch)

    assert errors(result) == [
        f"actswap: error: train.py never used CUDA: PyTorch 2.15.0+cpu of {python} has "
        f"none; {python} -m pip install --force-reinstall torch"
    ]
    assert result.returncode == 1


def test_script_that_raises_before_cuda(actswap: Command, python: str) -> None:
    script = actswap.script("train.py", "raise RuntimeError('no data')\n")

    result = actswap("rehearse", "--", python, script)

    assert "RuntimeError: no data" in result.stderr
    assert errors(result) == [
        "actswap: error: train.py ended with status 1 before it used CUDA; "
        "its own message is above"
    ]
    assert result.returncode == 1
    assert no_folder_is_left(actswap)


def test_script_that_raises_after_cuda_keeps_its_report(
    actswap: Command, python: str
) -> None:
    script = actswap.script("train.py", USES_CUDA + "raise RuntimeError('diverged')\n")

    result = actswap("rehearse", "-o", "seen", "--", python, script)

    assert "RuntimeError: diverged" in result.stderr
    assert (
        "actswap: error: train.py ended with status 1; its own message is above, "
        "what was seen until then is in seen/rank0.json" in errors(result)
    )
    assert result.returncode == 1
    assert (actswap.folder / "seen" / "rank0.json").exists()


def test_exit_code_is_the_programs(actswap: Command) -> None:
    result = actswap("rehearse", "--", "sh", "-c", "exit 41")

    assert result.returncode == 41


def test_death_by_signal_is_the_programs(actswap: Command) -> None:
    result = actswap("rehearse", "--", "sh", "-c", "kill -TERM $$")

    assert result.returncode == -signal.SIGTERM
    assert errors(result) == [
        "actswap: error: sh ended with signal 15 (Terminated) before it used CUDA; "
        "its own message is above"
    ]


WAITS_FOR_A_SIGNAL = """
import signal, sys
def got(number, frame):
    print("got", signal.Signals(number).name)
    sys.exit(9)
for name in ("SIGTERM", "SIGINT", "SIGUSR1"):
    signal.signal(getattr(signal, name), got)
signal.alarm(60)
print("ready", flush=True)
while True:
    signal.pause()
"""


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGUSR1"])
def test_signals_sent_to_us_reach_the_program(
    actswap: Command, python: str, name: str
) -> None:
    with subprocess.Popen(
        [actswap.command, "rehearse", "--", python, "-c", WAITS_FOR_A_SIGNAL],
        cwd=actswap.folder,
        env=actswap.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        os.kill(process.pid, getattr(signal, name))
        rest = process.stdout.read()

    assert rest == f"got {name}\n"
    assert process.returncode == 9
