# SPDX-License-Identifier: Apache-2.0
"""scripts/real-scripts on scripts of our own: what it calls equal, and what not."""

import os
import subprocess
import sys
from pathlib import Path

from stack import ROOT, prefix

# Its first argument: what is wrong with it.
SCRIPT = """
import os, sys, torch
what, data = sys.argv[1], open("data")
device = "cuda" if torch.cuda.is_available() else "cpu"
model = torch.nn.Linear(8, 8).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
step = 0
while step < 3 or what == "endless":
    x = torch.randn(4 + 400 * step, 8).to(device)
    if what == "fails" and step == 2:
        raise RuntimeError("as it does everywhere")
    if what == "no_number" and device == "cuda":
        y = model(x)
        y.backward(torch.zeros_like(y))
    loss = (model(x) if what != "draws" else model(torch.rand_like(x))).square().mean()
    if what == "minds" and os.environ.get("ACTSWAP_POLICY", "off") != "off":
        loss = loss * (1 + step)
    (loss * 2 if what == "differs" and device == "cuda" else loss).backward()
    optimizer.step()
    optimizer.zero_grad()
    step += 1
"""

ROW = """
[[row]]
id = "{0}"
repository = "us/tiny"
commit = "none"
script = "train.py"
prepare = ["touch data"]
command = "$PYTHON train.py {0}"
"""

ROWS = "[environment]\n" + "".join(
    ROW.format(name) + more
    for name, more in {
        "plain": "",
        "draws": "",
        "differs": "",
        "no_number": "",
        "minds": "",
        "fails": 'error = "as it does everywhere"\ncpu = "none"',
        "endless": 'stop = 3\ncpu = "none"',
    }.items()
)


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split("|")[1:-1]]


def run(folder: Path, *more: str) -> list[str]:
    """The lines of the table."""
    subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "real-scripts")]
        + [str(folder / "checkouts"), str(folder / "work")]
        + ["--table", str(folder / "rows.toml"), "--document", str(folder / "table.md")]
        + list(more),
        env=dict(os.environ, PREFIX=str(prefix())),
        check=True,
        timeout=280,
    )
    return (folder / "table.md").read_text().splitlines()


def test_each_kind_of_script_gets_its_word(tmp_path: Path) -> None:
    folder = tmp_path / "checkouts" / "us+tiny"
    folder.mkdir(parents=True)
    (folder / "train.py").write_text(SCRIPT)
    (tmp_path / "rows.toml").write_text(ROWS)
    lines = run(tmp_path, "--modes", "cpu,values")
    table = {row[0]: row for row in map(cells, lines) if len(row) == 9}

    ended = {name: table[name][4] for name in ("plain", "draws", "differs", "fails")}
    assert ended == dict.fromkeys(("plain", "draws", "differs"), "to its end") | {
        "fails": "its own error"
    }
    assert table["endless"][4] == "3 backwards"
    assert table["plain"][5] == "3 equal"
    assert table["no_number"][5] == "3 equal"
    assert table["draws"][5].startswith("random on the device")
    assert table["differs"][5] == "within 1e+00"
    assert table["endless"][5] == "no CPU run"
    assert all(table[name][6].endswith("equal") for name in table if name in ended)
    assert lines[-1] == "As they should: 0 of 7 in `auto`, 7 of 7 in `values`."

    lines = run(tmp_path, "--rows", "plain,minds", "--modes", "values+offload@tight")
    table = {row[0]: row for row in map(cells, lines) if len(row) == 4}
    assert table["plain"][3].startswith("3 equal, ")
    assert table["minds"][3].startswith("**differs** from backward 2 on, ")
