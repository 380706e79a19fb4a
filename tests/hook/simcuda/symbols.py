#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What PyTorch's libraries import is exported by the simulated ones, and the lists agree.

    symbols.py documented NAMES MARKDOWN            missing.names is what the page lists
    symbols.py imports TORCH LIBRARY...             every import of theirs is answered

Exit 77 (skipped) where PyTorch is not installed.
"""

import glob
import os
import re
import subprocess
import sys
from typing import Dict, List, Set, Tuple

Symbols = Dict[str, Set[str]]  # names by version node, "" without one


def symbols(library: str, option: str) -> Symbols:
    output = subprocess.run(
        ["nm", "-D", option, "--with-symbol-versions", library],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    found: Symbols = {}
    for line in output.splitlines():
        kind, symbol = line.split()[-2:]
        name, _, version = symbol.partition("@")
        # A weak import may stay without an answer.
        if kind != "w":
            found.setdefault(version.lstrip("@"), set()).add(name)
    return found


def dynamic(library: str) -> Tuple[str, List[str]]:
    """SONAME and what is needed."""
    output = subprocess.run(
        ["readelf", "-d", library], check=True, capture_output=True, text=True
    ).stdout
    soname = re.findall(r"\(SONAME\).*\[(.*)\]", output)
    return (soname[0] if soname else ""), re.findall(r"\(NEEDED\).*\[(.*)\]", output)


def documented(names: str, page: str) -> int:
    with open(names, encoding="ascii") as file:
        wanted = file.read().split()
    with open(page, encoding="utf-8") as file:
        block = re.search(r"```missing\n(.*?)```", file.read(), re.DOTALL)
    listed = block.group(1).split() if block else []
    for name in sorted(set(wanted) ^ set(listed)):
        print(f"{name} is in one of {names} and {page} only")
    return int(wanted != sorted(wanted) or wanted != listed)


def imports(torch: str, libraries: List[str]) -> int:
    theirs = glob.glob(os.path.join(torch, "lib", "*.so*"))
    if not theirs:
        print(f"no PyTorch in {torch}")
        return 77
    needed: Set[str] = set()
    wanted: Symbols = {}
    for library in theirs:
        needed.update(dynamic(library)[1])
        for version, names in symbols(library, "--undefined-only").items():
            wanted.setdefault(version, set()).update(names)
    faults = 0
    answered = 0
    sonames = set()
    exported: Set[str] = set()
    for library in libraries:
        sonames.add(dynamic(library)[0])
        for version, names in symbols(library, "--defined-only").items():
            exported.update(names)
            if not version:
                continue
            for name in sorted(wanted.get(version, set()) - names):
                print(f"{library}: {name}@{version} is imported and not there")
                faults += 1
            answered += len(wanted.get(version, set()) & names)
    prefixes = r"(nccl|cu[A-Z]|cusparseLt|cuFile)"
    for name in sorted(wanted.get("", set())):
        if re.match(prefixes, name) and name not in exported:
            print(f"{name} is imported and nowhere")
            faults += 1
    closed = re.compile(r"lib(cu|nccl|nv).*\.so\.\d+$")
    for name in sorted(needed - sonames):
        if closed.match(name):
            print(f"{name} is needed and has no stand-in")
            faults += 1
    print(f"{answered} versioned imports answered by {len(libraries)} libraries")
    return 1 if faults or answered < 500 else 0


if __name__ == "__main__":
    if sys.argv[1] == "documented":
        sys.exit(documented(sys.argv[2], sys.argv[3]))
    sys.exit(imports(sys.argv[2], sys.argv[3:]))
