# SPDX-License-Identifier: Apache-2.0
"""The installed command, run as a user runs it."""

import os
import subprocess
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
PREFIX = Path(os.environ.get("PREFIX", TOP / "out"))
COMMAND = PREFIX / "bin" / "actswap"
SECONDS = 300


class Command:
    """`actswap` in an empty folder, with an environment that has no setting of ours."""

    def __init__(self, folder: Path, command: Path = COMMAND) -> None:
        self.folder = folder
        self.command = command
        self.environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("ACTSWAP_", "LD_PRELOAD"))
        }

    def __call__(self, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(self.command), *arguments],
            cwd=self.folder,
            env=self.environment | more,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )

    def script(self, name: str, text: str) -> str:
        """Writes a script into the folder and returns its name."""
        (self.folder / name).write_text(text)
        return name


def errors(result: subprocess.CompletedProcess[str]) -> list[str]:
    """Our own lines; whatever the program printed is left out."""
    return [line for line in result.stderr.splitlines() if line.startswith("actswap: ")]
