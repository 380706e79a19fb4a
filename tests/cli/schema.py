# SPDX-License-Identifier: Apache-2.0
"""Whether a report is as its JSON Schema says."""

import json
import subprocess
from pathlib import Path
from typing import Any

from command import TOP

SCHEMA = TOP / "docs" / "actswap.report-1.schema.json"

# Debian's python3-jsonschema belongs to Debian's Python, not to the environment with
# PyTorch.
PYTHON = "/usr/bin/python3"
CHECK = """
import json, sys
from jsonschema import Draft202012Validator as Validator
schema = json.load(open(sys.argv[1]))
Validator.check_schema(schema)
for error in Validator(schema).iter_errors(json.load(sys.stdin)):
    print("/".join(map(str, error.absolute_path)), error.message[:300])
"""


def faults(report: Any) -> list[str]:
    """One line for each; the report as an object or as a file."""
    text = report.read_text() if isinstance(report, Path) else json.dumps(report)
    checked = subprocess.run(
        [PYTHON, "-c", CHECK, str(SCHEMA)], input=text, capture_output=True, text=True
    )
    assert checked.returncode == 0, f"scripts/setup installs it: {checked.stderr}"
    return checked.stdout.splitlines()
