# SPDX-License-Identifier: Apache-2.0
"""Whether a block that is run again comes to what its forward came to. Trials compare
every bit, but only now and then: each other time some elements of each tensor are."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Set, Tuple

from . import messages

MOST = 256  # elements of one tensor
PRIME = 7919


def is_parameter(tensor: Any) -> bool:
    return bool(tensor.is_leaf and tensor.requires_grad)


class Sample:
    """Some elements of the tensors that one call of a block saves; which ones, `turn`
    decides. They are read in take(), all at once: one copy a type, not one a tensor."""

    def __init__(self, torch: Any, turn: int, like: Optional[Sample] = None) -> None:
        self.torch, self.turn = torch, turn
        self.like = like  # of the forward: its choice is that of what is run again
        self.chosen: List[bool] = []
        self.views: Dict[Tuple[Any, Any], List[Any]] = {}
        self.forms: List[bool] = []  # of each: whether in the order of its memory
        self.read: List[Any] = []
        self.failed = False

    def add(self, tensor: Any) -> None:
        try:
            if self._choose(tensor):
                for part in messages.parts(tensor) or [tensor]:
                    if self._is_plain(part):
                        view = self._view(part.detach())
                        self.views.setdefault((view.device, view.dtype), []).append(view)
        except Exception:
            self.failed = True

    def _choose(self, tensor: Any) -> bool:
        """Not a weight or its transpose, whose version tells. Run again, what a block
        takes looks like one."""
        if self.like is not None:
            chosen = self.like.chosen[len(self.chosen)]
        else:
            base = tensor._base
            chosen = not is_parameter(tensor if base is None else base)
        self.chosen.append(chosen)
        return chosen

    def _is_plain(self, tensor: Any) -> bool:
        return (
            tensor.is_cuda
            and tensor.layout is self.torch.strided
            and not (tensor.is_quantized or tensor.is_nested)
            and tensor.numel() > 0
        )

    def _view(self, tensor: Any) -> Any:
        if tensor.element_size() == 1:
            tensor = tensor.view(self.torch.uint8)
        plain = tensor.is_contiguous()
        self.forms.append(plain)
        if not plain:
            return tensor.as_strided(*self._grid(tensor)).reshape(-1)
        count, start = tensor.numel(), tensor.storage_offset()
        step = max(1, count // MOST) | 1  # odd, so that it walks through rows, too
        first = self.turn * PRIME % min(step, count)
        size = -(-(count - first) // step)
        return tensor.as_strided((size,), (step,), start + first)

    def _grid(self, tensor: Any) -> Tuple[List[int], List[int], int]:
        """Sizes, strides and offset of some elements in all dimensions."""
        sizes, strides, offset, left = [], [], tensor.storage_offset(), MOST
        for n, (size, stride) in enumerate(zip(tensor.shape, tensor.stride())):
            most = max(1, round(left ** (1 / (tensor.dim() - n))))
            step = -(-size // most)
            first = self.turn * PRIME % step
            sizes.append(-(-(size - first) // step))
            strides.append(step * stride)
            offset += first * stride
            left = max(1, left // sizes[-1])
        return sizes, strides, offset

    def take(self) -> None:
        torch = self.torch
        try:
            with torch.no_grad():
                self.read = [torch.cat(v).view(torch.uint8) for v in self.views.values()]
        except Exception:
            self.failed = True
        self.views.clear()

    def compares(self, other: Sample) -> bool:
        """Not with what is laid out otherwise."""
        return not (self.failed or other.failed) and self.forms == other.forms

    def differs(self, other: Sample) -> List[Any]:
        """Flags on the device: nobody waits for it here."""
        with self.torch.no_grad():
            return [(a != b).any() for a, b in zip(self.read, other.read)]


class Answers:
    """Flags of blocks that were run again, not looked at yet. Thread-safe."""

    def __init__(self, torch: Any, pack: Any) -> None:
        self._torch, self._pack = torch, pack
        self._flags: List[Tuple[Any, int, Any]] = []  # with block and stream
        self._sent: List[Tuple[List[int], Any, Any]] = []  # blocks, on the host, event

    def add(self, flags: List[Any], number: int) -> None:
        for flag in flags:
            stream = self._torch.cuda.current_stream(flag.device)
            self._flags.append((flag, number, stream))

    def fail(self, number: int, fault: int) -> None:
        """It is left alone from now on."""
        self._pack.tried(number, 1 << fault, 0, 0, 0, True)

    def _captures(self) -> bool:
        """Nobody may ask the device then, nor wait for it: it is done behind it."""
        return bool(self._torch.cuda.is_current_stream_capturing())

    def send(self) -> None:
        """To the host, without waiting for it: nothing stays on the device."""
        torch = self._torch
        if not self._flags or self._captures():
            return
        flags, self._flags = self._flags, []
        by_device: Dict[Any, List[Tuple[Any, int]]] = {}
        for flag, number, stream in flags:
            now = torch.cuda.current_stream(flag.device)
            if now != stream:
                now.wait_stream(stream)
            by_device.setdefault(flag.device, []).append((flag, number))
        with torch.no_grad():
            for device, pairs in by_device.items():
                told = torch.empty(len(pairs), dtype=torch.bool, pin_memory=True)
                told.copy_(torch.stack([flag for flag, _ in pairs]), non_blocking=True)
                event = torch.cuda.current_stream(device).record_event()
                self._sent.append(([number for _, number in pairs], told, event))

    def are_there(self) -> bool:
        if not self._sent or self._captures():
            return False
        return all(event.query() for _, _, event in self._sent)

    def ask(self) -> List[int]:
        """Waits for the device. The blocks that came to other values, which are left
        alone from now on."""
        if not (self._flags or self._sent) or self._captures():
            return []
        self.send()
        sent, self._sent = self._sent, []
        found: Set[int] = set()
        for numbers, told, event in sent:
            event.synchronize()
            found.update(n for n, bad in zip(numbers, told.tolist()) if bad)
        if not self._pack.values():
            return []
        for number in sorted(found):
            self._pack.tried(number, 1 << self._pack.FAULT_SAMPLE, 0, 0, 0, True)
        return sorted(found)
