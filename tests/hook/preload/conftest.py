# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the hook tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from place import Place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)
