# SPDX-License-Identifier: Apache-2.0
"""Which modules of a model have a name in the report: its repeated blocks, what is right
below them, and of the rest a bounded number, the largest first."""

from __future__ import annotations

import functools
import heapq
import inspect
from typing import Any, Dict, Iterator, List

MOST = 64  # outside of blocks, the root being one
BELOW = 16  # right below one block
UNBOUND = (staticmethod, classmethod, property, functools.partialmethod)


def kind_of(module: Any) -> type:
    """Its class, of a compiled one that of what was compiled."""
    return type(module._modules.get("_orig_mod", module))


def find_blocks(torch: Any, root: Any) -> Iterator[Any]:
    """The members of the outermost lists of at least two modules of one class."""
    lists = (torch.nn.ModuleList, torch.nn.Sequential)
    pending: List[Any] = [root]
    while pending:
        module = pending.pop(0)
        children = list(module.children())
        if (
            isinstance(module, lists)
            and len(children) > 1
            and len({kind_of(child) for child in children}) == 1
            and all(any(True for _ in child.parameters()) for child in children)
        ):
            yield from children
        else:
            pending.extend(children)


def is_left_alone(torch: Any, module: Any) -> bool:
    """Compiled, scripted, traced or with a forward of its own, not its class's."""
    own = module.__dict__
    return (
        isinstance(module, (torch.jit.ScriptModule, torch.fx.GraphModule))
        or "_orig_mod" in own.get("_modules", ())
        or own.get("_compiled_call_impl") is not None
        or "forward" in own
        or isinstance(inspect.getattr_static(type(module), "forward"), UNBOUND)
    )


def children_of(torch: Any, module: Any) -> Iterator[Any]:
    """Of those that are never called, such as lists, their own in their place."""
    for child in module.children():
        if type(child).forward is torch.nn.Module.forward:
            yield from children_of(torch, child)
        elif not is_left_alone(torch, child):
            yield child


def below(torch: Any, block: Any) -> List[Any]:
    """What is right below a block; without members of lists where they are many."""
    found = list(children_of(torch, block))
    if len(found) > BELOW:
        own = {id(child) for child in block.children()}
        found = [child for child in found if id(child) in own]
    return found[:BELOW]


def choose(torch: Any, root: Any, blocks: List[Any]) -> List[Any]:
    """The root and, below it and outside of blocks, what belongs to the largest subtrees.

    Each but the root is called by another one of them, so that what they do not cover
    bears the name of the closest module around it.
    """
    sizes = _sizes(root)
    seen = {id(block) for block in blocks} | {id(root)}
    chosen = [root]
    waiting: List[Any] = []
    order = 0
    while True:
        for child in children_of(torch, chosen[-1]):
            if id(child) not in seen:
                seen.add(id(child))
                heapq.heappush(waiting, (-sizes.get(id(child), 1), order, child))
                order += 1
        if not waiting or len(chosen) == MOST:
            return chosen
        chosen.append(heapq.heappop(waiting)[2])


def _sizes(root: Any) -> Dict[int, int]:
    """How many modules each is made of."""
    sizes: Dict[int, int] = {}
    for module in reversed(list(root.modules())):  # children come behind their parent
        sizes[id(module)] = 1 + sum(
            sizes.get(id(child), 1) for child in module.children()
        )
    return sizes
