# SPDX-License-Identifier: Apache-2.0
"""Joins PyTorch and the library: a training run, told in the library's words."""

from __future__ import annotations

import atexit
import functools
import os
import sys
import threading
import time
import weakref
from typing import Any, Callable, Dict, List, Set

from . import _pack, messages
from .blocks import Blocks
from .frames import hide
from .hooks import SavedTensorHooks
from .names import Names
from .places import Places, see_through
from .steps import Steps

LAST_WAIT_S = 0.02


class _Thread(threading.local):
    root: Any = None  # the outermost module whose forward autograd follows
    named: Any = None  # and of all: what is made in none of its parts bears its name
    number = 0  # of that one

    def __init__(self) -> None:
        self.watched: List[Any] = []  # these two, the inner one last: [module, handle,
        # how often it called itself]


def guarded(method: Callable) -> Callable:
    """A failure of ours switches the adapter off; the user's code never sees it."""

    @functools.wraps(method)
    def call(self: Any, *args: Any) -> None:
        if not self.on:
            return
        try:
            method(self, *args)
        except Exception as error:
            self.fail(error)

    return call


class Adapter:
    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.on = True
        self._undo: List[Callable[[], None]] = []
        self._thread = _Thread()
        self._backwards: Set[int] = set()  # threads that run one
        self._roots: Dict[int, Any] = {}
        self._forward_open = False
        self._digest = os.environ.get("ACTSWAP_DIGEST", "") not in ("", "0", "off")
        self._hooks = SavedTensorHooks(torch, _pack)
        self._blocks = Blocks(torch, _pack, self._hooks.on_top)
        self._places = Places(torch, _pack, self._blocks.run)
        self._names = Names(torch, _pack)
        self._steps = Steps(self._names.optimizers)

    def install(self) -> None:
        torch = self.torch
        autograd = torch._C._autograd
        self._patch(autograd, "_saved_tensors_hooks_disable", self._hooks.disable)
        self._patch(autograd, "_saved_tensors_hooks_enable", self._hooks.enable)
        self._patch(
            torch.autograd.function.BackwardCFunction,
            "saved_tensors",
            lambda inherited: property(self._hooks.saved_tensors(inherited.__get__)),
        )
        self._patch_checkpoint()
        for owner in (torch.autograd, torch.autograd.graph):
            self._patch(owner, "_engine_run_backward", self._wrap_backward)
        modules = sys.modules["torch.nn.modules.module"]
        optimizers = sys.modules["torch.optim.optimizer"]
        self._patch(optimizers.Optimizer, "__init__", self._names.made)
        for handle in (
            modules.register_module_forward_pre_hook(self._before_forward),
            optimizers.register_optimizer_step_pre_hook(self._judge),
            optimizers.register_optimizer_step_pre_hook(self._before_step),
            optimizers.register_optimizer_step_post_hook(self._after_step),
        ):
            self._undo.append(handle.remove)
        self._patch(modules, "_has_any_global_hook", self._count_others)
        self._patch(torch._jit_internal, "get_closure", see_through)
        self._undo.append(self._places.undo)
        self._undo.append(self._names.undo)
        self._hooks.push()
        hide(torch)
        atexit.register(self._end)

    def _end(self) -> None:
        try:
            self._judge()
        except RuntimeError:  # the library has said so
            pass
        _pack.detach()
        if not self.torch.cuda.is_initialized():
            return
        if self._backwards:  # of threads that the end cuts off
            time.sleep(LAST_WAIT_S)  # without the lock
            return
        try:
            self._hooks.settle()
        except Exception:  # a device that failed: the script has heard of it
            pass

    def _patch(self, owner: Any, name: str, wrap: Callable[[Any], Any]) -> None:
        own = name in vars(owner)
        original = getattr(owner, name)
        ours = wrap(original)

        def undo() -> None:
            if vars(owner).get(name) is not ours:
                return
            if own:
                setattr(owner, name, original)
            else:
                delattr(owner, name)

        setattr(owner, name, ours)
        self._undo.append(undo)

    def _count_others(self, original: Callable) -> Callable:
        """torch.compile warns of global module hooks, which are not the user's here."""
        modules = sys.modules["torch.nn.modules.module"]
        kinds = ("forward", "forward_pre", "backward", "backward_pre")

        def has_any() -> bool:
            count = sum(len(getattr(modules, f"_global_{kind}_hooks")) for kind in kinds)
            return count > 1 and original()

        return has_any

    def _patch_checkpoint(self) -> None:
        """PyTorch's own, where the script uses it. Tried on torch 2.15."""
        checkpoint = self.torch.utils.checkpoint
        again = getattr(checkpoint, "_recomputation_hook", None)
        if again is not None:
            self._patch(again, "__enter__", self._marking(_pack.AGAIN))
            self._patch(again, "__exit__", self._marking(_pack.AGAIN_END))

        def noting(original: Callable) -> Callable:
            @functools.wraps(original)
            def call(*args: Any) -> Any:
                self._blocks.note_checkpoint()
                return original(*args)

            return call

        self._patch(checkpoint._CheckpointFrame, "__init__", noting)
        self._patch(
            checkpoint.CheckpointFunction,
            "forward",
            lambda original: staticmethod(noting(original)),
        )

    def _marking(self, moment: int) -> Callable:
        """A context manager's method that says the moment when it is called."""

        def wrap(original: Callable) -> Callable:
            @functools.wraps(original)
            def call(*args: Any) -> Any:
                if self.on and self.torch.cuda.is_initialized():
                    _pack.mark(moment)
                return original(*args)

            return call

        return wrap

    def fail(self, error: Exception) -> None:
        """Says so once and goes away. Tensors that are packed already stay usable."""
        self.on = False
        sys.stderr.write(
            "actswap: warning: torch: the adapter is switched off: "
            f"{type(error).__name__}: {error}\n"
        )
        _pack.note("the PyTorch adapter switched itself off")
        _pack.detach()
        self.remove()

    def remove(self) -> None:
        for undo in reversed(self._undo):
            undo()
        self._undo.clear()
        self._hooks.pop()

    # --- Forward

    def _before_forward(self, module: Any, args: Any) -> None:
        thread = self._thread
        if self.torch.compiler.is_compiling():
            return
        if thread.root is None and (thread.named is None or self.torch.is_grad_enabled()):
            self._enter_root(module, args)
            if self._blocks.answers.are_there():  # and no optimizer asked
                self._judge()
        elif module is thread.watched[-1][0]:
            thread.watched[-1][2] += 1

    @guarded
    def _enter_root(self, module: Any, args: Any) -> None:
        torch = self.torch
        if (
            not torch.cuda.is_initialized()
            or torch._C._current_graph_task_id() != -1
            or isinstance(module, torch.jit.ScriptModule)
            or torch._C._get_tracing_state() is not None  # records sizes that we read
            or self._is_fake()
        ):
            return
        if torch.is_grad_enabled():
            self._begin_forward(module, args)
            self._thread.root = module
        if self._thread.named is None:
            self._begin_name(module)
        handle = module.register_forward_hook(self._leave, always_call=True)
        self._thread.watched.append([module, handle, 0])

    def _is_fake(self) -> bool:
        """Tensors without memory are at work, as inside of a compiler."""
        C = self.torch._C
        return C._get_dispatch_mode(C._TorchDispatchModeKey.FAKE) is not None

    def _begin_forward(self, module: Any, args: Any) -> None:
        self._hooks.push()
        self._blocks.begin()
        if not self._forward_open and self._steps.before_forward():
            _pack.note("steps found without an optimizer")
            self._end_step()
        if not self._forward_open:
            self._end_if_enough()
        self._adopt(module)
        self._names.see_inputs(args)
        if not self._forward_open:
            self._forward_open = True
            _pack.mark(_pack.FORWARD)

    def _begin_name(self, module: Any) -> None:
        if self._places.number(module) is None:
            self._places.adopt(module)
        thread = self._thread
        thread.named, thread.number = module, self._places.number(module) or 0
        _pack.enter(thread.number)

    def _leave(self, module: Any, args: Any, output: Any) -> None:
        thread = self._thread
        if not thread.watched or thread.watched[-1][0] is not module:
            return
        if thread.watched[-1][2]:
            thread.watched[-1][2] -= 1
            return
        thread.watched.pop()[1].remove()
        if module is thread.root:
            thread.root = None
        if module is thread.named:
            thread.named = None
            _pack.leave(thread.number)

    def _adopt(self, root: Any) -> None:
        key, roots = id(root), self._roots
        known = roots.get(key)
        if known is not None and known() is root:
            return
        roots[key] = weakref.ref(root, lambda _: roots.pop(key, None))
        self._places.adopt(root)
        self._names.adopt(root)

    # --- Backward

    def _wrap_backward(self, original: Callable) -> Callable:
        @functools.wraps(original)
        def run(outputs: Any, *args: Any, **kwargs: Any) -> Any:
            if not self._begins_backward():
                return original(outputs, *args, **kwargs)
            self._before_backward(outputs)
            self._backwards.add(threading.get_ident())
            try:
                result = original(outputs, *args, **kwargs)
            finally:
                self._backwards.discard(threading.get_ident())
                self._after_backward()
            if not self._steps.any:  # nobody may come and ask before they are used
                self._judge()
            return result

        return run

    def _begins_backward(self) -> bool:
        torch = self.torch
        return (
            self.on
            and not torch.compiler.is_compiling()
            and torch.cuda.is_initialized()
            and torch._C._current_graph_task_id() == -1
        )

    @guarded
    def _before_backward(self, outputs: Any) -> None:
        for root in outputs:
            if isinstance(root, self.torch.Tensor) and root.numel() == 1:
                _pack.root(root)
        self._names.end_phase(_pack.FORWARD)
        _pack.mark(_pack.BACKWARD)

    @guarded
    def _after_backward(self) -> None:
        self._forward_open = False
        self._blocks.answers.send()
        self._names.end_phase(_pack.BACKWARD)
        self._steps.after_backward(self._names.parameters())
        _pack.mark(_pack.BACKWARD_END)

    # --- Optimizer

    def _judge(self, *_: Any) -> None:
        """Raises into the script: gradients that are not its own would be worse."""
        try:
            found = self._blocks.answers.ask() if self.on else []
        except Exception as error:
            self.fail(error)
            return
        if found:
            names = ", ".join(map(self._places.name, found))
            raise RuntimeError(messages.REFUSED.format(names))

    @guarded
    def _before_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if not self.torch.cuda.is_initialized():
            return
        if self._steps.before(optimizer):
            self._end_step()
        self._end_if_enough()
        self._names.see_gradients(optimizer)
        if self._digest:
            self._digest_gradients(optimizer)
        _pack.mark(_pack.OPTIMIZER)

    def _digest_gradients(self, optimizer: Any) -> None:
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                gradient = parameter.grad
                if gradient is not None and gradient.layout is self.torch.strided:
                    _pack.gradient(gradient.contiguous())

    @guarded
    def _after_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if not self.torch.cuda.is_initialized():
            return
        self._names.see_state(optimizer)
        self._forward_open = False
        if self._steps.after(optimizer):
            self._end_step()

    def _end_step(self) -> None:
        self._names.end_step()
        _pack.mark(_pack.STEP)

    def _end_if_enough(self) -> None:
        """Where the next step begins, so that a script has said all of the last one."""
        if _pack.enough():
            sys.exit()


def start(torch: Any) -> Adapter:
    _pack.bind(torch, messages)
    adapter = Adapter(torch)
    try:
        adapter.install()
    except Exception:
        adapter.remove()
        raise
    return adapter
