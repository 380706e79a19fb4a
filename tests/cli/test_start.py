# SPDX-License-Identifier: Apache-2.0
"""What is wrong with the program or the folder is said before anything starts."""

import os
from pathlib import Path

import pytest
from command import PREFIX, Command


@pytest.fixture(params=["rehearse", "run"])
def verb(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_missing_program_is_127(actswap: Command, verb: str) -> None:
    result = actswap(verb, "--", "no-such-program")

    assert result.stderr == "actswap: error: no program no-such-program on PATH\n"
    assert result.returncode == 127


def test_program_that_cannot_be_executed_is_126(actswap: Command, verb: str) -> None:
    actswap.script("plain.sh", "echo\n")

    result = actswap(verb, "./plain.sh")

    assert result.stderr == (
        "actswap: error: ./plain.sh is not executable: chmod +x it, "
        "or start it with its interpreter\n"
    )
    assert result.returncode == 126


def test_missing_script_names_the_nearest(
    actswap: Command, verb: str, python: str
) -> None:
    actswap.script("train.py", "raise SystemExit('started')\n")

    result = actswap(verb, "--", python, "-u", "-W", "ignore", "tarin.py", "--lr", "1")

    assert result.stderr == (
        "actswap: error: no script tarin.py: No such file or directory. "
        "Did you mean train.py?\n"
    )
    assert result.returncode == 127


def test_missing_script_without_a_similar_one(actswap: Command, python: str) -> None:
    result = actswap("run", "--", python, "nowhere/train.py")

    assert result.stderr == (
        "actswap: error: no script nowhere/train.py: No such file or directory\n"
    )
    assert result.returncode == 127


@pytest.mark.parametrize("arguments", [["-c", "print(7)"], ["-m", "this"], ["--version"]])
def test_python_without_a_script_is_started(
    actswap: Command, python: str, arguments: list[str]
) -> None:
    result = actswap("run", "--", python, *arguments)

    assert result.returncode == 0
    assert result.stderr == ""


def test_unwritable_folder_is_125(actswap: Command, verb: str) -> None:
    (actswap.folder / "file").write_text("")

    result = actswap(verb, "-o", "file/reports", "true")

    assert result.stderr == (
        "actswap: error: cannot make the report folder file/reports: Not a directory; "
        "choose one with -o\n"
    )
    assert result.returncode == 125


def test_unwritable_folder_of_the_environment_is_said_by_the_run(
    actswap: Command,
) -> None:
    """ACTSWAP_REPORT is the user's own: nothing is made or checked before the start."""
    result = actswap(
        "run", "--", "sh", "-c", "exit 5", ACTSWAP_REPORT="/proc/none/%r.json"
    )

    assert (result.returncode, result.stderr) == (5, "")


def test_existing_folder_needs_force(actswap: Command, verb: str) -> None:
    (actswap.folder / "old").mkdir()
    (actswap.folder / "old" / "rank0.json").write_text("kept")

    result = actswap(verb, "-o", "old", "true")

    assert result.stderr == (
        "actswap: error: the folder old exists; name a new one with -o, "
        "or add -f to write beside what is there\n"
    )
    assert result.returncode == 2
    assert (actswap.folder / "old" / "rank0.json").read_text() == "kept"
    assert actswap("run", "-f", "-o", "old", "true").returncode == 0
    assert (actswap.folder / "old" / "rank0.json").read_text() == "kept"


def test_users_preloads_stay_behind_ours(actswap: Command, verb: str) -> None:
    result = actswap(
        verb, "--", "env", LD_PRELOAD="libc.so.6 libm.so.6:/elsewhere/libactswap.so"
    )

    (line,) = [x for x in result.stdout.splitlines() if x.startswith("LD_PRELOAD=")]
    entries = line.removeprefix("LD_PRELOAD=").split(":")
    ours = [Path(entry).name for entry in entries[:-2]]
    assert ours[:1] == ["libactswap.so"]
    assert ours[1:3] == (["simrt13.so", "simcu.so"] if verb == "rehearse" else [])
    assert entries[-2:] == ["libc.so.6", "libm.so.6"]


def test_run_becomes_the_program(actswap: Command, python: str) -> None:
    """Same process: the program's parent is the one that called us."""
    result = actswap("run", "--", python, "-c", "import os; print(os.getppid())")

    assert result.stdout == f"{os.getpid()}\n"


@pytest.mark.parametrize("verb", ["run", "rehearse"])
def test_settings_reach_the_program_and_options_come_first(
    actswap: Command, verb: str
) -> None:
    show = ["--", "sh", "-c", "echo $ACTSWAP_BUDGET $ACTSWAP_MEMORY"]
    set_outside = {"ACTSWAP_BUDGET": "90%", "ACTSWAP_MEMORY": "40GiB"}

    assert actswap(verb, *show, **set_outside).stdout == "90% 40GiB\n"
    assert actswap(verb, "-b", "44GiB", *show, **set_outside).stdout == "44GiB 40GiB\n"
    assert actswap(verb, "--budget=50%", *show).stdout == "50%\n"
    show = ["--", "sh", "-c", "echo $ACTSWAP_DISK"]
    assert actswap(verb, "-d", "/scratch:64GiB", *show).stdout == "/scratch:64GiB\n"


def test_run_leaves_nothing_behind_without_cuda(actswap: Command) -> None:
    result = actswap("run", "--", "sh", "-c", "echo out; echo err >&2; exit 3")

    assert (result.stdout, result.stderr, result.returncode) == ("out\n", "err\n", 3)
    assert list(actswap.folder.iterdir()) == []


@pytest.mark.parametrize("compute, interpreted", [("shapes", "None"), ("values", "1")])
def test_rehearsed_triton_finds_our_driver_and_its_interpreter(
    actswap: Command, python: str, compute: str, interpreted: str
) -> None:
    program = (
        "import os; print(os.environ.get('TRITON_INTERPRET'),"
        " os.path.realpath(os.environ['TRITON_LIBCUDA_PATH'] + '/libcuda.so.1'))"
    )

    result = actswap("rehearse", f"--compute={compute}", "--", python, "-c", program)

    said, driver = result.stdout.split()
    assert said == interpreted
    assert driver == str(next(PREFIX.resolve().glob("lib/**/simcu.so")))
