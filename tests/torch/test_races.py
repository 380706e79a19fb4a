# SPDX-License-Identifier: Apache-2.0
"""Missing edges in PyTorch programs: said by the checker, and seen in the numbers."""

import html
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List

import pytest
from stack import Run, environment, prefix

CASE = str(Path(__file__).parent / "cases" / "races.py")
RIGHT = {
    "copy_out_before_it_is_computed": 3.0,
    "freed_while_copied_out": 3.0,
    "used_before_it_is_back": 6.0,
    "brought_back_into_the_copy_streams_memory": 6.0,
    "cloned_on_the_copy_stream": 9.0,
    "staging_buffer_used_again": 3.0,
    "host_reads_before_the_copy_is_done": 3.0,
    "host_writes_while_the_batch_is_copied": 3.0,
    "gradients_of_another_stream": 3.0,
}
# The two places of each, as the source has them.
PLACES = {
    "copy_out_before_it_is_computed": ("kept.copy_(act", "torch.full("),
    "freed_while_copied_out": ("torch.full(", "kept.copy_(act"),
    "used_before_it_is_back": ("twice = back * 2", "back.copy_(kept"),
    "brought_back_into_the_copy_streams_memory": (
        "again = second.to",
        "twice = back * 2",
    ),
    "cloned_on_the_copy_stream": ("thrice = mine * 3", "mine = rows.clone()"),
    "staging_buffer_used_again": ("kept.copy_(second", "taken = kept.to"),
    "host_reads_before_the_copy_is_done": ("kept.sum()", "kept.copy_(act"),
    "host_writes_while_the_batch_is_copied": ("batch.fill_(5.0)", "sent.copy_(batch"),
    "gradients_of_another_stream": ("weight.add_(grad)", "grad.add_(2.0)"),
}
ORDERS = ("early", "late", "seed:1", "seed:2", "seed:3")


@pytest.fixture(scope="module")
def runs() -> Dict[str, Any]:
    return {
        order: Run([CASE], environment(sim_order=order, sim_check="races"))
        for order in ORDERS
    }


def source_lines() -> List[str]:
    return Path(CASE).read_text().splitlines()


def pairs_in(text: str) -> List[List[str]]:
    """The source of both lines of each report."""
    source, found = source_lines(), []
    for report in re.findall(r"simcuda: race \d+: .*\nsimcuda: .*", text):
        numbers = re.findall(r"\(races\.py:(\d+)\)", report)
        found.append([source[int(number) - 1].strip() for number in numbers])
    return found


@pytest.mark.parametrize("order", ORDERS)
def test_missing_edges_are_said_and_no_others(runs: Dict[str, Any], order: str) -> None:
    found = runs[order].result()

    assert {name: found[f"{name}:edge"] for name in RIGHT} == {
        name: [value, 0] for name, value in RIGHT.items()
    }
    assert [name for name in RIGHT if not found[f"{name}:none"][1]] == []


def test_a_report_names_both_lines(runs: Dict[str, Any]) -> None:
    said = pairs_in(runs["late"].err)

    for name, (now, before) in PLACES.items():
        assert any(
            len(pair) == 2 and now in pair[0] and before in pair[1] for pair in said
        ), (name, said)


def test_missing_edges_are_seen_in_the_numbers(runs: Dict[str, Any]) -> None:
    for name, value in RIGHT.items():
        shown = {runs[order].result()[f"{name}:none"][0] for order in ORDERS}
        assert shown - {value} != set(), name


def test_reports_do_not_depend_on_the_order(runs: Dict[str, Any]) -> None:
    said = [sorted(pairs_in(runs[order].err)) for order in ORDERS]

    assert all(one == said[0] for one in said)


@pytest.mark.parametrize(
    "name, status, races",
    [("host_reads_before_the_copy_is_done", 3, 1), ("nothing", 0, 0)],
)
def test_rehearse_ends_with_3_where_it_found_races(
    tmp_path: Path, name: str, status: int, races: int
) -> None:
    program = [CASE, name] if races else ["-c", "import torch; torch.ones(2).cuda()"]
    command = [str(prefix() / "bin" / "actswap"), "rehearse", "--check", "races"]
    clean = {k: v for k, v in os.environ.items() if not k.startswith("ACTSWAP_")}
    done = subprocess.run(
        [*command, "-o", str(tmp_path / "run"), "--", sys.executable, *program],
        env=clean,
        capture_output=True,
        text=True,
        timeout=300,
    )
    device = json.loads((tmp_path / "run" / "rank0.json").read_text())["device"]
    told = re.findall(r"simcuda: race \d+: (.*)\nsimcuda: +(.*)", done.stderr)

    assert (done.returncode, device["races"]) == (status, races), done.stderr
    assert device["races_said"] == [f"{now} {before}" for now, before in told]
    assert len(told) == races
    show = [str(prefix() / "bin" / "actswap"), "report", str(tmp_path / "run")]
    text = subprocess.run(show, capture_output=True, text=True, check=True).stdout
    page = tmp_path / "page.html"
    subprocess.run([*show, "--html", str(page)], check=True, capture_output=True)
    for said in device["races_said"]:
        assert said in text and html.escape(said) in page.read_text()
