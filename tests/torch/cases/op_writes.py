# SPDX-License-Identifier: Apache-2.0
"""Operators that write their arguments: which there are, and calls of them.

From the schemas: each aten operator with a written alias and kernels for CUDA and CPU.
Calls come from those harvested of the same overload or of its functional form, else from
the types of the arguments.
"""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Optional, Tuple

import torch
from op_calls import Call, Calls, overload, tensors_of
from torch.utils._pytree import tree_map_only

KEYS = ("CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional")


def has(name: str, key: str) -> bool:
    return torch._C._dispatch_has_kernel_for_dispatch_key(name, key)


def is_written(argument: Any) -> bool:
    return argument.alias_info is not None and argument.alias_info.is_write


def written_overloads() -> Dict[str, Any]:
    """By name: aten.add_.Tensor."""
    found = {}
    for name in torch._C._dispatch_get_registrations_for_dispatch_key("CUDA"):
        if not name.startswith("aten::"):
            continue
        packet, _, suffix = name[6:].partition(".")
        op = overload(f"aten.{packet}.{suffix or 'default'}")
        writes = any(is_written(a) for a in op._schema.arguments)
        if writes and any(has(name, key) for key in ("CPU", *KEYS)):
            found[str(op)] = op
    return found


def signature(op: Any) -> List[Tuple[str, str]]:
    """Without what is written by keyword: out=."""
    return [
        (a.name, str(a.type))
        for a in op._schema.arguments
        if not (is_written(a) and a.kwarg_only)
    ]


def outs(op: Any) -> List[str]:
    return [a.name for a in op._schema.arguments if is_written(a) and a.kwarg_only]


def filled(like: torch.Tensor) -> torch.Tensor:
    """A place for a result, with something in it."""
    return torch.ones(like.shape, dtype=like.dtype)


def with_outs(op: Any, functional: Any, call: Call) -> Optional[Call]:
    results = tensors_of(functional(*call[0], **call[1]))
    names = outs(op)
    if len(results) != len(names):
        return None
    return call[0], {**call[1], **dict(zip(names, map(filled, results)))}


def sources(op: Any, calls: Calls) -> Iterator[Call]:
    """Harvested calls that fit the operator, or its functional form."""
    yield from calls.get(str(op), []) if not outs(op) else []
    packet = str(op).split(".")[1]
    for name, known in calls.items():
        if name.split(".")[1] not in (packet, packet.rstrip("_")) or name == str(op):
            continue
        functional = overload(name)
        if signature(functional) != signature(op):
            continue
        for call in known:
            try:
                fitting = with_outs(op, functional, call) if outs(op) else call
            except Exception:
                continue
            if fitting is not None:
                yield fitting


# --- From the types alone

LIST = 3
SINGLE = ("state_steps", "found_inf", "grad_scale", "inv_scale", "growth_tracker", "lr")
EMPTY = ("max_exp_avg_sqs",)
# CPU kernels that believe their arguments: made up ones read outside of tensors.
TRUSTING = ("aten._compute_linear_combination", "aten._convert_indices_from")


def explicit() -> Calls:
    """Where the schema says too little."""
    one, none = torch.full((1,), 2.0), torch.zeros(1)
    rows = torch.tensor([0, 2])
    return {
        "aten._amp_update_scale_.default": [
            ((one, torch.zeros(1, dtype=torch.int32), none, 2.0, 0.5, 3), {}),
            ((one, torch.full((1,), 2, dtype=torch.int32), none, 2.0, 0.5, 3), {}),
            ((one, torch.zeros(1, dtype=torch.int32), none + 1, 2.0, 0.5, 3), {}),
        ],
        "aten.embedding_renorm_.default": [
            ((torch.arange(12.0).reshape(4, 3), rows, 1.0, 2.0), {})
        ],
    }


