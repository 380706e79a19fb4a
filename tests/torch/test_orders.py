# SPDX-License-Identifier: Apache-2.0
"""Small models under a seed: each commit takes others of them, and another seed.

scripts/orders trains all of them, and the examples, under ten.
"""

import hashlib
import subprocess
import sys
from pathlib import Path

CASES = Path(__file__).parent / "cases"
sys.path.insert(0, str(CASES))

from models import MODELS  # noqa: E402
from test_models import Pass, differing  # noqa: E402

SHARE = 12


def commit() -> str:
    command = ["git", "-C", str(CASES), "rev-parse", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True).stdout.strip()


def test_models_keep_their_bits_under_a_seed(tmp_path: Path) -> None:
    number = int(hashlib.sha256(commit().encode()).hexdigest()[:8], 16)
    names = list(MODELS)[number % SHARE :: SHARE]
    seed = f"seed:{number % 1000}"
    print(seed, *names)

    late = Pass(tmp_path / "late", "cuda", names=names)
    way = {"sim_order": seed, "sim_check": "races"}
    other = Pass(tmp_path / "seed", "cuda", names=names, **way)

    assert (late.failed, other.failed) == ({}, {})
    assert list(differing(late, other, exact=True)) == []
    assert other.report()["device"]["races"] == 0
