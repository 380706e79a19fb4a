# SPDX-License-Identifier: Apache-2.0
"""One forward whose activations are on the disk, which then changes: disk.py FOLDER HOW.

HOW: "whole" nothing changes; "spoilt" every byte of the file; "forked" a child is there
while the file is used. Says what the backward raised, whose file there is, and in a
child.
"""

import json
import os
import sys
from pathlib import Path
from typing import List

import torch
from torch import nn

folder, how = sys.argv[1:]


def files() -> List[Path]:
    """What this process has open in the folder."""
    found = []
    for link in Path("/proc/self/fd").iterdir():
        try:
            if os.readlink(link).startswith(folder):
                found.append(link)
        except FileNotFoundError:
            pass  # the folder's own
    return found


def spoil() -> None:
    for link in files():
        size = os.stat(link).st_size
        with open(link, "r+b") as file:
            file.write(b"\xa5" * size)


torch.manual_seed(0)
model = nn.Sequential(*(nn.Sequential(nn.Linear(256, 256), nn.Tanh()) for _ in range(8)))
model.cuda()
x = torch.randn(1024, 256, device="cuda")
said = {}
for step in range(2):
    loss = model(x).square().mean()
    if how == "spoilt":
        torch.cuda.synchronize()
        spoil()
    said["files"] = len(files())
    said["names"] = sorted(os.listdir(folder))
    if how == "forked" and not os.fork():
        os._exit(len(files()))
    elif how == "forked":
        said["child"] = os.waitstatus_to_exitcode(os.wait()[1])
    try:
        loss.backward()
        said["raised"] = ""
    except RuntimeError as error:
        said["raised"] = str(error)
        break
said["sum"] = sum(
    p.grad.double().sum().item() for p in model.parameters() if p.grad is not None
)
print(json.dumps(said))
