# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the command's tests."""

import sys
from pathlib import Path

import pytest
from command import COMMAND, Command


@pytest.fixture
def actswap(tmp_path: Path) -> Command:
    assert COMMAND.exists(), f"{COMMAND} is not installed: scripts/setup"
    return Command(tmp_path)


@pytest.fixture
def python() -> str:
    return sys.executable
