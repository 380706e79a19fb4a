# SPDX-License-Identifier: Apache-2.0
"""A report is whole or not there: kills, full disks, limits, and two runs at once.

KILLS=100 kills so often; the default is a few, as each is a run.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import resource
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Iterator

import pytest
from place import Place, private

KILLS = int(os.environ.get("KILLS", "8"))

# Takes memory and ends steps, one after the other; each may rewrite the report.
STEPS = """
import ctypes, sys
ours = ctypes.CDLL(None)
p = ctypes.c_void_p()
print("ready", flush=True)
for step in range(int(sys.argv[1])):
    assert ours.cudaMalloc(ctypes.byref(p), 4096) == 0
    ours.actswap_mark(4)
    print(step, flush=True)
"""


def start(place: Place, code: str, *arguments: str, **more: Any) -> Any:
    environment = place.environment | {
        "LD_PRELOAD": f"{place.library} {place.runtime}",
        "ACTSWAP_SIM_GPU": "h100-80gb",
        "ACTSWAP_RUN_ID": "r1",
    }
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        cwd=place.work,
        env=environment | more.pop("environment", {}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **more,
    )


def test_a_kill_leaves_a_whole_report(place: Place) -> None:
    """Killed while the first report is made, or after some step."""
    chance = random.Random(4711)
    for n in range(KILLS):
        with start(place, STEPS, "100000") as process:
            for _ in range(chance.choice([1, 1, 2, 2, 3, 9])):
                assert process.stdout.readline()
            process.kill()

        assert process.wait() == -9
        for file in place.report_files():
            report = json.loads(file.read_text())
            assert report["schema"] == "actswap.report/1"
            assert report["complete"] is False
        assert len(place.report_files()) <= n + 1
    assert place.report_files()


def test_a_kill_between_any_two_calls_leaves_a_whole_report(place: Place) -> None:
    """The library's own calls to the file system, one after the other the last one."""
    seen = set()
    for at in range(1, 200):
        shutil.rmtree(place.work)
        place.work.mkdir()
        result = place.run(
            place.program("snippet"),
            "plain",
            preload=f"{place.library} {place.program('libhookmortal.so')}",
            ACTSWAP_SIM_GPU="h100-80gb",
            MORTAL_AT=str(at),
        )
        reports = place.reports()
        seen |= {report["complete"] for report in reports}
        if result.returncode == 0:
            break
        assert result.returncode == -9
        assert all(report["schema"] == "actswap.report/1" for report in reports)

    assert at > 10, "few calls were counted: does the library still make them itself?"
    assert seen == {False, True}
    assert len(place.files()) == 2  # the folder and its report


def test_two_runs_at_once_into_one_folder_have_a_report_each(place: Place) -> None:
    processes = [start(place, STEPS, "20") for _ in range(4)]
    for process in processes:
        _, error = process.communicate(timeout=60)
        assert process.returncode == 0, error

    names = [file.name for file in place.report_files()]
    assert names == ["rank0.2.json", "rank0.3.json", "rank0.4.json", "rank0.json"]
    assert len({report["run"]["pid"] for report in place.reports()}) == 4
    assert all(report["complete"] for report in place.reports())
    assert len(place.files()) == 5  # and the folder: nothing else is left


def limit_files(size: int) -> None:
    """With the signal's own effect back, which Python takes away."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


@pytest.mark.parametrize("size", [0, 100, 1000])
def test_a_limit_on_files_is_a_warning_and_no_half_report(
    place: Place, size: int
) -> None:
    code = "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_DFL)\n" + STEPS

    process = start(place, code, "3", preexec_fn=lambda: limit_files(size))
    output, error = process.communicate(timeout=60)

    assert (process.returncode, output) == (0, "ready\n0\n1\n2\n"), error
    assert error.count("cannot write actswap-r1/rank0.json: File too large") == 1
    assert [file for file in place.files() if "rank" in file] == []


def test_a_limit_that_comes_later_leaves_the_report_as_it_was(place: Place) -> None:
    code = (
        "import resource, sys\n"
        + STEPS
        + "    if step == 0:\n"
        + "        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
    )

    process = start(place, code, "3")
    _, error = process.communicate(timeout=60)

    assert process.returncode == 0
    assert error.count("File too large; it stays as it was") == 1
    (report,) = place.reports()
    assert report["steps"]["count"] == 1
    assert report["complete"] is False


@contextlib.contextmanager
def disk(place: Place, *options: str) -> Iterator[Path]:
    """A file system of one page, where a test may mount one."""
    folder = place.work / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", ",".join(["size=4k", *options]), "tmpfs"]
    made = subprocess.run([*mount, str(folder)], capture_output=True, text=True)
    if made.returncode:
        pytest.skip(f"no file system can be mounted here: {made.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_is_a_warning_and_no_half_report(place: Place) -> None:
    with disk(place) as folder:
        (folder / "filler").write_bytes(b"x" * 4096)
        target = {"ACTSWAP_REPORT": "disk/rank%r.json"}
        process = start(place, STEPS, "3", environment=target)
        output, error = process.communicate(timeout=60)

        assert (process.returncode, output) == (0, "ready\n0\n1\n2\n"), error
        assert error.count("No space left on device") == 1
        assert os.listdir(folder) == ["filler"]


def test_a_read_only_disk_is_a_warning(place: Place) -> None:
    with disk(place, "ro"):
        target = {"ACTSWAP_REPORT": "disk/rank%r.json"}
        process = start(place, STEPS, "3", environment=target)
        output, error = process.communicate(timeout=60)

    assert (process.returncode, output) == (0, "ready\n0\n1\n2\n"), error
    assert error.count("Read-only file system; the run goes on without") == 1


def test_a_fork_after_the_first_call_leaves_the_report_to_the_parent(
    place: Place,
) -> None:
    code = STEPS.replace(
        "    print",
        "    import os\n    if os.fork() == 0:\n        sys.exit(0)\n    print",
    )

    process = start(place, code, "3")
    output, error = process.communicate(timeout=60)

    assert (process.returncode, output) == (0, "ready\n0\n1\n2\n"), error
    (report,) = place.reports()
    assert report["run"]["pid"] == process.pid
    assert (report["complete"], report["steps"]["count"]) == (True, 3)


def test_the_command_reads_what_is_left(place: Place) -> None:
    """After a kill: a text that says so."""
    with start(place, STEPS, "100000") as process:
        assert process.stdout.readline() == "ready\n"
        assert process.stdout.readline() == "0\n"
        process.kill()
    command = private().parents[1] / "bin" / "actswap"
    while not command.exists():
        command = command.parents[2] / "bin" / "actswap"

    result = subprocess.run(
        [str(command), "report", str(Path(place.work) / "actswap-r1")],
        capture_output=True,
        text=True,
    )

    assert result.returncode == 0, result.stderr
    assert "still running, or cut off, when this was written" in result.stdout
