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
from stack import Run, environment  # noqa: E402
from test_models import Pass, differing  # noqa: E402

# The CPU's LSTM rounds otherwise where gradients are wanted; where somebody waits for it,
# that must not decide. Prints whether the CPU's are alike, and whether ours are.
WANTED = """
import json, torch
torch.manual_seed(0)
net, own = (torch.nn.LSTM(16, 16, bias=False) for _ in range(2))
own.load_state_dict(net.state_dict())
own.cuda()
x = torch.randn(12, 5, 16)
there = x.cuda()
other, found = [], []
for wanted in (True, False):
    with torch.set_grad_enabled(wanted):
        right = net(x)[0].detach()
    other.append(right)
    for waits in (True, False):
        torch.cuda.synchronize()
        with torch.set_grad_enabled(wanted):
            made = own(there)[0].detach()
        with torch.set_grad_enabled(waits):
            torch.cuda.synchronize()
        found.append(made.cpu())
print(json.dumps([torch.equal(*other), [torch.equal(one, found[0]) for one in found]]))
"""

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


def test_who_waits_for_a_body_does_not_change_it() -> None:
    alike, found = Run(["-c", WANTED], environment(sim_order="late")).result()

    assert not alike, "nothing is tested: with and without gradients the CPU rounds alike"
    assert found == [True] * 4
