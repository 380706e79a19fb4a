# SPDX-License-Identifier: Apache-2.0
"""Says what memory holds, as far as only PyTorch knows: parameters, gradients, inputs,
the optimizer's state, and what a script holds beside them."""

from __future__ import annotations

import functools
import gc
import weakref
from typing import Any, Dict, Iterator, List, Set

MOST = 4096  # objects that are looked into at once


def is_fake(kind: type) -> bool:
    """A tracer's tensor: it has no memory, and warns who asks where that is."""
    return any(base.__name__ == "FakeTensor" for base in kind.__mro__)


def tensors_in(torch: Any, *values: Any) -> List[Any]:
    """The tensors in nested containers, in plain objects such as caches as well."""
    closed = (str, bytes, int, float, type(None), type, torch.nn.Module)
    found: List[Any] = []
    pending = list(values)
    seen: Set[int] = set()
    while pending and len(seen) < MOST:
        value = pending.pop()
        if isinstance(value, torch.Tensor):
            if not is_fake(type(value)):
                found.append(value)
        elif not isinstance(value, closed) and id(value) not in seen:
            seen.add(id(value))
            if isinstance(value, dict):
                pending += value.values()
            elif isinstance(value, (list, tuple, set)):
                pending += value
            else:
                pending += getattr(value, "__dict__", {}).values()
    return found


def moments_of(optimizer: Any) -> int:
    """How many values an optimizer of PyTorch's keeps for each of a parameter; 0: not
    known. As their documentation has it (torch.optim)."""
    given = optimizer.defaults
    kept = {
        "SGD": bool(given.get("momentum")),
        "Adam": 2 + bool(given.get("amsgrad")),
        "AdamW": 2 + bool(given.get("amsgrad")),
        "NAdam": 2,
        "RAdam": 2,
        "Adamax": 2,
        "Adadelta": 2,
        "Rprop": 2,
        "RMSprop": 1 + (given.get("momentum", 0) > 0) + bool(given.get("centered")),
    }
    kinds = [kind for kind in type(optimizer).__mro__ if kind.__name__ in kept]
    return int(kept[kinds[0].__name__]) if kinds else 0


