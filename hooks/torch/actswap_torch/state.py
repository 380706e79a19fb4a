# SPDX-License-Identifier: Apache-2.0
"""What a block's forward reads and changes beside tensors: random generators,
attributes, counters, buffers, and the modes of PyTorch that it runs under. Taken at its
entry, so that running it again begins with the same and leaves nothing behind."""

from __future__ import annotations

import collections
import contextlib
import operator
import random
import sys
import types
from typing import Any, Callable, Dict, Iterator, List, Set, Tuple

from . import reach

MOST = 4096  # values that are looked at
LONGEST = 4096  # of a container that is copied
LARGEST = 1 << 20  # bytes of an array that is
DEPTH = 4
# Nobody's state, or state of its own kind.
CLOSED = (
    str,
    bytes,
    int,
    float,
    complex,
    type(None),
    type,
    types.ModuleType,
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodType,
)
KINDS = (list, dict, set, collections.deque, bytearray)
BASES = (collections.OrderedDict, *KINDS)
# Whose instances other threads may be at work on.
OTHERS = {"torch", "threading", "_thread", "queue", "multiprocessing", "concurrent"}
OTHERS |= {"asyncio", "logging", "tqdm", "io", "_io", "weakref", __package__}

Snapshot = List[Tuple[Any, Any]]  # containers with copies of them


# --- Containers


def base_of(container: Any) -> Any:
    """Whose methods read and write what is there. A class of the script's may make
    something else of it, such as a new object for each key."""
    kind = type(container)
    if kind in BASES:
        return kind
    return next(base for base in BASES if isinstance(container, base))


def is_array(value: Any) -> bool:
    """NumPy's, of numbers, and not so large that copies of it would be noticed."""
    numpy = sys.modules.get("numpy")
    return (
        numpy is not None
        and isinstance(value, numpy.ndarray)
        and not value.dtype.hasobject
        and value.nbytes <= LARGEST
    )


def copy_of(container: Any) -> Any:
    if is_array(container):
        return container.copy()
    if isinstance(container, dict):
        return dict(dict.items(container))
    base = base_of(container)
    plain = bytearray if base is bytearray else set if base is set else list
    return plain(base.__iter__(container))


def is_alike(a: Any, b: Any) -> bool:
    """The same objects in the same order; told fast, as it mostly is so."""
    return all(map(operator.is_, dict.keys(a), dict.keys(b))) and all(
        map(operator.is_, dict.values(a), dict.values(b))
    )


def is_changed(container: Any, before: Any) -> bool:
    if is_array(container):
        return bool(container.tobytes() != before.tobytes())
    base = base_of(container)
    if base.__len__(container) != len(before):
        return True
    if base is dict and is_alike(container, before):
        return False
    if isinstance(container, dict):
        missing = object()
        return any(before.get(k, missing) is not v for k, v in dict.items(container))
    if isinstance(container, (set, bytearray)):
        return bool(base.__ne__(container, before))
    return any(a is not b for a, b in zip(base.__iter__(container), before))


def put(container: Any, before: Any) -> None:
    """What did not change is not touched: others may be reading."""
    if is_array(container):
        container[...] = before
        return
    base = base_of(container)
    if isinstance(container, dict):
        for key in [key for key, _ in dict.items(container) if key not in before]:
            base.__delitem__(container, key)
        for key, value in before.items():
            if dict.get(container, key, container) is not value:
                base.__setitem__(container, key, value)
    elif isinstance(container, (list, bytearray)):
        base.__setitem__(container, slice(None), before)
    else:
        base.clear(container)
        (base.update if base is set else base.extend)(container, before)


def take(containers: List[Any]) -> Snapshot:
    return [(container, copy_of(container)) for container in containers]


def put_all(snapshot: Snapshot) -> None:
    for container, before in snapshot:
        if is_changed(container, before):
            put(container, before)


def dictionaries(modules: List[Any]) -> List[Any]:
    found: List[Any] = []
    for module in modules:
        own = module.__dict__
        found += (own, own["_parameters"], own["_buffers"], own["_modules"])
    return found


class Found:
    """What a walk came across: containers, and random generators of the script's own."""

    def __init__(self) -> None:
        self.containers: List[Any] = []
        self.tensors: List[Any] = []
        self.generators: List[Any] = []
        self.iterators = False  # which cannot be put back


def walk(torch: Any, values: Any, found: Found, seen: Set[int]) -> None:
    closed = (*CLOSED, torch.nn.Module)
    pending = [(value, 0) for value in values]
    while pending and len(seen) < MOST:
        value, depth = pending.pop()
        if isinstance(value, closed) or id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, torch.Tensor):
            found.tensors.append(value)
            continue
        inner = _open(torch, value, found)
        if depth < DEPTH:
            pending += [(item, depth + 1) for item in inner]


def _open(torch: Any, value: Any, found: Found) -> Any:
    """What lies in it, once it is noted."""
    if generator_of(torch, value):
        found.generators.append(value)
    elif isinstance(value, (tuple, frozenset)):
        return value
    elif is_array(value):
        found.containers.append(value)
    elif isinstance(value, KINDS):
        if base_of(value).__len__(value) > LONGEST:
            return ()
        found.containers.append(value)
        own = getattr(value, "__dict__", None)
        if isinstance(own, dict) and own:
            found.containers.append(own)
        inner = copy_of(value)
        if not isinstance(value, bytearray):
            return inner.values() if isinstance(value, dict) else inner
    elif type(value).__module__.partition(".")[0] in OTHERS:
        return ()
    elif hasattr(value, "__next__"):
        found.iterators = True
    elif isinstance(getattr(value, "__dict__", None), dict):
        found.containers.append(value.__dict__)
        return list(value.__dict__.values())
    return ()