def tensor_for(argument: Any, dtype: torch.dtype, scalars: bool) -> torch.Tensor:
    """With `scalars`, what is only read has one element."""
    if argument.name == "scalars":
        return torch.full((LIST,), 0.5)
    if argument.name in SINGLE or (scalars and not is_written(argument)):
        return torch.ones((), dtype=dtype if argument.name not in SINGLE else torch.float)
    return (torch.rand(4, 6) * 3 + 1).to(dtype)


def value_for(argument: Any, dtype: torch.dtype, scalars: bool) -> Any:
    kind = str(argument.type)
    whole = not dtype.is_floating_point
    if kind == "Tensor":
        return tensor_for(argument, dtype, scalars)
    if kind == "List[Tensor]":
        count = 0 if argument.name in EMPTY else LIST
        return [tensor_for(argument, dtype, False) for _ in range(count)]
    if kind in ("number", "float"):
        return 2 if whole and kind == "number" else 0.5
    if kind in ("List[number]", "List[float]"):
        return [0.5] * LIST
    if kind == "bool":
        return False
    if kind == "int":
        return 1
    raise NotImplementedError(kind)


def made(op: Any) -> Iterator[Call]:
    """Some will be refused: the types say little of what an operator takes."""
    if str(op).startswith(TRUSTING):
        return
    yield from explicit().get(str(op), [])
    for dtype in (torch.float32, torch.int64):
        for scalars in (False, True):
            torch.manual_seed(0)
            args: List[Any] = []
            kwargs: Dict[str, Any] = {}
            try:
                for argument in op._schema.arguments:
                    if argument.has_default_value() and not is_written(argument):
                        continue
                    value = value_for(argument, dtype, scalars)
                    if argument.kwarg_only:
                        kwargs[argument.name] = value
                    else:
                        args.append(value)
            except NotImplementedError:
                return
            yield tuple(args), kwargs


# --- Variants of a call

WIDER = {torch.float32: torch.float64, torch.int64: torch.int32}


def sliced(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.dim() == 0 or tensor.numel() == 0:
        return tensor.clone()
    wide = torch.ones((*tensor.shape[:-1], tensor.shape[-1] * 2), dtype=tensor.dtype)
    view = wide[..., ::2]
    view.copy_(tensor)
    return view


def transposed(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.dim() < 2:
        return sliced(tensor)
    return tensor.transpose(0, -1).contiguous().transpose(0, -1)


def every(call: Call, change: Any) -> Call:
    return tree_map_only(torch.Tensor, change, call)


def mixed(op: Any, call: Call) -> Optional[Call]:
    """The last tensor argument, or the first out=, in another type of its kind."""
    args, kwargs = list(call[0]), dict(call[1])
    names = outs(op)
    if names and kwargs[names[0]].dtype in WIDER:
        kwargs[names[0]] = kwargs[names[0]].to(WIDER[kwargs[names[0]].dtype])
        return tuple(args), kwargs
    for i in range(len(args) - 1, 0, -1):
        if isinstance(args[i], torch.Tensor) and args[i].dtype in WIDER:
            args[i] = args[i].to(WIDER[args[i].dtype])
            return tuple(args), kwargs
    return None


def aliased(op: Any, call: Call) -> Optional[Call]:
    """out= is an input; or what an in-place operator reads is what it writes."""
    args, kwargs = list(call[0]), dict(call[1])
    target = kwargs[outs(op)[0]] if outs(op) else args[0] if args else None
    if not isinstance(target, torch.Tensor):
        return None
    for i in range(0 if outs(op) else 1, len(args)):
        same = isinstance(args[i], torch.Tensor) and args[i] is not target
        if same and args[i].shape == target.shape and args[i].dtype == target.dtype:
            if outs(op):
                kwargs[outs(op)[0]] = args[i]
            else:
                args[i] = target
            return tuple(args), kwargs
    return None


def variants(op: Any, call: Call) -> Iterator[Tuple[str, Call]]:
    yield "contiguous", call
    yield "sliced", every(call, sliced)
    yield "transposed", every(call, transposed)
    for kind, changed in (("mixed", mixed(op, call)), ("aliased", aliased(op, call))):
        if changed is not None:
            yield kind, changed
