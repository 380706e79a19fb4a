# SPDX-License-Identifier: Apache-2.0
"""A block's forward that is run again in backward: for the tensors that it saved, or, in
a trial, to see whether they come out the same."""

from __future__ import annotations

import contextlib
import contextvars
import itertools
import threading
import weakref
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from . import state
from .samples import Answers, Sample, is_parameter

TURNS = itertools.count()


class Stop(BaseException):
    """All that was saved is there again."""


class Holder:
    """What autograd keeps in place of a saved tensor."""

    __slots__ = ("segment", "index", "handle", "__weakref__")

    def __init__(self, segment: Any, index: int, handle: Any = None) -> None:
        self.segment, self.index, self.handle = segment, index, handle


class _Given:
    """A tensor among the arguments: the library's handle of it."""

    def __init__(self, pack: Any, tensor: Any) -> None:
        self.handle = pack.pack(tensor)
        self.itself = tensor.is_leaf and tensor.requires_grad
        self.requires_grad = tensor.requires_grad

    def take(self, pack: Any) -> Any:
        tensor = pack.unpack(self.handle)
        if self.itself:
            return tensor
        return tensor.detach().requires_grad_(self.requires_grad)


class _Made:
    """A tensor among the arguments that a block before it in the segment returned."""

    def __init__(self, call: int, place: int) -> None:
        self.call, self.place = call, place


def mapped(value: Any, kind: Any, change: Callable[[Any], Any]) -> Any:
    """With each instance of `kind` in plain containers changed."""
    if isinstance(value, kind):
        return change(value)
    if type(value) in (list, tuple):
        return type(value)(mapped(item, kind, change) for item in value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(mapped(item, kind, change) for item in value))
    if type(value) is dict:
        return {key: mapped(item, kind, change) for key, item in value.items()}
    return value


def tensors_of(torch: Any, value: Any) -> List[Any]:
    found: List[Any] = []
    mapped(value, torch.Tensor, found.append)
    if isinstance(value, dict) and type(value) is not dict:
        mapped(list(value.values()), torch.Tensor, found.append)
    return found


class Known:
    """What trials of a block have shown of the state that it changes."""

    def __init__(self) -> None:
        self.containers: List[Any] = []
        self.generators: List[Any] = []
        self.variables: Dict[Any, Any] = {}  # by key
        self.buffers: List[Tuple[Dict[str, Any], str]] = []
        self.tensors: List[Any] = []  # weak; that it can get at, and no buffers


class Entry:
    """The state at a block's entry."""

    def __init__(
        self, torch: Any, modules: List[Any], devices: Any, known: Known
    ) -> None:
        self.torch, self.known, self.devices = torch, known, devices
        self.enter_modes = state.ambience(torch)
        self.random = state.Random(torch, devices, known.generators)
        self.snapshot = state.take(state.dictionaries(modules) + known.containers)
        self.context = contextvars.copy_context()
        self.variables = [(v, v.get()) for v in known.variables.values()]
        self.parameters = [
            (parameter, parameter._version)
            for parameters in self._dictionaries(1)
            for parameter in parameters.values()
            if parameter is not None
        ]
        with torch.no_grad():
            self.buffers = [
                (buffers, name, buffers[name].detach().clone())
                for buffers, name in known.buffers
                if buffers.get(name) is not None
            ]
        self.others = [
            ((id(original), name), buffer, buffer._version)
            for (original, copy) in self.snapshot[2 : self._end() : 4]
            for name, buffer in copy.items()
            if buffer is not None
        ]
        tensors = (reference() for reference in known.tensors)
        self.tensors = state.versions(t for t in tensors if t is not None)
        self.late: List[Any] = []

    def _dictionaries(self, which: int) -> List[Any]:
        """Of each module its attributes (0), parameters, buffers (2) or modules."""
        return [copy for _, copy in self.snapshot[which : self._end() : 4]]

    def _end(self) -> int:
        return len(self.snapshot) - len(self.known.containers)

    def note_tensors(self) -> None:
        """At the exit. Those that were written, beside what is known."""
        known = {(id(buffers), name) for buffers, name, _ in self.buffers}
        others = [(b, version) for key, b, version in self.others if key not in known]
        self.still = [(buffer, buffer._version) for buffer, _ in others]
        self.late = written([*others, *self.tensors])

    def changed(self) -> Optional[Tuple[Any, int]]:
        """A parameter or buffer that is not what it was, with the version it had."""
        for tensor, version in (*self.parameters, *self.still):
            if tensor._version != version:
                return tensor, version
        return None

    def again(self, body: Callable[[], Any]) -> Any:
        """Runs it as at the entry, and leaves nothing behind."""
        random = state.Random(self.torch, self.devices, self.known.generators)
        now = state.take([container for container, _ in self.snapshot])
        values = [(variable, variable.get()) for variable, _ in self.variables]
        try:
            self.random.put()
            state.put_all(self.snapshot)
            for variable, value in self.variables:
                variable.put(value)
            for buffers, name, buffer in self.buffers:
                buffers[name] = buffer.clone()
            with self._unwritten():
                return self.context.copy().run(self._run_inside, body)
        finally:
            state.put_all(now)
            for variable, value in values:
                variable.put(value)
            random.put()

    def _run_inside(self, body: Callable[[], Any]) -> Any:
        with self.enter_modes():
            return body()

    @contextlib.contextmanager
    def _unwritten(self) -> Iterator[None]:
        """Nobody knew that these would be written: there is no copy from the entry, but
        they will be what they are now."""
        torch = self.torch
        keep_version = torch.autograd._unsafe_preserve_version_counter
        with contextlib.ExitStack() as stack, torch.no_grad():
            for tensor in self.late:
                stack.enter_context(keep_version(tensor))
                stack.callback(tensor.detach().copy_, tensor.detach().clone())
            with torch.enable_grad():
                yield


