# SPDX-License-Identifier: Apache-2.0
"""Activations by operator equal the published formula of a transformer layer."""

import json
from pathlib import Path

import pytest

import formula
from stack import Run, environment

SIZES = {
    "16 bit": formula.Sizes(3, 256, 4, 2, 64, "bfloat16"),
    "32 bit": formula.Sizes(2, 128, 2, 4, 128, "float32"),
    "nothing a whole block": formula.Sizes(2, 60, 3, 3, 37, "float16"),
}


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES.keys())
def test_each_operator_saves_what_is_published(
    sizes: formula.Sizes, tmp_path: Path
) -> None:
    env = environment(report=str(tmp_path / "report.json"), sim_compute="shapes")
    Run([str(formula.CASE), *sizes.arguments()], env)
    report = json.loads((tmp_path / "report.json").read_text())

    rows, found = formula.rows(sizes), formula.told(report)
    assert {row.source: formula.told_of(row, found) for row in rows} == {
        row.source: sizes.layers * row.bytes for row in rows
    }
    held = {row["category"]: row["bytes"] for row in report["peak"]["by_category"]}
    layers = sizes.layers * sum(row.bytes for row in rows)
    # And what the script holds: the last layer's result, which no operator saves.
    result = formula.rounded(
        sizes.batch * sizes.sequence * sizes.hidden, 4 if "32" in sizes.dtype else 2
    )
    assert held["activation"] == sum(found.values()) + result == layers + result


def test_sixteen_bit_sums_up_to_the_formula() -> None:
    s, b, h, a = 2048, 4, 4096, 32
    rows = formula.rows(formula.Sizes(1, h, a, b, s, "bfloat16"))
    assert sum(row.published for row in rows) == 34 * s * b * h + 5 * a * s * s * b
    assert sum(row.beside for row in rows) == 16 * s * b
