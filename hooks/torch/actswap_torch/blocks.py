# SPDX-License-Identifier: Apache-2.0
"""The forward of a repeated block, done as the library says."""

from __future__ import annotations

import threading
from typing import Any, Callable, List


class _Thread(threading.local):
    inside = False  # a block's forward runs on this thread


class Blocks:
    """Tells the library of a block's entry and exit, and recomputes when it says so."""

    def __init__(self, torch: Any, pack: Any, on_top: Callable[[], bool]) -> None:
        self._torch = torch
        self._pack = pack
        self._on_top = on_top
        self._thread = _Thread()

    def run(
        self, number: int, original: Callable, module: Any, args: Any, kwargs: Any
    ) -> Any:
        device = self._device(args, kwargs)
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

    def _device(self, args: Any, kwargs: Any) -> int:
        """The CUDA device of the block's work, -1: leave this call alone."""
        torch = self._torch
        if (
            self._thread.inside
            or not torch.is_grad_enabled()
            or torch._C._current_graph_task_id() != -1
            or torch._C._get_tracing_state() is not None
            or not self._on_top()
        ):
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
            if verdict == pack.RECOMPUTE:
                return self._recompute(number, original, module, args, kwargs)
            return original(module, *args, **kwargs)
        finally:
            self._thread.inside = False
            pack.block(pack.EXIT, number, device)

    def _recompute(
        self, number: int, original: Callable, module: Any, args: Any, kwargs: Any
    ) -> Any:
        # All arguments go by position: checkpoint looks for devices, whose generators
        # it has to keep, and for tensors to save only there.
        names, split = list(kwargs), len(args)
        first = True

        def run(*values: Any) -> Any:
            nonlocal first
            named = dict(zip(names, values[split:]))
            if not first:
                return self._again(number, original, module, values[:split], named)
            first = False
            return original(module, *values[:split], **named)

        return self._torch.utils.checkpoint.checkpoint(
            run, *args, *kwargs.values(), use_reentrant=False
        )

    def _again(
        self, number: int, original: Callable, module: Any, args: Any, kwargs: Any
    ) -> Any:
        """Leaves nothing behind that a forward leaves."""
        kept = self._statistics(module)
        next_node = self._pack.number()
        try:
            return self._named(number, original, module, args, kwargs)
        finally:
            self._pack.put_back(next_node)
            for buffer, before in kept:
                buffer.data.copy_(before)

    def _statistics(self, module: Any) -> List[Any]:
        """Running statistics and copies of them: a forward counts once."""
        kind = self._torch.nn.modules.batchnorm._NormBase
        return [
            (buffer, buffer.detach().clone())
            for part in module.modules()
            if isinstance(part, kind) and part.training
            for buffer in part.buffers(recurse=False)
        ]
