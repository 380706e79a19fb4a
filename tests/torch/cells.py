# SPDX-License-Identifier: Apache-2.0
"""Programs x policies x orders: each trained as without a policy, or what was different.

A process trains all programs under one policy and one order (cases/matrix.py). Budgets
are shares of what a program saves: beside each as much is taken as makes one budget fit
all. Another policy is another entry of POLICIES.
"""

import json
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Dict, List, Optional, Sequence

from stack import environment

CASE = str(Path(__file__).parent / "cases" / "matrix.py")
ORDERS = ("early", "late", "seed:{seed}")
TINY = "128KiB"  # of some 300 KiB to 1 MiB that a program saves
BUDGET = 64 << 20  # more than any program has
PINNED = 2.5
SECONDS = 3600


@dataclass(frozen=True)
class Policy:
    """Settings; `percent` of what is saved may stay, `folder` is the disk's."""

    name: str
    settings: Dict[str, str] = field(default_factory=dict)
    percent: Optional[int] = None
    disk: bool = False


ALL = "offload:min=0"
OFF = Policy("off")
POLICIES = (
    Policy("offload", {"policy": ALL}),
    Policy("boundary", {"policy": "offload:min=0,only=boundary"}),
    Policy("budget-50", {"policy": ALL}, percent=50),
    Policy("budget-10", {"policy": ALL}, percent=10),
    Policy("tiny-host", {"policy": ALL, "host_memory": TINY}),
    Policy("disk", {"policy": ALL, "host_memory": TINY}, disk=True),
    Policy("recompute", {"policy": "recompute"}),
    Policy("recompute-sqrt", {"policy": "recompute:segments=sqrt"}),
    Policy("recompute-2", {"policy": "recompute:every=2"}),
    Policy("recompute-boundary", {"policy": "recompute:boundary=offload"}),
    Policy("recompute-budget", {"policy": "recompute:boundary=offload"}, percent=10),
)


class Trained:
    """What the programs of one process said, by name, and its report."""

    def __init__(
        self,
        policy: Policy,
        order: str,
        steps: int,
        names: Sequence[str] = (),
        off: Optional["Trained"] = None,
    ) -> None:
        self.policy, self.order = policy, order
        begun = time.monotonic()
        with TemporaryDirectory(prefix="actswap-matrix-") as folder:
            report = Path(folder) / "report.json"
            settings = dict(policy.settings, sim_order=order, report=str(report))
            if policy.disk:
                settings["disk"] = f"{folder}:1GiB"
            ballasts = {}
            if policy.percent is not None and off:
                settings["budget"] = str(BUDGET)
                ballasts = {
                    name: BUDGET - budget_of(said, policy.percent)
                    for name, said in off.said.items()
                }
            if order != "early":
                settings["sim_check"] = "races"
            env = environment(**settings)
            # Else its workspace is the peak of each of them.
            env.update(CUBLAS_WORKSPACE_CONFIG=":16:1", CUBLASLT_WORKSPACE_SIZE="0")
            env["OMP_NUM_THREADS"] = "1"
            done = subprocess.run(
                [sys.executable, CASE, str(steps), json.dumps(ballasts), *names],
                env=env,
                capture_output=True,
                text=True,
                timeout=SECONDS,
            )
            self.said: Dict[str, Any] = {}
            for line in done.stdout.splitlines():
                name, _, rest = line.partition(" ")
                self.said[name] = json.loads(rest)
            self.error = done.stderr[-2000:] if done.returncode else ""
            self.report = json.loads(report.read_text()) if report.exists() else {}
            self.seconds = time.monotonic() - begun

    def peak(self, name: str) -> int:
        return self.said[name]["peak"]


def budget_of(said: Dict[str, Any], percent: int) -> int:
    """That much of what a forward adds may stay."""
    return said["static"] + (said["forward"] - said["static"]) * percent // 100


def is_bounded(said: Dict[str, Any]) -> bool:
    """Where sizes hang on the data, a larger one may come in any step, but no more is
    pinned than some 2.5 times what a step moves at most (src/pager/slab.h)."""
    return said["varies"] and said["pinned"] <= PINNED * said["moved"]


def differences(name: str, off: Trained, other: Trained) -> List[str]:
    """What a policy changed of a program, or left behind, in words."""
    if name not in other.said:
        return [f"did not end: {other.error[-300:]}"]
    plain, said = off.said[name], other.said[name]
    steps = len(said["digests"])
    found = []
    if said["digests"][:-1] != plain["digests"][: steps - 1]:
        pairs = zip(plain["digests"], said["digests"])
        first = next(n for n, (a, b) in enumerate(pairs) if a != b)
        found.append(f"other bits from step {first + 1} on")
    elif steps == len(plain["digests"]) and said["digests"] != plain["digests"]:
        found.append("other bits at the end")
    if said["pages"]:
        found.append(f"pages: {said['pages']}")
    if said["grew"] and not is_bounded(said):
        found.append(f"grew: {said['grew']}")
    if said["left"] != plain["left"]:
        found.append(f"{said['left'] - plain['left']} bytes of the device are left")
    return found


def troubles(other: Trained) -> List[str]:
    """What is wrong with the process as a whole."""
    found = [other.error] if other.error else []
    report = other.report
    races = report.get("device", {}).get("races", 0)
    if races:
        found.append(f"the checker counted {races}")
    moves = report.get("moves", {})
    if moves.get("disk", {}).get("end_bytes"):
        found.append(f"{moves['disk']['end_bytes']} bytes of the disk are left")
    return found
