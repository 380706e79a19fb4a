# SPDX-License-Identifier: Apache-2.0
"""The repeated blocks of a model: finding them, and doing as the library says."""

from __future__ import annotations

import functools
import threading
import weakref
from typing import Any, Callable, Dict, Iterator, List, Optional


class _Thread(threading.local):
    inside = False  # a block's forward runs on this thread


class _Entry:
    def __init__(self, module: Any, number: int, forget: Callable) -> None:
        self.module = weakref.ref(module, forget)
        self.number = number


def find(torch: Any, root: Any) -> Iterator[Any]:
    """The members of the outermost lists of at least two modules of one class."""
    lists = (torch.nn.ModuleList, torch.nn.Sequential)
    pending: List[Any] = [root]
    while pending:
        module = pending.pop(0)
        children = list(module.children())
        if (
            isinstance(module, lists)
            and len(children) > 1
            and len({type(child) for child in children}) == 1
            and all(any(True for _ in child.parameters()) for child in children)
        ):
            yield from children
        else:
            pending.extend(children)


class Blocks:
    """Tells the library of each block's entry and exit, and recomputes when it says so.

    The forward of the block's class is exchanged, not the instance's: a deep copy or a
    pickle of a block then holds nothing of ours. Instances that were not found by
    adopt(), such as such a copy, run the original at the price of one lookup.
    """

    def __init__(self, torch: Any, pack: Any, on_top: Callable[[], bool]) -> None:
        self._torch = torch
        self._pack = pack
        self._on_top = on_top
        self._thread = _Thread()
        self._entries: Dict[int, _Entry] = {}
        self._classes: Dict[type, Callable] = {}
        self._count = 0

    def adopt(self, root: Any) -> None:
        found = list(find(self._torch, root))
        names = {id(module): name for name, module in root.named_modules()}
        for module in found:
            if self._is_left_alone(module):
                self._pack.note(
                    "blocks compiled, scripted or with a forward of their own"
                )
            elif self._entry(module) is None:
                self._add(module, names.get(id(module), ""))

    def _is_left_alone(self, module: Any) -> bool:
        return (
            isinstance(module, self._torch.jit.ScriptModule)
            or hasattr(module, "_orig_mod")
            or getattr(module, "_compiled_call_impl", None) is not None
            or "forward" in module.__dict__
        )

    def _add(self, module: Any, name: str) -> None:
        key, self._count = id(module), self._count + 1
        self._pack.block_name(self._count, name)
        entries = self._entries
        entries[key] = _Entry(module, self._count, lambda _: entries.pop(key, None))
        if type(module) not in self._classes:
            self._wrap(type(module))

    def _entry(self, module: Any) -> Optional[_Entry]:
        entry = self._entries.get(id(module))
        return entry if entry is not None and entry.module() is module else None

    def _wrap(self, kind: type) -> None:
        own = "forward" in kind.__dict__
        original = kind.forward  # type: ignore[attr-defined]
        is_compiling = self._torch.compiler.is_compiling

        @functools.wraps(original)
        def forward(module: Any, *args: Any, **kwargs: Any) -> Any:
            if is_compiling():
                return original(module, *args, **kwargs)
            entry = self._entry(module)
            device = -1 if entry is None else self._device(args, kwargs)
            if entry is None or device < 0:
                return original(module, *args, **kwargs)
            return self._run(entry.number, device, original, module, args, kwargs)

        def undo() -> None:
            if kind.__dict__.get("forward") is not forward:
                return
            if own:
                kind.forward = original  # type: ignore[attr-defined]
            else:
                del kind.forward  # type: ignore[attr-defined]

        forward._actswap_original = original  # type: ignore[attr-defined]
        kind.forward = forward  # type: ignore[attr-defined]
        self._classes[kind] = undo

    @staticmethod
    def see_through(get_closure: Callable) -> Callable:
        """torch.jit looks up the names of a forward's source in its function's module."""

        def get(function: Any) -> Any:
            return get_closure(getattr(function, "_actswap_original", function))

        return get

    def undo(self) -> None:
        for undo in self._classes.values():
            undo()
        self._classes.clear()
        self._entries.clear()

    def _device(self, args: Any, kwargs: Any) -> int:
        """The CUDA device of the block's work, -1: leave this call alone."""
        torch = self._torch
        if (
            self._thread.inside
            or not torch.is_grad_enabled()
            or torch._C._current_graph_task_id() != -1
            or torch._C._get_tracing_state() is not None
            or not self._on_top()
        ):
            return -1
        for value in (*args, *kwargs.values()):
            if isinstance(value, torch.Tensor) and value.is_cuda:
                return value.get_device()
        return -1

    def _run(
        self,
        number: int,
        device: int,
        original: Callable,
        module: Any,
        args: Any,
        kwargs: Any,
    ) -> Any:
        pack = self._pack
        verdict = pack.block(pack.ENTER, number, device)
        self._thread.inside = True
        try:
            if verdict == pack.RECOMPUTE:
                return self._recompute(original, module, args, kwargs)
            return original(module, *args, **kwargs)
        finally:
            self._thread.inside = False
            pack.block(pack.EXIT, number, device)

    def _recompute(self, original: Callable, module: Any, args: Any, kwargs: Any) -> Any:
        # All arguments go by position: checkpoint looks for devices, whose generators
        # it has to keep, and for tensors to save only there.
        names, split = list(kwargs), len(args)
        first = True

        def run(*values: Any) -> Any:
            nonlocal first
            named = dict(zip(names, values[split:]))
            if not first:
                return self._again(original, module, values[:split], named)
            first = False
            return original(module, *values[:split], **named)

        return self._torch.utils.checkpoint.checkpoint(
            run, *args, *kwargs.values(), use_reentrant=False
        )

    def _again(self, original: Callable, module: Any, args: Any, kwargs: Any) -> Any:
        """Leaves nothing behind that a forward leaves."""
        kept = self._statistics(module)
        number = self._pack.number()
        try:
            return original(module, *args, **kwargs)
        finally:
            self._pack.put_back(number)
            for buffer, before in kept:
                buffer.data.copy_(before)

    def _statistics(self, module: Any) -> List[Any]:
        """Running statistics and copies of them: a forward counts once."""
        kind = self._torch.nn.modules.batchnorm._NormBase
        return [
            (buffer, buffer.detach().clone())
            for part in module.modules()
            if isinstance(part, kind) and part.training
            for buffer in part.buffers(recurse=False)
        ]
