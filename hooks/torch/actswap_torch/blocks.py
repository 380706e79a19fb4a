# SPDX-License-Identifier: Apache-2.0
"""The forward of a repeated block, done as the library says."""

from __future__ import annotations

import sys
import threading
import weakref
from typing import Any, Callable, List, Optional

from .again import Call, Known, Segment, run_hooked
from .samples import Answers
from .trial import Trial


class _Thread(threading.local):
    inside = False  # a block's forward runs on this thread
    segment: Any = None  # that the next block may join; weak, the graph keeps it
    trial: Optional[Trial] = None  # that the running block is in


class Blocks:
    """Tells the library of a block's entry and exit, and recomputes when it says so."""

    def __init__(self, torch: Any, pack: Any, on_top: Callable[[], bool]) -> None:
        self._torch = torch
        self._pack = pack
        self._on_top = on_top
        self._thread = _Thread()
        self._known: Any = weakref.WeakKeyDictionary()
        self.answers = Answers(torch, pack)

    def begin(self) -> None:
        """A model's forward begins: what comes joins nothing that was before."""
        self._thread.segment = None

    def note_checkpoint(self) -> None:
        """The script runs a part of the forward again by itself."""
        if self._thread.trial is not None:
            self._thread.trial.blame(self._pack.FAULT_CHECKPOINT)

    def run(
        self, number: int, original: Callable, module: Any, args: Any, kwargs: Any
    ) -> Any:
        device = self._device(number, args, kwargs)
        if device < 0:
            return self._named(number, original, module, args, kwargs)
        return self._decided(number, device, original, module, args, kwargs)

    def _named(
        self, number: int, original: Callable, module: Any, args: Any, kwargs: Any
    ) -> Any:
        self._pack.enter(number)
        try:
            return original(module, *args, **kwargs)
        finally:
            self._pack.leave(number)

    def _device(self, number: int, args: Any, kwargs: Any) -> int:
        """The CUDA device of the block's work, -1: leave this call alone."""
        torch = self._torch
        if (
            self._thread.inside
            or not torch.is_grad_enabled()
            or torch._C._current_graph_task_id() != -1
            or torch._C._get_tracing_state() is not None
        ):
            return -1
        if not self._on_top():
            self._pack.skipped(number, self._above())
            return -1
        for value in (*args, *kwargs.values()):
            if isinstance(value, torch.Tensor) and value.is_cuda:
                return value.get_device()
        return -1

    def _decided(
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
            if verdict in (pack.RECOMPUTE, pack.RECOMPUTE_ON, pack.TRIAL):
                call = Call(number, original, module, args, kwargs)
                return self._forgotten(call, verdict, device)
            self._thread.segment = None
            return original(module, *args, **kwargs)
        finally:
            self._thread.inside = False
            pack.block(pack.EXIT, number, device)

    def _forgotten(self, call: Call, verdict: int, device: int) -> Any:
        """Runs a block whose saved tensors are not kept, or are on trial."""
        torch, pack, thread = self._torch, self._pack, self._thread
        args, kwargs, modules = call.args, call.kwargs, list(call.module.modules())
        fault = self._obstacle(modules)
        if fault is not None:
            pack.skipped(call.number, fault)
            if fault == pack.FAULT_HOOKS:
                pack.tried(call.number, 1 << fault, 0, 0, 0, True)
            thread.segment = None
            return call.original(call.module, *args, **kwargs)
        if verdict == pack.TRIAL:
            segment: Segment = Trial(torch, pack, self.answers)
            thread.trial, thread.segment = segment, None  # type: ignore[assignment]
        else:
            segment = self._join(verdict)
        known = self._known.setdefault(call.module, Known())
        devices = sorted({device, *self._devices(args, kwargs)})
        try:
            segment.add(call, modules, devices, known)
        except Exception as error:
            return self._failed(error, call, args, kwargs)
        try:
            output = run_hooked(torch, segment.hooks(), call, args, kwargs)
        finally:
            thread.trial = None
        segment.end(output)
        return output

    def _join(self, verdict: int) -> Segment:
        """The segment of the block before, or a new one."""
        last = self._thread.segment and self._thread.segment()
        if verdict == self._pack.RECOMPUTE_ON and last is not None:
            return last
        segment = Segment(self._torch, self._pack, self.answers)
        self._thread.segment = weakref.ref(segment)
        return segment

    def _failed(self, error: Exception, call: Call, args: Any, kwargs: Any) -> Any:
        """Of ours, which is not the script's: the block is left alone."""
        self._thread.trial = self._thread.segment = None
        self._pack.tried(call.number, 1 << self._pack.FAULT_ERROR, 0, 0, 0, True)
        sys.stderr.write(
            f"actswap: warning: torch: {type(call.module).__name__} cannot be run again: "
            f"{type(error).__name__}: {error}\n"
        )
        return call.original(call.module, *args, **kwargs)

    def _devices(self, args: Any, kwargs: Any) -> List[int]:
        kind = self._torch.Tensor
        values = (*args, *kwargs.values())
        return [v.get_device() for v in values if isinstance(v, kind) and v.is_cuda]

    # --- What is left alone

    def _above(self) -> int:
        """What lies above our saved tensor hooks."""
        top = getattr(self._torch._C._autograd, "_top_saved_tensors_default_hooks", None)
        hooks = top(True) if top is not None else None
        if hooks and getattr(hooks[0], "_checkpoint_internal", False):
            return self._pack.FAULT_CHECKPOINT
        return self._pack.FAULT_SAVES

    def _obstacle(self, modules: List[Any]) -> Optional[int]:
        if self._torch.cuda.is_current_stream_capturing():
            return self._pack.FAULT_CAPTURE
        inner = sys.modules["torch.nn.modules.module"]
        hooks = [*inner._global_forward_hooks.values()]
        hooks += inner._global_forward_pre_hooks.values()
        for module in modules[1:]:
            own = module.__dict__
            hooks += own["_forward_hooks"].values()
            hooks += own["_forward_pre_hooks"].values()
        return self._pack.FAULT_HOOKS if any(map(_is_of_a_script, hooks)) else None


def _is_of_a_script(hook: Any) -> bool:
    """Not one of PyTorch's own, such as that of spectral_norm, nor ours."""
    hook = getattr(hook, "func", hook)
    place = getattr(hook, "__module__", None) or type(hook).__module__
    return str(place).partition(".")[0] not in ("torch", "actswap_torch")
