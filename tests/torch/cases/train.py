# SPDX-License-Identifier: Apache-2.0
"""Runs the examples one after the other: train.py FOLDER DEVICE. Three steps each."""

import gc
import runpy
import sys
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
GPT = ("train_gpt.py", "--layers=3", "--batch=2", "--sequence=128", "--vocab=512")
MLP = ("train_mlp.py", "--layers=4", "--batch=512")
RUNS = {
    "gpt": GPT,
    "mlp": MLP,
    "gpt-dropout": (*GPT, "--dropout=0.25"),
    "mlp-dropout": (*MLP, "--dropout=0.25"),
}

folder, device = sys.argv[1:]
for name, (script, *arguments) in RUNS.items():
    saved = f"--save={folder}/{name}.pt"
    sys.argv = [script, *arguments, "--foreach", f"--device={device}", saved]
    runpy.run_path(str(EXAMPLES / script), run_name="__main__")
    gc.collect()
