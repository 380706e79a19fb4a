# SPDX-License-Identifier: Apache-2.0
"""Small models of all kinds: MODELS by name.

Those that are compiled come last: what the compiler imports is looked at by each later
collection of garbage.
"""

from . import dense, functional, generative, graphs, losses, optimizers  # noqa: F401
from . import sequence, vision  # noqa: F401  # isort: split
from . import captured, compiled  # noqa: F401
from .registry import MODELS, Place

__all__ = ["MODELS", "Place"]
