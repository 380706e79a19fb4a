# SPDX-License-Identifier: Apache-2.0
"""Which modules of a model have a name in the report: its repeated blocks, what is right
below them, and of the rest a bounded number, the largest first."""

from __future__ import annotations

import collections
import functools
import heapq
import inspect
from typing import Any, Callable, Dict, Iterator, List, Tuple

MOST = 64  # outside of blocks, the root being one
BELOW = 16  # right below one block
UNBOUND = (staticmethod, classmethod, property, functools.partialmethod)


def kind_of(module: Any) -> type:
    """Its class, of a compiled one that of what was compiled."""
    return type(module._modules.get("_orig_mod", module))


def find_blocks(torch: Any, root: Any) -> List[Any]:
    """What a model repeats: members of lists, or else what a module has three of."""
    return _below(torch, root, _members) or _below(torch, root, _siblings)


def _below(torch: Any, root: Any, choose: Callable) -> List[Any]:
    found: List[Any] = []
    pending: List[Any] = [root]
    while pending:
        module = pending.pop(0)
        if _is_layer(module):
            found.append(module)
            continue
        blocks = [block for block in choose(torch, module) if not _is_stage(torch, block)]
        found += blocks
        seen = {id(block) for block in blocks}
        pending += [child for child in module.children() if id(child) not in seen]
    return found


def _members(torch: Any, module: Any) -> List[Any]:
    """Of a list: all, where they are of one class, or those of a class that recurs."""
    if not isinstance(module, _lists(torch)):
        return []
    children = list(_called(torch, module))
    if len(children) < 2:
        return []
    if len({kind_of(child) for child in children}) == 1:
        return children if all(map(_weights, children)) else []
    return _recurring(children, 2)


def _called(torch: Any, module: Any) -> Iterator[Any]:
    """Of lists in it, which are never called, the members in their place."""
    for child in module.children():
        if type(child).forward is torch.nn.Module.forward:
            yield from _called(torch, child)
        else:
            yield child


def _siblings(torch: Any, module: Any) -> List[Any]:
    """Such as self.down1, self.down2 and self.down3."""
    if isinstance(module, _lists(torch)):
        return []
    return _recurring(list(module.children()), 3)


def _recurring(children: List[Any], least: int) -> List[Any]:
    """Those of a class that has so many, and more to it than a layer with its norm."""
    counts = collections.Counter(map(kind_of, children))
    return [
        child
        for child in children
        if counts[kind_of(child)] >= least and _weights(child) > 1
    ]


def _lists(torch: Any) -> Tuple[type, ...]:
    return torch.nn.ModuleList, torch.nn.Sequential, torch.nn.ModuleDict


def _weights(module: Any) -> int:
    """How many layers with parameters; norms count where there is nothing else."""
    owners = [m for m in module.modules() if m._parameters]
    return sum(not _is_norm(m) for m in owners) or len(owners[:1])


def _is_norm(module: Any) -> bool:
    return "norm" in type(module).__name__.lower()


def _is_layer(module: Any) -> bool:
    """What Transformers itself would run again, with nothing such inside."""
    return _is_checkpointed(module) and not _has_layers(module)


def _is_checkpointed(module: Any) -> bool:
    kinds = kind_of(module).__mro__
    return any(kind.__name__ == "GradientCheckpointingLayer" for kind in kinds)


def _has_layers(module: Any) -> bool:
    inner = module._modules.get("_orig_mod", module)
    return any(m is not inner and _is_checkpointed(m) for m in inner.modules())


def _is_stage(torch: Any, module: Any) -> bool:
    """Blocks are inside of it: modules of one class that each normalize, as the experts
    of a layer do not."""
    if _is_checkpointed(module) or _has_layers(module):
        return _has_layers(module)
    lists = (module, *module.children())
    return any(
        _weights(block) > 1 and any(map(_is_norm, block.modules()))
        for found in lists
        for block in _members(torch, found)
    )


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
    return (m for m in _called(torch, module) if not is_left_alone(torch, m))


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
