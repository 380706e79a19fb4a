# SPDX-License-Identifier: Apache-2.0
"""What the caching allocator did: allocations.py FILE script.py ARGUMENT...

Writes what happened as JSON: [action, bytes] in order, of blocks and of segments.
"""

import gc
import json
import runpy
import sys
from pathlib import Path

import torch

ENTRIES = 1_000_000

file, script, *arguments = sys.argv[1:]
torch.cuda.memory._record_memory_history("all", context=None, max_entries=ENTRIES)
sys.argv = [script, *arguments]
runpy.run_path(script, run_name="__main__")
gc.collect()  # when it would come by itself depends on more than the script
(trace,) = torch.cuda.memory._snapshot()["device_traces"]
assert len(trace) < ENTRIES, "the history is cut"
Path(file).write_text(json.dumps([[e["action"], e["size"]] for e in trace]))
