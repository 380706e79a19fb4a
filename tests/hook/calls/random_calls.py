# SPDX-License-Identifier: Apache-2.0
"""Runs random_calls bare and preloaded: both must end well and say the same.

random_calls.py PROGRAM LIBACTSWAP RUNTIME DRIVER SEED PROGRAMS THREADS
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path


def run(program: str, arguments: list[str], libraries: str, preload: str) -> str:
    env = dict(os.environ, LD_LIBRARY_PATH=libraries, LD_PRELOAD=preload)
    done = subprocess.run(
        [program, *arguments], env=env, capture_output=True, text=True, timeout=100
    )
    if done.returncode:
        how = "preloaded" if preload else "bare"
        sys.exit(f"{how}: {done.returncode}\n{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    PROGRAM, LIBRARY, RUNTIME, DRIVER, *ARGUMENTS = sys.argv[1:]
    with tempfile.TemporaryDirectory() as FOLDER:
        Path(FOLDER, "libcudart.so.13").symlink_to(Path(RUNTIME).resolve())
        Path(FOLDER, "libcuda.so.1").symlink_to(Path(DRIVER).resolve())
        BARE = run(PROGRAM, ARGUMENTS, FOLDER, "")
        SEEN = run(PROGRAM, ARGUMENTS, FOLDER, LIBRARY)
    if BARE != SEEN:
        sys.exit(f"the calls say other things:\n{BARE}not\n{SEEN}")
