# SPDX-License-Identifier: Apache-2.0
"""Says whose forward runs, so that the report can name what memory was made in."""

from __future__ import annotations

import functools
import itertools
import weakref
from typing import Any, Callable, Dict, Optional, Tuple

from . import parts

ROOTS = 64  # models of one class that are told apart


class _Entry:
    def __init__(
        self, module: Any, number: int, is_block: bool, forget: Callable
    ) -> None:
        self.module = weakref.ref(module, forget)
        self.number = number
        self.is_block = is_block


class Places:
    """Tells the library of each block's and each part's entry and exit.

    The forward of their class is exchanged, not the instance's: a deep copy or a pickle
    then holds nothing of ours. Instances that were not found by adopt(), such as such a
    copy, run the original at the price of one lookup.

    A name is the path from the root, as in its state_dict; the root's own is its class.
    Once there are several models with parts, each path begins with its root's.
    """

    def __init__(self, torch: Any, pack: Any, run_block: Callable) -> None:
        self._torch = torch
        self._pack = pack
        self._run_block = run_block
        self._entries: Dict[int, _Entry] = {}
        self._classes: Dict[type, Callable] = {}
        self._roots: Dict[str, Any] = {}  # labels to weak references
        self._numbers: Dict[Tuple[str, str], int] = {}  # labels and paths
        self._names: Dict[int, Tuple[str, str]] = {}
        self._several = False
        self._count = itertools.count(1)

    def adopt(self, root: Any) -> None:
        torch = self._torch
        label, prefix = self._place(root)
        paths = {
            id(module): ".".join(filter(None, (prefix, path)))
            for path, module in root.named_modules()
        }
        blocks = []
        for block in parts.find_blocks(torch, root):
            if parts.is_left_alone(torch, block):
                self._pack.note(
                    "blocks compiled, scripted or with a forward of their own"
                )
                self._refuse(label, paths.get(id(block), ""))
            else:
                blocks.append(block)
        found = [part for block in blocks for part in parts.below(torch, block)]
        found += parts.choose(torch, root, blocks)
        for n, module in enumerate((*blocks, *found)):
            path = paths.get(id(module), type(module).__name__)
            self._add(module, label, path, is_block=n < len(blocks))
        self._rename(root, label, paths)

    def number(self, module: Any) -> Optional[int]:
        entry = self._entry(module)
        return None if entry is None else entry.number

    def name(self, number: int) -> str:
        label, path = self._names[number]
        return f"{label}.{path}" if path and self._several else path or label

    def undo(self) -> None:
        for undo in self._classes.values():
            undo()
        self._classes.clear()
        self._entries.clear()

    # --- Names

    def _place(self, root: Any) -> Tuple[str, str]:
        """Of a part of a known model that is called alone, where it is there."""
        entry = self._entry(root)
        if entry is not None and self._names[entry.number][1]:
            return self._names[entry.number]
        return self._label(root), ""

    def _label(self, root: Any) -> str:
        kind = type(root).__name__
        for n in range(1, ROOTS + 1):
            label = f"{kind} {n}" if n > 1 else kind
            known = self._roots.get(label, lambda: None)()
            if known is None or known is root:
                self._roots[label] = weakref.ref(root)
                break
        return label

    def _add(self, module: Any, label: str, path: str, is_block: bool) -> None:
        key, entries, name = id(module), self._entries, (label, path)
        entry = self._entry(module)
        if entry is None:
            if name in self._numbers:
                self._pack.renewed(self._numbers[name])
            number = self._numbers.setdefault(name, next(self._count))
            self._names[number] = name
            self._say(number)
            entry = _Entry(module, number, is_block, lambda _: entries.pop(key, None))
            entries[key] = entry
        entry.is_block |= is_block
        if path:
            self._wrap(type(module))
            # What a lazy module turns into by its first call.
            self._wrap(getattr(type(module), "cls_to_become", None))

    def _refuse(self, label: str, path: str) -> None:
        number = self._numbers.setdefault((label, path), next(self._count))
        self._names[number] = (label, path)
        self._say(number)
        self._pack.skipped(number, self._pack.FAULT_FORWARD)

    def _rename(self, root: Any, label: str, paths: Dict[int, str]) -> None:
        """What was called alone before is known by its place in the larger model."""
        for module in root.modules():
            entry = self._entry(module)
            name = (label, paths.get(id(module), ""))
            if entry is not None and name[1] and self._names[entry.number] != name:
                # Its number is not for the next one that is called as it was.
                self._numbers.pop(self._names[entry.number], None)
                self._numbers[name] = entry.number
                self._names[entry.number] = name
                self._say(entry.number)
        labels = {label for label, path in self._names.values() if path}
        if len(labels) > 1 and not self._several:
            self._several = True
            for number in self._names:
                self._say(number)

    def _say(self, number: int) -> None:
        self._pack.block_name(number, self.name(number))

    # --- Classes

    def _entry(self, module: Any) -> Optional[_Entry]:
        entry = self._entries.get(id(module))
        return entry if entry is not None and entry.module() is module else None

    def _wrap(self, kind: Any) -> None:
        if kind is None or kind in self._classes:
            return
        own = "forward" in kind.__dict__
        cell = inner_forward(kind.forward)
        original = kind.forward if cell is None else cell.cell_contents
        if cell is not None and hasattr(original, "_actswap_original"):
            return  # of a class that this one inherits it from
        is_compiling = self._torch.compiler.is_compiling
        find, run_block = self._entries.get, self._run_block
        enter, leave = self._pack.enter, self._pack.leave

        @functools.wraps(original)
        def forward(module: Any, *args: Any, **kwargs: Any) -> Any:
            entry = None if is_compiling() else find(id(module))
            if entry is None or entry.module() is not module:
                return original(module, *args, **kwargs)
            if entry.is_block:
                return run_block(entry.number, original, module, args, kwargs)
            enter(entry.number)
            try:
                return original(module, *args, **kwargs)
            finally:
                leave(entry.number)

        # Each class has its own: torch.compile keeps what it made by code, up to a limit.
        forward.__code__ = forward.__code__.replace()

        def undo() -> None:
            if cell is not None:
                cell.cell_contents = original
            if kind.__dict__.get("forward") is not forward:
                return
            if own:
                kind.forward = original
            else:
                del kind.forward

        forward._actswap_original = original  # type: ignore[attr-defined]
        if cell is None:
            kind.forward = forward
        else:
            cell.cell_contents = forward
        self._classes[kind] = undo


def inner_forward(forward: Any) -> Any:
    """Where a layer of Transformers keeps the forward that its own checkpointing runs.

    That does nothing unless it is the class's forward itself. Tried on Transformers 5.24.
    """
    code = getattr(forward, "__code__", None)
    if code is None or code.co_name != "forward_with_checkpointing":
        return None
    cells = dict(zip(code.co_freevars, forward.__closure__ or ()))
    return cells.get("forward")


def see_through(get_closure: Callable) -> Callable:
    """torch.jit looks up the names of a forward's source in its function's module."""

    def get(function: Any) -> Any:
        while hasattr(function, "_actswap_original"):
            function = function._actswap_original
        return get_closure(function)

    return get
