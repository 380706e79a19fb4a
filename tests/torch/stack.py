# SPDX-License-Identifier: Apache-2.0
"""Runs Python on the installed stack: libactswap over simcuda, as `actswap rehearse`.

PREFIX names the installation (meson install). The Python that runs pytest, with
its PyTorch CUDA wheel, runs the scripts too.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT_S = 300


def prefix() -> Path:
    return Path(os.environ.get("PREFIX", str(ROOT / "out")))


def private() -> Path:
    """The folder with the libraries."""
    found = sorted(prefix().glob("lib/**/libactswap.so"))
    assert found, f"no libactswap.so below {prefix()}: meson install, PREFIX"
    return found[0].parent


def preload(checked: bool = False) -> str:
    folder = private()
    names = ["libactswap.so", "simrt13.so", "simcu.so"] + ["simthreads.so"] * checked
    paths = [folder / name for name in names] + sorted(folder.glob("standin/*.so"))
    return " ".join(str(path) for path in paths)


def environment(**settings: str) -> Dict[str, str]:
    """The caller's without anything of ours, and the stack with `settings`."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("ACTSWAP_")}
    clean.update(
        LD_PRELOAD=preload(),
        ACTSWAP_SIM_GPU="h100-80gb",
        ACTSWAP_SIM_COMPUTE="values",
        ACTSWAP_SIM_ORDER="late",
        ACTSWAP_REPORT="off",
        ACTSWAP_LOG="warn",
        OMP_NUM_THREADS="2",
        TRITON_LIBCUDA_PATH=str(private() / "triton"),
        TORCH_DISABLE_NATIVE_JIT="1",
        USE_PYTORCH_KERNEL_CACHE="0",
    )
    clean.update({f"ACTSWAP_{name.upper()}": value for name, value in settings.items()})
    if clean.get("ACTSWAP_SIM_CHECK", "off") != "off":
        clean["LD_PRELOAD"] = preload(checked=True)
    if clean["ACTSWAP_SIM_COMPUTE"] == "values":
        clean["TRITON_INTERPRET"] = "1"
    elif clean["ACTSWAP_SIM_COMPUTE"] == "auto":
        clean["TORCHINDUCTOR_USE_STATIC_CUDA_LAUNCHER"] = "0"
    return clean


class Run:
    """A finished process, which must have succeeded unless `status` says otherwise."""

    def __init__(
        self,
        arguments: Sequence[str],
        env: Dict[str, str],
        flags: Sequence[str] = (),
        status: Optional[int] = 0,
        seconds: int = TIMEOUT_S,
    ) -> None:
        command: List[str] = [sys.executable, *flags, *arguments]
        done = subprocess.run(
            command, env=env, capture_output=True, text=True, timeout=seconds
        )
        self.status, self.out, self.err = done.returncode, done.stdout, done.stderr
        if status is not None:
            assert self.status == status, f"{command}\n{self.out}\n{self.err}"

    def result(self) -> Any:
        """What the script said in its last line, as JSON."""
        return json.loads(self.out.splitlines()[-1])
