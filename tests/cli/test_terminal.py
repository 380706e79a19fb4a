# SPDX-License-Identifier: Apache-2.0
"""What people see on a terminal: colours, NO_COLOR, and a line that is redrawn."""

import os
import pty
import subprocess
import sys

import pytest
import reports
from command import Command
from reports import write

ESCAPE = "\033["
ENDS = "raise SystemExit(3)"


def on_terminal(actswap: Command, *arguments: str, **more: str) -> str:
    """What both streams show there; a terminal ends its lines with a return as well."""
    ours, theirs = pty.openpty()
    environment = actswap.environment | {"TERM": "xterm-256color"} | more
    process = subprocess.Popen(
        [str(actswap.command), *arguments],
        cwd=actswap.folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    shown = b""
    try:
        while part := os.read(ours, 4096):
            shown += part
    except OSError:  # how Linux tells that nobody is left at the other end
        pass
    os.close(ours)
    process.wait(timeout=60)
    return shown.decode().replace("\r\n", "\n")


def test_text_has_colours_on_a_terminal_only(actswap: Command) -> None:
    write(actswap.folder, "a/rank0.json", reports.full())

    coloured = on_terminal(actswap, "report", "a")

    assert ESCAPE in coloured
    assert ESCAPE not in actswap("report", "a").stdout


@pytest.mark.parametrize("off", [{"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=str)
def test_colours_can_be_refused(actswap: Command, off: dict[str, str]) -> None:
    write(actswap.folder, "a/rank0.json", reports.full())

    plain = on_terminal(actswap, "report", "a", **off)

    assert ESCAPE not in plain
    assert plain == actswap("report", "a").stdout


def test_an_empty_no_color_refuses_nothing(actswap: Command) -> None:
    """As no-color.org has it: set, and not empty."""
    write(actswap.folder, "a/rank0.json", reports.full())

    assert ESCAPE in on_terminal(actswap, "report", "a", NO_COLOR="")


def test_progress_is_one_line_on_a_terminal_and_two_elsewhere(actswap: Command) -> None:
    actswap.script("ends.py", ENDS)
    command = ["compare", "-p", "off", "--gpu", "h100-80gb", "--"]
    command += [sys.executable, "ends.py"]

    shown = on_terminal(actswap, *command)
    logged = actswap(*command).stderr

    redrawn = [line for line in shown.split("\n") if "[1/" in line]
    begun, ended = [line for line in logged.split("\n") if line.startswith("[1/")]
    assert len(redrawn) == 1 and redrawn[0].count("\r[1/") >= 1
    assert "\r" not in logged and ended.startswith(begun)
    result = ended.split(" s  ")[1]
    assert result and redrawn[0].endswith(result)
