# SPDX-License-Identifier: Apache-2.0
"""A trial of a block: what it saves is kept, and used. Its backward runs it again as well
and tells the library how that differed."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Set, Tuple

from . import again, state
from .reach import Reach

PLAIN = (bool, int, float, complex, str, bytes, type(None))


def alike(a: Any, b: Any) -> bool:
    """Of two states that hold objects of their own: as far as numbers and words tell."""
    if isinstance(a, PLAIN) or isinstance(b, PLAIN):
        return bool(a == b or (a != a and b != b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(alike(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(alike, a, b))
    if hasattr(a, "tobytes") and hasattr(b, "tobytes"):
        return bool(a.tobytes() == b.tobytes())
    return type(a) is type(b)


def bits_differ(torch: Any, a: Any, b: Any, read: bool) -> bool:
    """`read`: look at the answer; else only the memory that asking takes is taken."""
    words = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    if a.layout is not torch.strided or type(a) is not type(b):
        return type(a) is not type(b) or (read and not torch.equal(a, b))
    if a.data_ptr() == b.data_ptr():
        return False
    if a.is_complex():
        a, b = (torch.view_as_real(t.resolve_conj().resolve_neg()) for t in (a, b))
    word = words.get(a.element_size())
    if word is None or a.is_quantized:
        return read and not torch.equal(a, b)
    same = (a.view(word) == b.view(word)).all()
    return read and not same.item()


class Trial(again.Segment):
    def __init__(self, torch: Any, pack: Any, answers: Any) -> None:
        super().__init__(torch, pack, answers)
        self.values = pack.values()
        self.faults = 0
        self.repairs = 0
        self.saved: Dict[int, int] = {}  # bytes by address
        self.inputs: Dict[int, int] = {}
        self.own: Set[int] = set()  # of parameters and buffers
        self.done = False
        self.late: List[Tuple[Any, Any]] = []  # buffers that were saved

    def blame(self, fault: int) -> None:
        self.faults |= 1 << fault

    def kind_of(self, tensor: Any) -> Any:
        strides = tensor.stride() if tensor.layout is self.torch.strided else None
        return (*super().kind_of(tensor), strides)

    # --- Forward

    def add(self, call: Any, modules: Any, devices: Any, known: Any) -> None:
        torch = self.torch
        for tensor in again.tensors_of(torch, [*call.args, *call.kwargs.values()]):
            self._count(self.inputs, tensor)
        self.known = known
        self._look_around(modules)
        super().add(call, modules, devices, known)
        self._take_buffers(modules)

    def _look_around(self, modules: Any) -> None:
        """For all that the block may change beside what is a module's by its kind."""
        torch, known = self.torch, self.known
        found, reach = state.Found(), Reach(modules)
        own = [value for module in modules for value in module.__dict__.values()]
        spaces = list(state.script_globals(modules))
        seen = {
            id(tensor)
            for module in modules
            for table in (module._parameters, module._buffers)
            for tensor in table.values()
        }
        state.walk(torch, [*own, *reach.values], found, seen)
        state.walk(torch, [v for s in spaces for v in _containers(torch, s)], found, seen)
        if found.iterators:
            self.blame(self.pack.FAULT_STATE)
        known.generators = found.generators
        known.tensors = [again.weakref.ref(tensor) for tensor in found.tensors]
        taken = {id(container) for container in known.containers}
        self.deep = state.take([c for c in found.containers if id(c) not in taken])
        variables = [v for space in spaces for v in state.plain_globals(space)]
        variables += reach.variables.values()
        self.variables = [(variable, variable.get()) for variable in variables]
        parameters = [p for m in modules for p in m._parameters.values()]
        self.hooked = [(p, _hooks_of(p)) for p in parameters if p is not None]

    def _take_buffers(self, modules: Any) -> None:
        known = {(id(buffers), name) for buffers, name in self.known.buffers}
        self.buffers: List[Tuple[Any, str, Any, int, Any]] = []
        self.statistics: Set[int] = set()
        for module in modules:
            if self._is_norm(module):
                self.statistics.update(map(_address, module.buffers(recurse=False)))
            for tensor in module._parameters.values():
                if tensor is not None:
                    self.own.add(_address(tensor))
            for name, buffer in module._buffers.items():
                if buffer is None:
                    continue
                self.own.add(_address(buffer))
                if (id(module._buffers), name) not in known:
                    with self.torch.no_grad():
                        copy = buffer.detach().clone()
                    entry = (module, name, buffer, buffer._version, copy)
                    self.buffers.append(entry)

    def hooks(self) -> Tuple[Callable, Callable]:
        def pack(tensor: Any) -> Any:
            index = len(self.kinds)
            self.kinds.append(self.kind_of(tensor))
            self._count(self.saved, tensor)
            holder = again.Holder(self, index, self.pack.pack(tensor))
            self.holders.append(again.weakref.ref(holder))
            return holder

        return pack, again.open_holder

    def _count(self, table: Dict[int, int], tensor: Any) -> None:
        if tensor.is_cuda and not again.is_parameter(tensor):
            address = _address(tensor)
            if address and address not in self.own:
                table[address] = tensor.untyped_storage().nbytes()

    def note_results(self, output: Any) -> None:
        torch, pack, call = self.torch, self.pack, self.calls[-1]
        entry = call.entry
        self.left = state.Random(torch, entry.devices, self.known.generators)
        framework = {0, *range(len(self.left.states))[-len(entry.devices) or None :]}
        drawn = entry.random.apart(torch, self.left)
        if any(apart for n, apart in enumerate(drawn) if n not in framework):
            self.repairs |= pack.REPAIR_RANDOM
        changed = [pair for pair in self.deep if state.is_changed(*pair)]
        self.known.containers += [container for container, _ in changed]
        call.objects += changed
        for variable, before in self.variables:
            if (
                variable.get() is not before
                and variable.key() not in self.known.variables
            ):
                self.known.variables[variable.key()] = variable
                entry.variables.append((variable, before))
        if any(_hooks_of(parameter) != before for parameter, before in self.hooked):
            self.blame(pack.FAULT_HOOKS)
        self._note_changed_buffers(entry)
        if (
            entry.variables
            or call.objects
            and any(state.is_changed(*pair) for pair in call.objects)
            or any(state.is_changed(*pair) for pair in entry.snapshot)
        ):
            self.repairs |= pack.REPAIR_STATE
        self.watched = [c for c, _ in (*entry.snapshot, *call.objects)]
        self.left_behind = [state.copy_of(container) for container in self.watched]
        self.left_values = [variable.get() for variable, _ in entry.variables]
        super().note_results(output)
        if entry.late:
            self.blame(pack.FAULT_BUFFER)

    def end(self, output: Any) -> None:
        try:
            self.note_results(output)
        except Exception:  # what is kept is kept all the same
            self.blame(self.pack.FAULT_ERROR)
        if self.faults:
            self.tell()

    def _is_norm(self, module: Any) -> bool:
        kind = self.torch.nn.modules.batchnorm._NormBase
        return isinstance(module, kind) and module.training

    def _note_changed_buffers(self, entry: Any) -> None:
        for module, name, buffer, version, copy in self.buffers:
            now = module._buffers.get(name)
            if now is not buffer:
                continue  # another one, which the attributes tell
            if (
                buffer._version != version
                or self._is_norm(module)
                or bits_differ(self.torch, buffer.detach(), copy, self.values)
            ):
                self.known.buffers.append((module._buffers, name))
                entry.buffers.append((module._buffers, name, copy))
        if entry.buffers:
            self.repairs |= self.pack.REPAIR_BUFFERS
        self.buffers = []

    # --- Backward

    def open(self, holder: again.Holder) -> Any:
        with self.lock:
            task = self.torch._C._current_graph_task_id()
            if not self.done and task != -1:
                self.done = True
                listening = self.pack.record(None)
                try:
                    self._try()
                except Exception:  # of ours: what was kept is used all the same
                    self.blame(self.pack.FAULT_ERROR)
                    self.tell()
                finally:
                    self.pack.record(listening)
        return self.pack.unpack(holder.handle)

    def _try(self) -> None:
        pack, call = self.pack, self.calls[0]
        changed = call.entry.changed()
        if changed is not None:
            known = any(changed[0] is tensor for tensor, _ in call.entry.parameters)
            self.blame(pack.FAULT_PARAMETER if known else pack.FAULT_BUFFER)
        self._check_inputs(call)
        if not self.faults:
            originals = [buffers[name] for buffers, name, _ in call.entry.buffers]
            versions = [buffer._version for buffer in originals]
            others = state.take([container for container, _ in self.deep])
            try:
                with self.torch.no_grad():
                    self.run_again()
            except Exception:
                self.blame(pack.FAULT_ERROR)
            if [buffer._version for buffer in originals] != versions:
                self.blame(pack.FAULT_BUFFER)
            if any(state.is_changed(*pair) for pair in others):
                state.put_all(others)
                self.blame(pack.FAULT_STATE)
        self.tell()

    def tell(self) -> None:
        if not self.calls:
            return
        saved, boundary = sum(self.saved.values()), sum(self.inputs.values())
        number, self.done = self.calls[0].number, True
        self.calls.clear()
        self.pack.tried(number, self.faults, self.repairs, saved, boundary, self.values)

    def _check_inputs(self, call: Any) -> None:
        def look(given: Any) -> Any:
            try:
                given.take(self.pack)
            except RuntimeError:
                self.blame(self.pack.FAULT_INPUT)
            return given

        again.mapped([*call.args, *call.kwargs.values()], again._Given, look)

    def check(self, call: Any) -> None:
        """It was looked at before."""

    def hooks_again(self) -> Tuple[Callable, Callable]:
        def pack(tensor: Any) -> Any:
            index, self.next = self.next, self.next + 1
            if index >= len(self.kinds):
                self.blame(self.pack.FAULT_COUNT)
            elif self.kind_of(tensor) != self.kinds[index]:
                self.blame(self.pack.FAULT_KIND)
            else:
                self._compare(index, tensor)
            kept = tensor if again.is_parameter(tensor) else tensor.detach()
            self.sample.add(tensor)
            return kept

        return pack, again.itself

    def sample_again(self, call: Any) -> Any:
        return call.sample

    def compare(self, call: Any) -> None:
        """Every bit was compared. But later ones have nothing but samples."""
        self.sample.take()
        if self.sample.failed:
            self.blame(self.pack.FAULT_ERROR)

    def _compare(self, index: int, tensor: Any) -> None:
        holder = self.holders[index]()
        if holder is None:  # a part of the graph that nobody needs
            return
        with self.torch.no_grad():
            kept = self.pack.unpack(holder.handle)
            address = _address(kept)
            if address in self.statistics:
                return  # a normalization that trains saves them and does not read them
            if address in self.own and not again.is_parameter(kept):
                self.late.append((tensor.detach(), kept.detach()))
            elif bits_differ(self.torch, tensor.detach(), kept.detach(), self.values):
                self.blame(self.pack.FAULT_VALUES)

    def see_after(self, call: Any) -> None:
        torch, entry = self.torch, call.entry
        if any(bits_differ(torch, *pair, self.values) for pair in self.late):
            self.blame(self.pack.FAULT_VALUES)
        self.late.clear()
        now = state.Random(torch, entry.devices, self.known.generators)
        if any(self.left.apart(torch, now)):
            self.blame(self.pack.FAULT_RANDOM)
        for container, before in zip(self.watched, self.left_behind):
            if not alike(before, state.copy_of(container)):
                self.blame(self.pack.FAULT_STATE)
        for (variable, _), before in zip(entry.variables, self.left_values):
            if not alike(before, variable.get()):
                self.blame(self.pack.FAULT_STATE)

    def finish_again(self) -> None:
        if self.next != len(self.kinds):
            self.blame(self.pack.FAULT_COUNT)


def _address(tensor: Any) -> int:
    try:
        return int(tensor.untyped_storage().data_ptr())
    except Exception:  # sparse, or a wrapper: it has none
        return 0


def _hooks_of(parameter: Any) -> int:
    after = getattr(parameter, "_post_accumulate_grad_hooks", None)
    return len(parameter._backward_hooks or ()) + len(after or ())


def _containers(torch: Any, space: Dict[str, Any]) -> List[Any]:
    """Of a script's global names: instances of classes may be anybody's."""
    return [
        value
        for name, value in list(space.items())
        if not name.startswith("__")
        and (isinstance(value, state.KINDS) or state.generator_of(torch, value))
    ]
