# SPDX-License-Identifier: Apache-2.0
"""Tensors are asked in C where this PyTorch allows it, and say what they do in Python."""

from pathlib import Path

import pytest
from stack import Run, environment

CASE = str(Path(__file__).parent / "cases" / "direct.py")


@pytest.mark.parametrize("policy", ["offload:min=0", "offload:min=1GiB"])
def test_c_and_python_say_the_same(policy: str) -> None:
    said = Run([CASE], environment(policy=policy)).result()

    assert said["proven"], "the newest PyTorch has to be asked in C"
    assert said["C"] == said["Python"]
    assert said["C"]["pages"] == 0
    assert (said["C"]["out_bytes"] > 0) == (policy == "offload:min=0")
    assert "modified by an inplace operation" in said["words"]
    assert "which is output 0 of Exp" in said["words"]
    assert said["words"] == said["words in Python"]
