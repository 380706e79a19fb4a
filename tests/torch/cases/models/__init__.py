# SPDX-License-Identifier: Apache-2.0
"""Small models of all kinds: MODELS by name."""

from . import compiled, dense, functional, generative, graphs, losses  # noqa: F401
from . import optimizers, sequence, vision  # noqa: F401
from .registry import MODELS, Place

__all__ = ["MODELS", "Place"]