class Names:
    """Names are given when something without one is alive: the library says so."""

    def __init__(self, torch: Any, pack: Any) -> None:
        self._torch = torch
        self._pack = pack
        self._parameters: Dict[int, Any] = {}  # weak references, by id
        self._buffers: List[Any] = []
        self._kinds: Set[Any] = set()  # shapes and types of parameters
        self._hooks: List[Any] = []
        self.optimizers: Any = weakref.WeakSet()  # all that were made
        self._states: Any = (
            weakref.WeakKeyDictionary()
        )  # optimizers, to the length of its state
        self._between = 0  # bytes without a name that the last step's batch was
        self._usual = 0.0  # and what any step ends with, of late
        self._steps = 0
        self._phases: Dict[int, int] = {}  # of the first step, by moment
        self._lazy: List[Any] = []  # parameters that a first forward makes

    def undo(self) -> None:
        for handle in self._hooks:
            handle.remove()
        self._hooks.clear()

    # --- Models

    def adopt(self, root: Any) -> None:
        for parameter in root.parameters():
            self._add_parameter(parameter)
        self._buffers += map(weakref.ref, root.buffers())
        self.see_models()

    def _add_parameter(self, parameter: Any) -> None:
        key, known = id(parameter), self._parameters
        entry = known.get(key)
        if entry is not None and entry() is parameter:
            return
        if self._is_lazy(parameter):
            self._lazy.append(weakref.ref(parameter))
            return
        known[key] = weakref.ref(parameter, lambda _: known.pop(key, None))
        self._kinds.add((parameter.shape, parameter.dtype))
        if parameter.requires_grad and parameter.is_leaf:
            self._watch_gradient(parameter)

    def _is_lazy(self, parameter: Any) -> bool:
        """True if it has neither shape nor memory before its module's first call."""
        return isinstance(parameter, self._torch.nn.parameter.UninitializedTensorMixin)

    def _watch_gradient(self, parameter: Any) -> None:
        """Before the script's own hooks, which may use the gradient and free it."""
        register = parameter.register_post_accumulate_grad_hook
        handle = register(self._pack.see_gradient)
        hooks = parameter._post_accumulate_grad_hooks
        # They are called in the order of the dict below, which OrderedDict.move_to_end
        # does not change.
        for key in [key for key in hooks if key != handle.id]:
            hooks[key] = hooks.pop(key)
        self._hooks.append(handle)

    def parameters(self) -> Iterator[Any]:
        for reference in list(self._parameters.values()):
            parameter = reference()
            if parameter is not None:
                yield parameter

    def see_models(self) -> None:
        """They may have been moved to the host and back."""
        buffers = [tensor for ref in self._buffers if (tensor := ref()) is not None]
        self._pack.tag([*self.parameters(), *buffers], self._pack.PARAMETER)

    def see_inputs(self, args: Any) -> None:
        tensors = tensors_in(self._torch, args)
        inputs = [tensor for tensor in tensors if tensor.grad_fn is None]
        self._pack.tag(inputs, self._pack.INPUT)
        if self._pack.unnamed(self._pack.STEP):
            self.see_models()
        if self._steps == 0:
            self._expect()

    # --- Optimizers

    def made(self, original: Any) -> Any:
        """For Optimizer.__init__."""

        @functools.wraps(original)
        def init(optimizer: Any, *args: Any, **kwargs: Any) -> None:
            original(optimizer, *args, **kwargs)
            self.optimizers.add(optimizer)

        return init

    def _expect(self) -> None:
        """What there will be when the first step is over, unless memory ends before."""
        gradients = state = 0
        for optimizer in list(self.optimizers):
            kept = moments_of(optimizer)
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    if self._is_lazy(parameter):
                        continue
                    if parameter.is_cuda and parameter.requires_grad:
                        bytes = (parameter.nbytes + 511) // 512 * 512
                        gradients += bytes
                        state += kept * bytes
        self._pack.expect(self._pack.GRADIENT, gradients)
        self._pack.expect(self._pack.OPTIMIZER_STATE, state)

    def see_gradients(self, optimizer: Any) -> None:
        if optimizer not in self._states:
            self._states[optimizer] = 0
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    self._add_parameter(parameter)
            self.see_models()
        if self._pack.unnamed(self._pack.BACKWARD):
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    self._pack.see_gradient(parameter)

    def see_state(self, optimizer: Any) -> None:
        """It may also have been loaded, or moved, since the last step."""
        count, between = len(optimizer.state), self._pack.unnamed(self._pack.STEP)
        changed = self._states.get(optimizer) != count or between != self._between
        if changed or self._pack.unnamed(self._pack.OPTIMIZER):
            self._states[optimizer] = count
            self._tag_state(optimizer)

    def _tag_state(self, optimizer: Any) -> None:
        torch, pack = self._torch, self._pack
        keys = [key for key in optimizer.state if isinstance(key, torch.Tensor)]
        pack.tag(keys, pack.PARAMETER)
        values = tensors_in(torch, *optimizer.state.values())
        state = [tensor for tensor in values if not self._is_parameter(tensor)]
        pack.tag(state, pack.OPTIMIZER_STATE)
        pack.suggest(tensors_in(torch, vars(optimizer)), pack.OPTIMIZER_STATE)

    def _is_parameter(self, tensor: Any) -> bool:
        entry = self._parameters.get(id(tensor))
        return entry is not None and entry() is tensor

    # --- What the script holds

    def end_phase(self, moment: int) -> None:
        """In the first step libraries make themselves at home in device memory: what no
        tensor holds is theirs, and not what this phase made for the script. A step may
        have thousands of phases: the first, second, fourth, eighth is looked at."""
        if self._lazy:
            self._see_lazy()
        if self._steps or not self._pack.unnamed(moment):
            return
        count = self._phases[moment] = self._phases.get(moment, 0) + 1
        if count & (count - 1) == 0:
            self._survey(named=False)

    def _see_lazy(self) -> None:
        lazy, self._lazy = self._lazy, []
        for reference in lazy:
            parameter = reference()
            if parameter is not None:
                self._add_parameter(parameter)
        self.see_models()

    def end_step(self) -> None:
        pack = self._pack
        moments = (pack.STEP, pack.FORWARD, pack.BACKWARD, pack.OPTIMIZER)
        unnamed = sum(map(pack.unnamed, moments))
        if unnamed > 2 * self._usual or (unnamed and self._steps < 2):
            self._survey(named=True)
        self._usual = max(unnamed, 0.875 * self._usual)
        self._between = pack.unnamed(pack.STEP)
        self._steps += 1

    def _survey(self, named: bool) -> None:
        """All tensors that Python knows of; some 30 ms with a million objects."""
        torch, pack = self._torch, self._pack
        kinds: Dict[type, Any] = {}
        found: Dict[Any, List[Any]] = {torch.Tensor: [], torch.nn.Module: [], None: []}
        for item in gc.get_objects():
            kind = type(item)
            if kind not in kinds:
                bases = (torch.Tensor, torch.nn.Module)
                base = next((b for b in bases if issubclass(kind, b)), None)
                kinds[kind] = None if is_fake(kind) else base
            base = kinds[kind]
            if base is not None:
                found[base].append(item)
        tensors = found[torch.Tensor]
        gradients = [g for t in tensors if (g := self._gradient_of(t)) is not None]
        pack.held(tensors)
        pack.held(gradients)
        pack.looked()
        if named:
            self._name_held(tensors, found[torch.nn.Module], gradients)

    def _gradient_of(self, tensor: Any) -> Any:
        try:
            known = tensor.is_leaf or tensor.retains_grad
            return tensor.grad if known else None
        except Exception:  # wrappers of function transforms, fake tensors
            return None

    def _name_held(self, tensors: Any, modules: Any, gradients: Any) -> None:
        torch, pack = self._torch, self._pack
        pack.tag(gradients, pack.GRADIENT)
        for optimizer in list(self._states):
            self._tag_state(optimizer)
        own = [t for t in tensors if isinstance(t, torch.nn.Parameter)]
        for module in modules:
            own += tensors_in(torch, module.__dict__.get("_buffers"))
        pack.tag(own, pack.PARAMETER)
        pack.suggest(tensors_in(torch, *map(vars, modules)), pack.PARAMETER)
        # Copies of parameters, such as averages, look like them.
        pack.suggest([t for t in tensors if self._is_copy(t)], pack.PARAMETER)

    def _is_copy(self, tensor: Any) -> bool:
        try:
            kind = (tensor.shape, tensor.dtype)
            return tensor.grad_fn is None and kind in self._kinds
        except Exception:
            return False
