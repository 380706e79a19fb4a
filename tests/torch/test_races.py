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
from stack import ROOT, Run, environment, prefix

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
    "columns_of_one_matrix": 8.0,
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
    "columns_of_one_matrix": ("both[:, 64:].fill_", "both[:, :columns].fill_"),
}
ORDERS = ("early", "late", "seed:21", "seed:24", "seed:26")


@pytest.fixture(scope="module")
def runs() -> Dict[str, Any]:
    return {
        order: Run([CASE], environment(sim_order=order, sim_check="races"))
        for order in ORDERS
    }


def pairs_in(text: str, case: Path = Path(CASE)) -> List[List[str]]:
    """The source of both lines of each report."""
    source, found = case.read_text().splitlines(), []
    for report in re.findall(r"simcuda: race \d+: .*\nsimcuda: .*", text):
        numbers = re.findall(rf"\({case.stem}\.py:(\d+)\)", report)
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
    [("host_reads_before_the_copy_is_done", 3, 1), ("an example under offload", 0, 0)],
)
def test_rehearse_ends_with_3_where_it_found_races(
    tmp_path: Path, name: str, status: int, races: int
) -> None:
    example = [str(ROOT / "examples" / "train_mlp.py"), "--layers=3", "--batch=64"]
    program = [CASE, name] if races else example
    command = [str(prefix() / "bin" / "actswap"), "rehearse", "--check", "races"]
    command += [] if races else ["-p", "offload", "--steps", "3"]
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
    assert ("races            none found" in done.stderr) == (not races), done.stderr
    show = [str(prefix() / "bin" / "actswap"), "report", str(tmp_path / "run")]
    text = subprocess.run(show, capture_output=True, text=True, check=True).stdout
    page = tmp_path / "page.html"
    subprocess.run([*show, "--html", str(page)], check=True, capture_output=True)
    for said in device["races_said"]:
        assert said in text and html.escape(said) in page.read_text()


@pytest.mark.parametrize("order", ["late", "seed:4"])
def test_threads_that_hand_over_do_not_race(order: str) -> None:
    settings = environment(sim_order=order, sim_check="races", sim_gpus="2")
    run = Run([str(Path(CASE).with_name("races_threads.py"))], settings)

    assert run.result() == {
        "by_a_queue": [[0.0, 1.0, 2.0, 3.0, 4.0, 5.0], 0],
        "by_a_simple_queue": [[0.0, 1.0, 2.0, 3.0], 0],
        "by_a_flag": [5.0, 0],
        "by_an_executor": [[0.0, 1.0, 2.0, 3.0], 0],
        "on_two_devices": [True, 0],
        "backward_in_threads": [[1.0] * 6, 0],
        "loader": [True, 0],
    }, run.err


# The places of each without its edge: of the later one, and of the earlier.
TRITON = {
    "kernel_reads": ("add_one[(1,)](source", "source.fill_(4.0)"),
    "kernel_writes": ("twice = target * 2", "add_one[(1,)](source"),
    "kernels_meet": ("add_one[(1,)](target", "add_one[(1,)](source"),
    "behind_a_kernel": ("thrice = source * 3", "source.fill_(4.0)"),
}
# The line is that of the function that was compiled.
COMPILED = ("@torch.compile", "source.fill_(4.0)")


@pytest.mark.parametrize("compute", ["auto", "values"])
def test_triton_kernels_take_part(compute: str) -> None:
    case = Path(CASE).with_name("races_triton.py")
    settings = environment(sim_order="late", sim_compute=compute, sim_check="races")
    compiled = compute == "auto"
    run = Run([str(case), *["compiled"] * compiled], settings)
    found = run.result()
    lacking = [*TRITON, *["compiled_reads"] * compiled]

    assert {name: found[f"{name}:edge"][1] for name in lacking} == {
        name: 0 for name in lacking
    }, run.err
    assert {name: found[f"{name}:none"][1] for name in lacking} == {
        name: 1 for name in lacking
    }, run.err
    assert found["kernels_share:none"][1] == 0
    said = pairs_in(run.err, case)
    assert len(said) == len(lacking)
    for (now, before), places in zip([*TRITON.values(), COMPILED], said):
        assert now in places[0] and before in places[1], run.err
    if compute == "values":
        # A kernel's number: of what the other stream had not yet written.
        assert found["kernel_reads:edge"][0] == 5.0
        assert found["kernel_reads:none"][0] == 2.0
