# SPDX-License-Identifier: Apache-2.0
"""The PyTorch adapter of actswap.

The preloaded library puts this package on sys.path inside `import torch` and has
activate() called when the import ends. It tells the library what only PyTorch knows:
the tensors that autograd saves, where blocks, forward, backward and steps begin and
end, and what is a parameter. The library decides; the user's script is not changed and
never sees an exception of ours.
"""

from __future__ import annotations

import sys

_adapter: object = None


def activate() -> None:
    """Starts the adapter once. Never raises."""
    global _adapter
    torch = sys.modules.get("torch")
    if _adapter is not None or torch is None or torch.version.cuda is None:
        return
    try:
        from . import adapter

        _adapter = adapter.start(torch)
    except Exception as error:
        _adapter = error
        sys.stderr.write(
            f"actswap: warning: torch: the adapter cannot start: "
            f"{type(error).__name__}: {error}\n"
        )
