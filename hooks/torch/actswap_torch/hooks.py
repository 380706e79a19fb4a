# SPDX-License-Identifier: Apache-2.0
"""Where autograd's saved tensor hooks are pushed."""

from __future__ import annotations

import threading
from typing import Any, Callable, List


class _Thread(threading.local):
    pushed = False  # our hooks are at the bottom of this thread's stack
    lent: Any = None  # those of ours that were taken off for a function transform


class SavedTensorHooks:
    """Our pack and unpack at the bottom of each thread's stack of default hooks.

    Never above hooks of the user: their context manager would pop ours. Function
    transforms (torch.func.grad and kin) refuse to run while any hook is pushed, so ours
    step aside there; tried on torch 2.15.
    """

    def __init__(self, torch: Any, pack: Any) -> None:
        self._torch = torch
        self._autograd = torch._C._autograd
        self._pack = pack
        self._thread = _Thread()
        self._last: List[Any] = []  # of settle()

    def _top(self) -> Any:
        top = getattr(self._autograd, "_top_saved_tensors_default_hooks", None)
        if top is not None:
            return top(True)
        return (self._pack.pack,) if self._thread.pushed else None  # older PyTorch

    def on_top(self) -> bool:
        """True when a tensor saved now by this thread comes to us."""
        top = self._top()
        return top is not None and top[0] is self._pack.pack

    def push(self) -> None:
        thread = self._thread
        if thread.pushed or thread.lent is not None or self._top() is not None:
            return
        if not self._autograd._saved_tensors_hooks_is_enabled():
            return
        self._autograd._push_saved_tensors_default_hooks(
            self._pack.pack, self._pack.unpack
        )
        thread.pushed = True

    def pop(self) -> bool:
        if not self._thread.pushed or not self.on_top():
            return False
        self._autograd._pop_saved_tensors_default_hooks()
        self._thread.pushed = False
        return True

    def settle(self) -> None:
        """After it no backward that is over keeps our hooks, as each did with a copy of
        the stack that it began with.

        The thread that ran a device's part of one lets go of it only a moment after the
        script goes on, for which it wants Python's lock: who asks for that when the
        interpreter ends is ended in the middle of C++, which aborts. What it runs next
        comes after that. So each such thread gets a backward of an empty tensor, which
        allocates and launches nothing, with our hooks taken off. That one has no results,
        and what it used stays: it keeps nothing of Python's itself.
        """
        self.pop()
        torch = self._torch
        run = torch.autograd.Variable._execution_engine.run_backward
        for device in range(torch.cuda.device_count()):
            if not torch._C._cuda_hasPrimaryContext(device):
                continue
            with torch.inference_mode(False), torch.enable_grad():
                start = torch.empty(0, device=f"cuda:{device}", requires_grad=True)
                end = start.view_as(start)
            gradient = torch.empty(0, device=f"cuda:{device}")
            run((end,), (gradient,), False, False, (), True, True)
            self._last.append((start, end, gradient))

    def _take_off(self) -> List[Any]:
        """All of ours that nothing of the script's lies on, those of a block as well."""
        taken = []
        while (top := self._top()) is not None and is_ours(self._pack, top[0]):
            taken.append(top if len(top) > 1 else (self._pack.pack, self._pack.unpack))
            self._autograd._pop_saved_tensors_default_hooks()
            if top[0] is self._pack.pack:
                break
        return taken

    def disable(self, original: Callable) -> Callable:
        """For torch._C._autograd._saved_tensors_hooks_disable."""

        def disable(message: str, fail_if_non_empty: bool = True) -> None:
            if fail_if_non_empty and self._thread.lent is None:
                self._thread.lent = self._take_off() or None
            original(message, fail_if_non_empty)

        return disable

    def enable(self, original: Callable) -> Callable:
        """For torch._C._autograd._saved_tensors_hooks_enable."""

        def enable() -> None:
            original()
            lent, self._thread.lent = self._thread.lent, None
            for pair in reversed(lent or ()):
                self._autograd._push_saved_tensors_default_hooks(*pair)

        return enable

    def saved_tensors(self, getter: Callable) -> Callable:
        """For autograd.Function's ctx.saved_tensors.

        A tensor that went through hooks comes back as a new object, also when the hooks
        hand back the very tensor: a parameter would lose its class and what was set on
        it (main_grad). So the originals are put back; tried on torch 2.15.
        """
        record = self._pack.record

        def saved_tensors(ctx: Any) -> Any:
            opened: List[Any] = []
            before = record(opened)
            try:
                tensors = getter(ctx)
            finally:
                record(before)
            return put_back(tensors, opened)

        return saved_tensors


def is_ours(pack: Any, hook: Any) -> bool:
    return hook is pack.pack or getattr(hook, "__module__", "").startswith(__package__)


def put_back(tensors: Any, opened: List[Any]) -> Any:
    """`tensors` with those replaced that are known to be a tensor in `opened`."""
    if sum(tensor is not None for tensor in tensors) != len(opened):
        return tensors  # others were opened on the way, as when a block is recomputed
    originals = iter(opened)
    return tuple(
        tensor if tensor is None else _original(tensor, next(originals))
        for tensor in tensors
    )


def _original(tensor: Any, original: Any) -> Any:
    same = (
        original is not None
        and original.shape == tensor.shape
        and original.requires_grad == tensor.requires_grad
        and original.data_ptr() == tensor.data_ptr()
    )
    return original if same else tensor
