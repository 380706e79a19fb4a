# SPDX-License-Identifier: Apache-2.0
"""Activation bytes of a layer by operator: as published, as PyTorch saves them, as told.

Published: Korthikanti et al., "Reducing Activation Recomputation in Large Transformer
Models" (arXiv 2205.05198), section 4: sbh(34 + 5as/h) bytes for a layer in 16 bit, where
a mask has one byte an element and the small mean and variance of a norm are left out.
"""

from pathlib import Path
from typing import Any, Dict, List, NamedTuple

CASE = Path(__file__).parent / "cases" / "layer.py"
BLOCK = 512  # what PyTorch's allocator rounds to


class Sizes(NamedTuple):
    layers: int
    hidden: int
    heads: int
    batch: int
    sequence: int
    dtype: str

    def arguments(self) -> List[str]:
        return [str(value) for value in self]


class Row(NamedTuple):
    operator: str
    source: str  # the line of the case, as it begins
    what: str  # that is saved
    published: int  # bytes of one layer
    beside: int  # that PyTorch saves as well, and the formula leaves out

    @property
    def bytes(self) -> int:
        return self.published + self.beside


def rounded(elements: int, element_bytes: int) -> int:
    return -(-elements * element_bytes // BLOCK) * BLOCK


def rows(sizes: Sizes) -> List[Row]:
    wide = 4 if sizes.dtype == "float32" else 2
    tokens = sizes.batch * sizes.sequence
    state = rounded(tokens * sizes.hidden, wide)
    inner = rounded(tokens * 4 * sizes.hidden, wide)
    pairs = sizes.batch * sizes.heads * sizes.sequence**2
    scores, score_mask = rounded(pairs, wide), rounded(pairs, 1)
    mask = rounded(tokens * sizes.hidden, 1)
    norm = 2 * rounded(tokens, 4)  # mean and 1/deviation of each token, in fp32
    return [
        Row("norm before attention", "normed = self.norm_at", "input", state, norm),
        Row("query, key, value", "query = self.query", "their one input", state, 0),
        Row("QK^T", "scores = query @", "Q and K", 2 * state, 0),
        Row("softmax", "shares = F.softmax", "its result", scores, 0),
        Row("dropout of it", "shares = F.dropout", "mask", score_mask, 0),
        Row(
            "attention over values",
            "mixed = shares @",
            "dropout's result, V",
            scores + state,
            0,
        ),
        Row("projection", "mixed = self.project", "input", state, 0),
        Row("dropout", "x = x + F.dropout", "mask", mask, 0),
        Row("norm before MLP", "normed = self.norm_mlp", "input", state, norm),
        Row("h to 4h", "wide = self.up", "input", state, 0),
        Row("GELU", "wide = F.gelu", "input", inner, 0),
        Row("4h to h", "narrow = self.down", "input", inner, 0),
        Row("dropout", "return x + F.dropout", "mask", mask, 0),
    ]


def told(report: Any) -> Dict[str, int]:
    """Activation bytes at the peak by the line of the case, from a report's sites."""
    lines = CASE.read_text().splitlines()
    found: Dict[str, int] = {}
    for site in report["sites"]:
        place = report["stacks"][site["stack"]][-1].split()[0]
        file, number = place.split(":")
        source = lines[int(number) - 1].strip() if file == CASE.name else place
        found[source] = found.get(source, 0) + site["peak_bytes"]
    return found


def told_of(row: Row, found: Dict[str, int]) -> int:
    return sum(n for source, n in found.items() if source.startswith(row.source))
