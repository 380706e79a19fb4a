# SPDX-License-Identifier: Apache-2.0
"""A folder of programs and a runtime that they find as a wheel's libraries do."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

TOP = Path(__file__).resolve().parents[3]
BUILD = Path(os.environ.get("BUILD", TOP / "build")) / "tests/hook/preload"
PREFIX = Path(os.environ.get("PREFIX", TOP / "out"))
SECONDS = 60


def private() -> Path:
    """The folder with the libraries, wherever the library folder is."""
    found = list(PREFIX.glob("lib*/**/actswap/libactswap.so"))
    assert found, f"{PREFIX} has no libactswap.so: meson install -C build"
    return found[0].parent


class Place:
    """An empty working folder, and programs beside it."""

    def __init__(self, folder: Path) -> None:
        self.programs = folder / "programs"
        self.work = folder / "work"
        self.library = private() / "libactswap.so"
        self.runtime = private() / "simrt13.so"
        (self.programs / "wheel").mkdir(parents=True)
        self.work.mkdir()
        for file in BUILD.iterdir():
            if file.is_file():
                shutil.copy(file, self.programs)
        wheel = self.programs / "wheel"
        (wheel / "libcudart.so.13").symlink_to(self.runtime)
        (wheel / "libcuda.so.1").symlink_to(self.programs / "libhookdriver.so")
        simulated = self.programs / "simulated"
        simulated.mkdir()
        (simulated / "libcudart.so.13").symlink_to(self.runtime)
        (simulated / "libcuda.so.1").symlink_to(private() / "simcu.so")
        clean = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("ACTSWAP_", "LD_", "SLURM_", "RANK", "WORLD"))
        }
        self.environment = clean

    def run(
        self, *command: str, preload: str = "", **more: str
    ) -> subprocess.CompletedProcess[str]:
        environment = self.environment | more
        if preload:
            environment["LD_PRELOAD"] = preload
        return subprocess.run(
            command,
            cwd=self.work,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )

    def program(self, name: str) -> str:
        return str(self.programs / name)

    def snippet(self, *mode: str, preload: str = "", **more: str) -> str:
        """What the snippet prints; its status must be 0."""
        more.setdefault("ACTSWAP_SIM_GPU", "h100-80gb")
        name = "snippet-local" if mode[0] == "local" else "snippet"
        result = self.run(self.program(name), *mode, preload=preload, **more)
        assert result.returncode == 0, result.stderr
        return result.stdout

    def reports(self) -> list[dict[str, Any]]:
        return [json.loads(file.read_text()) for file in self.report_files()]

    def report_files(self) -> list[Path]:
        return sorted(self.work.glob("**/*.json"))

    def files(self) -> list[str]:
        return sorted(str(file) for file in self.work.rglob("*"))
