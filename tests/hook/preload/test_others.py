# SPDX-License-Identifier: Apache-2.0
"""A process without CUDA is left as it is: output, status, opened files, environment."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from place import Place

COMMANDS = {
    "sh": ["sh", "-c", "echo out; echo err >&2; x=$(echo in); echo $x; exit 3"],
    "sh that starts others": ["sh", "-c", "ls / | cat | sort | head -3"],
    "ls": ["ls", "-l", "/usr"],
    "ls of nothing": ["ls", "/nowhere"],
    "env": ["env"],
    "gcc": ["gcc", "--version"],
    "gcc that compiles": ["gcc", "-x", "c", "-c", "/dev/null", "-o", "/dev/null"],
    "python": [
        sys.executable,
        "-c",
        "import json, sys; print(json.dumps([1])); sys.exit(4)",
    ],
    "python -I": [sys.executable, "-I", "-c", "import sys; print(sys.path, sys.flags)"],
    "python that forks": [
        sys.executable,
        "-c",
        "import multiprocessing as m\n"
        "with m.get_context('fork').Pool(2) as p: print(p.map(abs, [-1, 2]))",
    ],
    "ldconfig": ["/sbin/ldconfig", "-p"],
    "true": ["true"],
    "false": ["false"],
}


def without_preload(text: str) -> str:
    return "".join(
        line for line in text.splitlines(True) if not line.startswith("LD_PRELOAD=")
    )


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("bind_now", ["", "1"])
def test_same_output_and_status(place: Place, name: str, bind_now: str) -> None:
    command = COMMANDS[name]
    more = {"LD_BIND_NOW": bind_now} if bind_now else {}
    bare = place.run(*command, **more)
    ours = place.run(*command, preload=str(place.library), **more)
    assert ours.returncode == bare.returncode
    assert without_preload(ours.stdout) == bare.stdout
    assert ours.stderr == bare.stderr
    assert place.files() == []


def test_a_static_program_runs_as_ever(place: Place) -> None:
    result = place.run(place.program("static-hello"), preload=str(place.library))
    assert (result.stdout, result.stderr, result.returncode) == ("hello\n", "", 7)


def calls_of(place: Place, preload: Path, command: list[str]) -> list[str]:
    """The system calls from the loader's last word on, without addresses."""
    trace = place.work / "trace"
    result = place.run(
        "strace", "-f", "-qq", "-e", "trace=%file,%process,write,socket,connect,clone3",
        "-o", str(trace), "env", f"LD_PRELOAD={preload}", *command
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    lines = trace.read_text().splitlines()
    trace.unlink()
    # The exec of the command itself, and what follows; the library's own file is opened
    # by the loader, under either name.
    start = max(n for n, line in enumerate(lines) if "execve(" in line and " = 0" in line)
    calls = []
    for line in lines[start + 1 :]:
        line = re.sub(r"^\d+ +", "", line).replace(str(preload), "PRELOAD")
        calls.append(re.sub(r"0x[0-9a-f]+|\b\d{3,}\b", "N", line))
    return calls


@pytest.fixture
def empty_library(tmp_path: Path) -> Path:
    path = tmp_path / "empty.so"
    subprocess.run(
        ["gcc", "-shared", "-x", "c", "/dev/null", "-o", str(path)], check=True
    )
    return path


@pytest.mark.skipif(not shutil.which("strace"), reason="no strace")
@pytest.mark.parametrize(
    "command",
    [["/bin/true"], ["/bin/ls", "/"], [sys.executable, "-I", "-S", "-c", "print(1)"]],
    ids=["true", "ls", "python"],
)
def test_nothing_is_opened_started_or_written(
    place: Place, empty_library: Path, command: list[str]
) -> None:
    """Compared with a library that has nothing in it, the kernel sees no difference."""
    try:
        bare = calls_of(place, empty_library, command)
    except AssertionError as error:
        if "ptrace" in str(error):
            pytest.skip("no ptrace here")
        raise
    assert any("PRELOAD" in call for call in bare), "the loader opens it"
    ours = calls_of(place, place.library, command)
    assert ours == bare


def test_preload_stays_in_the_environment_of_children(place: Place) -> None:
    result = place.run("sh", "-c", "sh -c 'echo $LD_PRELOAD'", preload=str(place.library))
    assert result.stdout == f"{place.library}\n"


def test_many_at_once_leave_nothing_behind(place: Place) -> None:
    """No lock file, no shared memory, whoever is killed."""
    environment = place.environment | {"LD_PRELOAD": str(place.library)}
    started = [
        subprocess.Popen(
            ["sleep", "0" if n % 10 else "60"], cwd=place.work, env=environment
        )
        for n in range(200)
    ]
    for n, process in enumerate(started):
        if n % 10 == 0:
            process.kill()
    statuses = [process.wait(60) for process in started]
    assert statuses == [0 if n % 10 else -9 for n in range(200)]
    assert place.files() == []
    assert [name for name in os.listdir("/dev/shm") if "actswap" in name] == []


def test_many_that_use_the_device_leave_a_report_each(place: Place) -> None:
    environment = place.environment | {
        "LD_PRELOAD": str(place.library),
        "ACTSWAP_SIM_GPU": "h100-80gb",
        "ACTSWAP_LOG": "quiet",
    }
    started = [
        subprocess.Popen(
            [place.program("snippet"), "plain"],
            cwd=place.work,
            env=environment,
            stdout=subprocess.DEVNULL,
        )
        for _ in range(200)
    ]
    assert [process.wait(60) for process in started] == [0] * 200
    assert len(place.reports()) == 200
    assert all(report["peak"]["bytes"] == 7 << 20 for report in place.reports())
    files = {file for file in place.work.rglob("*") if file.is_file()}
    assert files == set(place.report_files())
