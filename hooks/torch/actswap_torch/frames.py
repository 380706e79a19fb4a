# SPDX-License-Identifier: Apache-2.0
"""Keeps torch.compile away from frames of our own."""

from __future__ import annotations

import sys
import types
from typing import Any, Iterator

# The first stands for what is the user's, and is compiled with it. The others call that,
# which is compiled as without us. What is called by all the rest is left alone with it.
STANDING = ("forward",)
PASSING = (
    *("run", "_named", "_decided", "_forgotten", "_failed", "run_hooked"),
    *("open_holder", "open", "_try", "run_again", "run_call_again", "again", "run_body"),
    "_run_inside",
)


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _functions(holder: Any) -> Iterator[types.FunctionType]:
    for value in list(vars(holder).values()):
        value = getattr(value, "__wrapped__", value)
        if not str(getattr(value, "__module__", "")).startswith(__package__):
            continue
        if isinstance(value, types.FunctionType):
            yield value
        elif isinstance(value, type):
            yield from _functions(value)


def own_codes() -> Iterator[types.CodeType]:
    """Of every function of this package, those inside of functions as well."""
    for name, module in list(sys.modules.items()):
        if name == __package__ or name.startswith(f"{__package__}."):
            for function in _functions(module):
                codes = _codes(function.__code__)
                yield from (code for code in codes if code.co_name not in STANDING)


def hide(torch: Any) -> None:
    """Where a compiled frame of the user's could not be compiled as a whole, the frames
    that it calls are compiled one by one, and ours would be among them: guarded by what a
    thread does at the moment. Tried on torch 2.15; where there is no such call they are
    compiled.
    """
    frames: Any = getattr(getattr(torch._C, "_dynamo", None), "eval_frame", None)
    strategy = getattr(frames, "_FrameExecStrategy", None)
    if strategy is None:
        for code in own_codes():
            getattr(frames, "skip_code", bool)(code)
        return
    action = frames._FrameAction
    for code in own_codes():
        beyond = action.DEFAULT if code.co_name in PASSING else action.SKIP
        frames.set_code_exec_strategy(code, strategy(action.SKIP, beyond))
