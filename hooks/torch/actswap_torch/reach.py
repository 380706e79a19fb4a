# SPDX-License-Identifier: Apache-2.0
"""What the forwards that a script has written down get at by name: globals, what they
close over, attributes of classes, and the same of what they call."""

from __future__ import annotations

import builtins
import functools
import sys
import sysconfig
import types
from typing import Any, Dict, Iterator, List, Set, Tuple

MISSING: Any = object()
PACKAGES = ("site-packages", "dist-packages", sysconfig.get_path("stdlib"))
PASSED = (types.FunctionType, types.BuiltinFunctionType, types.ModuleType, type)
CELL = type((lambda cell: lambda: cell)(0).__closure__[0])  # type: ignore[index]


class Variable:
    """A name that may be bound to something else: a global, a cell or a class's."""

    __slots__ = ("holder", "name")

    def __init__(self, holder: Any, name: str) -> None:
        self.holder, self.name = holder, name

    def key(self) -> Tuple[int, str]:
        return id(self.holder), self.name

    def get(self) -> Any:
        holder = self.holder
        if isinstance(holder, CELL):
            try:
                return holder.cell_contents
            except ValueError:
                return MISSING
        space = vars(holder) if isinstance(holder, type) else holder
        return space.get(self.name, MISSING)

    def put(self, value: Any) -> None:
        holder, name = self.holder, self.name
        if self.get() is value:
            return
        if isinstance(holder, CELL):
            holder.cell_contents = value
        elif isinstance(holder, type):
            if value is MISSING:
                delattr(holder, name)
            else:
                setattr(holder, name, value)
        elif value is MISSING:
            del holder[name]
        else:
            holder[name] = value


def is_of_a_script(space: Any) -> bool:
    """Not a package's names."""
    path = str((space or {}).get("__file__") or "")
    return not any(place in path for place in PACKAGES)


def is_scripts_class(kind: type) -> bool:
    module = sys.modules.get(kind.__module__)
    return module is not None and is_of_a_script(vars(module))


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


class Reach:
    def __init__(self, modules: List[Any]) -> None:
        self.variables: Dict[Tuple[int, str], Variable] = {}
        self.values: List[Any] = []
        self._seen: Set[int] = set()
        self._names: Set[str] = set()  # that functions use of what they got at
        for kind in {type(module) for module in modules}:
            self._look_at(kind)
        for module in modules:
            for value in module.__dict__.values():
                self._look_at(type(value))

    def _look_at(self, value: Any) -> None:
        value = getattr(value, "_actswap_original", value)
        if id(value) in self._seen:
            return
        self._seen.add(id(value))
        if isinstance(value, (staticmethod, classmethod, types.MethodType)):
            self._look_at(value.__func__)
        elif isinstance(value, property):
            self._look_at(value.fget)
        elif isinstance(value, functools.partial):
            self.values += (value.args, value.keywords)
            self._look_at(value.func)
        elif isinstance(value, type):
            self._look_at_class(value)
        elif isinstance(value, types.FunctionType):
            self._look_at_function(value)

    def _look_at_class(self, kind: type) -> None:
        for base in kind.__mro__:
            if base is not object and is_scripts_class(base):
                for value in list(vars(base).values()):
                    self._look_at(value)
        if is_scripts_class(kind):
            for base in kind.__mro__[:-1]:
                for name in (*vars(base), *self._names):
                    if is_scripts_class(base) and not name.startswith("__"):
                        self._add(Variable(base, name))

    def _look_at_function(self, function: Any) -> None:
        self._look_at(getattr(function, "__wrapped__", None))
        cells = function.__closure__ or ()
        for cell, name in zip(cells, function.__code__.co_freevars):
            self._add(Variable(cell, name))
        if not is_of_a_script(function.__globals__):
            return
        self.values += (function.__defaults__, function.__kwdefaults__)
        if function.__dict__:
            self.values.append(function.__dict__)
        names = {name for code in _codes(function.__code__) for name in code.co_names}
        self._names |= names
        for name in names:
            self._add_global(function.__globals__, name, names)

    def _add_global(self, space: Dict[str, Any], name: str, names: Set[str]) -> None:
        value = space.get(name, MISSING)
        if value is MISSING and hasattr(builtins, name):
            return
        self._add(Variable(space, name))
        if isinstance(value, types.ModuleType) and is_of_a_script(vars(value)):
            for inner in names:
                self._add(Variable(vars(value), inner))

    def _add(self, variable: Variable) -> None:
        if variable.key() in self.variables:
            return
        value = variable.get()
        self._look_at(value)
        if isinstance(value, PASSED) or hasattr(type(value), "__get__"):
            return
        self.variables[variable.key()] = variable
        if value is not MISSING:
            self._look_at(type(value))
            self.values.append(value)