def script_globals(modules: List[Any]) -> Iterator[Dict[str, Any]]:
    """Of the modules that forwards are written in, packages left out."""
    seen: Set[int] = set()
    for kind in {type(module) for module in modules}:
        forward = kind.forward
        while hasattr(forward, "_actswap_original"):
            forward = forward._actswap_original
        space = getattr(forward, "__globals__", None)
        if space is None or id(space) in seen or not reach.is_of_a_script(space):
            continue
        seen.add(id(space))
        yield space


def plain_globals(space: Dict[str, Any]) -> List[reach.Variable]:
    kinds = (bool, int, float, str)
    names = [name for name, value in list(space.items()) if isinstance(value, kinds)]
    return [reach.Variable(space, name) for name in names]


def versions(tensors: Any) -> List[Tuple[Any, int]]:
    """Of those that have one."""
    found = []
    for tensor in tensors:
        try:
            found.append((tensor, tensor._version))
        except Exception:  # made in inference mode, or no more than a tracer's
            continue
    return found


# --- Random generators


def generator_of(torch: Any, value: Any) -> Any:
    """How a generator is asked for its state and given one; None: it is none."""
    if isinstance(value, torch.Generator):
        return value.get_state, value.set_state
    if isinstance(value, random.Random):
        return value.getstate, value.setstate
    numpy = sys.modules.get("numpy.random")
    if numpy is not None:
        if isinstance(value, numpy.RandomState):
            return value.get_state, value.set_state
        bits: Any = getattr(value, "bit_generator", None)
        if isinstance(value, numpy.Generator):
            return (lambda: bits.state), (lambda state: setattr(bits, "state", state))
    return None


def generators(torch: Any, devices: Any, own: List[Any]) -> List[Tuple[Any, Any]]:
    found = [
        (torch.get_rng_state, torch.set_rng_state),
        (random.getstate, random.setstate),
    ]
    numpy = sys.modules.get("numpy.random")
    if numpy is not None:
        found.append((numpy.get_state, numpy.set_state))
    found += [generator_of(torch, generator) for generator in own]
    for device in devices:
        generator = torch.cuda.default_generators[device]
        found.append((generator.get_state, generator.set_state))
    return found


class Random:
    """The states of all generators that a block may draw from."""

    def __init__(self, torch: Any, devices: Any, own: List[Any]) -> None:
        pairs = generators(torch, devices, own)
        self.states = [(put_state, get()) for get, put_state in pairs]

    def put(self) -> None:
        for put_state, state in self.states:
            put_state(state)

    def apart(self, torch: Any, other: Random) -> List[bool]:
        """For each generator whether its state is another one."""
        pairs = zip(self.states, other.states)
        return [not same(torch, a, b) for (_, a), (_, b) in pairs]


def same(torch: Any, a: Any, b: Any) -> bool:
    if isinstance(a, torch.Tensor):
        return bool(torch.equal(a, b))
    if hasattr(a, "tobytes"):
        return bool(a.tobytes() == b.tobytes())
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(same(torch, x, y) for x, y in zip(a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(torch, a[k], b[k]) for k in a)
    return bool(a == b)


# --- Modes of PyTorch


def ambience(torch: Any) -> Callable[[], contextlib.ExitStack]:
    """Remembers the modes that this thread runs under. Returns what enters them again."""
    checkpoint = torch.utils.checkpoint
    of_device, of_host = checkpoint._get_autocast_kwargs("cuda")
    switches = [(put_switch, get()) for get, put_switch in switches_of(torch)]
    modes = torch.overrides._get_current_function_mode_stack()
    kind = getattr(sys.modules.get("torch.utils._device"), "DeviceContext", None)
    devices = [mode.device for mode in modes if kind and isinstance(mode, kind)]

    def enter() -> contextlib.ExitStack:
        stack = contextlib.ExitStack()
        stack.enter_context(torch.enable_grad())
        stack.enter_context(torch.autocast("cuda", **of_device))
        stack.enter_context(torch.autocast("cpu", **of_host))
        if kind and devices:
            stack.enter_context(kind(devices[-1]))
        for (put_switch, then), (get, _) in zip(switches, switches_of(torch)):
            now = get()
            if now != then:
                stack.callback(put_switch, now)
                put_switch(then)
        return stack

    return enter


def switches_of(torch: Any) -> List[Tuple[Any, Any]]:
    cuda = torch.backends.cuda
    return [
        (cuda.flash_sdp_enabled, cuda.enable_flash_sdp),
        (cuda.mem_efficient_sdp_enabled, cuda.enable_mem_efficient_sdp),
        (cuda.math_sdp_enabled, cuda.enable_math_sdp),
        (cuda.cudnn_sdp_enabled, cuda.enable_cudnn_sdp),
        (torch.get_float32_matmul_precision, torch.set_float32_matmul_precision),
        (torch.get_default_dtype, torch.set_default_dtype),
    ]