def written(tensors: List[Tuple[Any, int]]) -> List[Any]:
    """Those whose version is not that any more."""
    return [tensor for tensor, version in tensors if tensor._version != version]


class Call:
    """One block's forward: with what, and in which state."""

    def __init__(
        self, number: int, original: Callable, module: Any, args: Any, kwargs: Any
    ) -> None:
        self.number, self.original, self.module = number, original, module
        self.args, self.kwargs = args, kwargs
        self.entry: Any = None
        self.objects: Any = None  # containers among the arguments, as at the entry
        self.sample: Any = None  # of what it saved


class Segment:
    """Blocks whose saved tensors are not kept. The first one that is needed runs all of
    them again; each is handed out once and gone then. A backward that needs them again
    runs them again."""

    def __init__(self, torch: Any, pack: Any, answers: Answers) -> None:
        self.torch, self.pack, self.answers = torch, pack, answers
        self.calls: List[Call] = []
        self.kinds: List[Any] = []  # shape, type and device of what was saved
        self.holders: List[Any] = []  # weak
        self.made: Dict[int, Any] = {}  # results, by id: weak, call, place, version
        self.needed: set = set()  # calls whose results others take
        self.tensors: Dict[int, Any] = {}
        self.task: Any = None  # the backward that they are for
        self.next = 0
        self.sample: Any = None  # of the call that is run again
        self.lock = threading.RLock()

    # --- Forward

    def add(self, call: Call, modules: List[Any], devices: Any, known: Known) -> None:
        kind = self.torch.Tensor
        call.args = mapped(call.args, kind, self._keep)
        call.kwargs = mapped(call.kwargs, kind, self._keep)
        call.entry = Entry(self.torch, modules, devices, known)
        found = state.Found()
        state.walk(self.torch, (*call.args, *call.kwargs.values()), found, set())
        call.objects = [pair for pair in state.take(found.containers)]
        call.entry.tensors += state.versions(found.tensors)
        call.sample = Sample(self.torch, next(TURNS))
        self.calls.append(call)

    def _keep(self, tensor: Any) -> Any:
        made = self.made.get(id(tensor))
        if made is not None and made[0]() is tensor and made[3] == tensor._version:
            self.needed.add(made[1])
            return _Made(made[1], made[2])
        return _Given(self.pack, tensor)

    def note_results(self, output: Any) -> None:
        call = len(self.calls) - 1
        for place, tensor in enumerate(tensors_of(self.torch, output)):
            reference = weakref.ref(tensor)
            self.made[id(tensor)] = (reference, call, place, tensor._version)
        self.calls[-1].entry.note_tensors()

    def end(self, output: Any) -> None:
        """The forward of the last call is over."""
        self.calls[-1].sample.take()
        self.note_results(output)

    def kind_of(self, tensor: Any) -> Any:
        return tensor.shape, tensor.dtype, tensor.device

    def hooks(self) -> Tuple[Callable, Callable]:
        def pack(tensor: Any) -> Any:
            holder = Holder(self, len(self.kinds))
            self.kinds.append(self.kind_of(tensor))
            self.holders.append(weakref.ref(holder))
            self.calls[-1].sample.add(tensor)
            return holder

        return pack, open_holder

    # --- Backward

    def open(self, holder: Holder) -> Any:
        with self.lock:
            task = self.torch._C._current_graph_task_id()
            if task != self.task or holder.index not in self.tensors:
                self.tensors.clear()
                listening = self.pack.record(None)
                try:
                    self.run_again()
                finally:
                    self.pack.record(listening)
                self.task = task
            tensor = self.tensors.pop(holder.index)
            if task == -1:
                self.tensors.clear()
        self.pack.opened(tensor if is_parameter(tensor) else None)
        return tensor

    def hooks_again(self) -> Tuple[Callable, Callable]:
        def pack(tensor: Any) -> Any:
            index, self.next = self.next, self.next + 1
            if index >= len(self.kinds) or self.kind_of(tensor) != self.kinds[index]:
                raise self.differs()
            kept = tensor if is_parameter(tensor) else tensor.detach()
            self.sample.add(tensor)
            if self.holders[index]() is not None:
                self.tensors[index] = kept
            if self.next == len(self.kinds):
                raise Stop
            return kept

        return pack, itself

    def differs(self) -> Exception:
        return RuntimeError(
            "actswap: block "
            f"{type(self.calls[-1].module).__name__} did not save the same tensors when "
            "it was run again in backward, though it did before. Set ACTSWAP_POLICY=off "
            "or offload, or recompute:blocks= without it"
        )

    def check(self, call: Call) -> None:
        changed = call.entry.changed()
        if changed is not None:
            tensor, version = changed
            text = self.pack_messages().modified_tensor(
                tensor, tensor._version, version, None, 0
            )
            raise RuntimeError(text)

    def pack_messages(self) -> Any:
        from . import messages

        return messages

    def run_again(self) -> None:
        """Puts what was saved into self.tensors."""
        pack = self.pack
        self.next = 0
        node = pack.number()
        pack.mark(pack.AGAIN)
        results: Dict[int, List[Any]] = {}
        try:
            for index, call in enumerate(self.calls):
                self.check(call)
                self.sample = self.sample_again(call)
                output = self.run_call_again(call, results)
                self.compare(call)
                if index in self.needed:
                    results[index] = tensors_of(self.torch, output)
            self.finish_again()
        except Stop:
            self.compare(call)
        finally:
            self.sample = None
            results.clear()
            pack.mark(pack.AGAIN_END)
            pack.put_back(node)

    def sample_again(self, call: Call) -> Sample:
        return Sample(self.torch, call.sample.turn, call.sample)

    def compare(self, call: Call) -> None:
        """What it saved, as far as it was run again, with what its forward saved."""
        self.sample.take()
        if call.entry.late:
            self.answers.fail(call.number, self.pack.FAULT_BUFFER)
        if not call.sample.compares(self.sample):
            self.answers.fail(call.number, self.pack.FAULT_ERROR)
        else:
            self.answers.add(call.sample.differs(self.sample), call.number)

    def see_after(self, call: Call) -> None:
        """Behind a call that was run again, with what it left still there."""

    def finish_again(self) -> None:
        if self.next != len(self.kinds):
            raise self.differs()

    def run_call_again(self, call: Call, results: Dict[int, List[Any]]) -> Any:
        def give(value: Any) -> Any:
            if isinstance(value, _Made):
                return results[value.call][value.place]
            return value.take(self.pack)

        kinds = (_Given, _Made)
        args = mapped(call.args, kinds, give)
        kwargs = mapped(call.kwargs, kinds, give)
        now = state.take([container for container, _ in call.objects])

        def run_body() -> Any:
            state.put_all(call.objects)
            self.pack.enter(call.number)
            try:
                output = run_hooked(self.torch, self.hooks_again(), call, args, kwargs)
                self.see_after(call)
                return output
            finally:
                self.pack.leave(call.number)
                state.put_all(now)

        return call.entry.again(run_body)


def open_holder(holder: Holder) -> Any:
    return holder.segment.open(holder)


def itself(tensor: Any) -> Any:
    return tensor


def run_hooked(torch: Any, hooks: Any, call: Call, args: Any, kwargs: Any) -> Any:
    autograd = torch._C._autograd
    for hook in hooks:
        if not hasattr(hook, "_checkpoint_internal"):
            hook._checkpoint_internal = True  # PyTorch's checkpoint warns of users'
            hook._user_hooks = None
    autograd._push_saved_tensors_default_hooks(*hooks)
    try:
        return call.original(call.module, *args, **kwargs)
    finally:
        autograd._pop_saved_tensors_default_hooks()
