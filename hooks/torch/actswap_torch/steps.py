# SPDX-License-Identifier: Apache-2.0
"""Finds where one step of a training ends, without help from the script."""

from __future__ import annotations

import weakref
from typing import Any, List

WATCHED = 4  # parameters that tell whether an update happened


class Steps:
    """A step is over when every optimizer that takes part has stepped.

    Which ones take part shows when one comes again before another has stepped at all:
    that one is left out until it steps. An optimizer inside another's step is part of it.
    Where no optimizer of PyTorch's ever steps, a forward after a backward begins a new
    step if parameters or gradients were changed in between.
    """

    def __init__(self, made: Any) -> None:
        self._made = made  # all optimizers, a weak set
        self._stepped: Any = weakref.WeakSet()  # in this step
        self._idle: Any = weakref.WeakSet()
        self._depth = 0
        self.any = False
        self._watched: List[Any] = []

    def before(self, optimizer: Any) -> bool:
        """True if the step ended before this update, which nobody knew at that time."""
        self._depth += 1
        if self._depth > 1:
            return False
        again = self.any and optimizer in self._stepped
        if again:
            self._idle.update(o for o in self._made if o not in self._stepped)
            self._stepped.clear()
        return again

    def after(self, optimizer: Any) -> bool:
        """True if this update ends the step."""
        self._depth = max(0, self._depth - 1)
        self.any = True
        self._stepped.add(optimizer)
        self._idle.discard(optimizer)
        if self._depth > 0 or any(self._is_awaited(o) for o in self._made):
            return False
        self._stepped.clear()
        return True

    def _is_awaited(self, optimizer: Any) -> bool:
        return (
            optimizer not in self._stepped
            and optimizer not in self._idle
            and any(
                parameter.is_cuda
                for group in optimizer.param_groups
                for parameter in group["params"]
            )
        )

    # --- Without an optimizer

    def after_backward(self, parameters: Any) -> None:
        if self.any:
            return
        self._watched.clear()
        for parameter in parameters:
            gradient = parameter.grad
            if gradient is not None:
                versions = parameter._version, gradient._version
                self._watched.append((weakref.ref(parameter), *versions))
            if len(self._watched) == WATCHED:
                break

    def before_forward(self) -> bool:
        """True if a step ended since the last backward."""
        if self.any or not self._watched:
            return False
        changed = any(self._is_changed(*entry) for entry in self._watched)
        if changed:
            self._watched.clear()
        return changed

    def _is_changed(self, reference: Any, version: int, of_gradient: int) -> bool:
        parameter = reference()
        return (
            parameter is None
            or parameter._version != version
            or parameter.grad is None
            or parameter.grad._version != of_gradient
        )
