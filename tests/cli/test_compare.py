# SPDX-License-Identifier: Apache-2.0
"""Side by side: from reports written by hand, and from real runs of the example."""

import json
from pathlib import Path
from typing import Any

import pytest
import reports
from command import TOP, Command, errors
from reports import GIB, small as report
from schema import faults

# A GPT of two blocks: seconds a run on two cores.
SMALL = ["--layers", "2", "--hidden", "64", "--heads", "2", "--steps", "3"]


def write(actswap: Command, name: str, content: Any) -> str:
    reports.write(actswap.folder, f"{name}/rank0.json", content)
    return name


def rows(text: str) -> dict[str, list[str]]:
    """The table's cells by label."""
    table = {}
    for line in text.splitlines():
        label, *cells = [part.strip() for part in line.split("   ") if part.strip()] or [
            ""
        ]
        table[label] = cells
    return table


def test_equal_reports_are_identical(actswap: Command) -> None:
    off = write(actswap, "a", report())
    offload = write(
        actswap,
        "b",
        report(
            run__settings__policy="offload",
            peak__bytes=2 * GIB,
            moves__out_bytes=4 * GIB,
            moves__in_bytes=3 * GIB,
            moves__released_bytes=2 * GIB,
            moves__pinned_peak_bytes=GIB,
        ),
    )

    result = actswap("compare", "--ascii", off, offload)

    table = rows(result.stdout)
    assert table["result"] == ["ok", "ok"]
    assert table["after forward"] == ["4.0 GiB", "4.0 GiB"]
    assert table["peak on device"] == ["5.0 GiB", "2.0 GiB"]
    assert table["reserved"] == ["6.0 GiB", "6.0 GiB"]
    assert table["released a step"] == ["0 B", "1.0 GiB"]
    assert table["out a step"] == ["0 B", "2.0 GiB"]
    assert table["in a step"] == ["0 B", "1.5 GiB"]
    assert table["pinned host memory"] == ["0 B", "1.0 GiB"]
    assert table["losses"] == ["reference", "identical, 2 of 2"]
    assert table["gradients"] == ["reference", "identical, 2 of 2"]
    assert "at the peak of off, 5.0 GiB in step 2, backward:" in result.stdout
    assert "simulated, not measured" in result.stdout
    assert (result.returncode, result.stderr) == (0, "")


def test_the_time_of_a_step_is_a_row_where_it_is_known(actswap: Command) -> None:
    off = write(actswap, "a", report(steps__time_ns=[900_000_000, 400_000_000]))
    offload = write(actswap, "b", report())

    table = rows(actswap("compare", "--ascii", off, offload).stdout)
    neither = rows(actswap("compare", "--ascii", offload, offload).stdout)

    assert table["step time"] == ["400 ms", "-"]  # without the first
    assert "step time" not in neither


def test_the_shares_of_the_peak_are_those_of_tensors(actswap: Command) -> None:
    off = write(actswap, "a", reports.full())

    result = actswap("compare", "--ascii", off, write(actswap, "b", reports.full()))

    below = result.stdout.split("at the peak of off")[1].split("\n\n")[0]
    shares = {
        line.split()[0]: int(line.split()[-1].rstrip("%"))
        for line in below.splitlines()[1:]
    }
    held = {row["category"] for row in reports.full()["peak"]["by_category"]}
    assert held - set(shares) == {"cached", "context", "comm", "other"} & held
    assert "context" in held
    assert max(shares.values()) <= 100


@pytest.mark.parametrize(
    "field, values, row",
    [
        ("steps__loss_bits", [["0x3f800000"], ["0x3f000001"]], "losses"),
        ("steps__loss_bits", [["0x3f800000"], None], "losses"),
        ("steps__loss_bits", [["0x3f800000"], [None]], "losses"),
        ("steps__loss_bits", [["0x3f800000"]], "losses"),
        ("steps__gradient_digest", ["0x1", "0x3"], "gradients"),
        ("steps__gradient_digest", ["0x1", None], "gradients"),
    ],
)
def test_first_differing_step_is_named(
    actswap: Command, field: str, values: list[Any], row: str
) -> None:
    off = write(actswap, "a", report())
    other = write(actswap, "b", report(**{field: values}))

    result = actswap("compare", "--ascii", off, other)

    assert rows(result.stdout)[row] == ["reference", "differ from step 2"]
    assert result.returncode == 1


def test_a_budget_is_a_row_and_exceeded_by_a_policy_an_exit_code(
    actswap: Command,
) -> None:
    over = {"bytes": 4 << 30, "kept": False, "over_bytes": 1 << 30, "spare_bytes": 0,
            "step": 1, "phase": "backward", "block": None}  # fmt: skip
    kept = over | {"kept": True, "over_bytes": 0, "spare_bytes": 3 << 30}
    off = write(actswap, "off", reports.small(budget=over))
    offload = reports.small(budget=kept, run__settings={"policy": "offload"})
    folder = write(actswap, "offload", offload)

    result = actswap("compare", "--ascii", off, folder)
    assert rows(result.stdout)["budget"] == ["1.0 GiB over", "3.0 GiB to spare"]
    assert "  budget 4.0 GiB  values" in result.stdout
    assert (result.returncode, result.stderr) == (0, "")

    write(actswap, "offload", offload | {"budget": over})
    result = actswap("compare", "--ascii", off, folder)
    assert rows(result.stdout)["budget"] == ["1.0 GiB over", "1.0 GiB over"]
    assert result.returncode == 1
    assert "budget" not in actswap("compare", write(actswap, "b", reports.small())).stdout


def test_out_of_memory_is_a_result(actswap: Command) -> None:
    off = write(actswap, "a", report(ended="oom", steps__count=0))
    offload = write(actswap, "b", report())

    result = actswap("compare", "--ascii", off, offload)

    table = rows(result.stdout)
    assert table["result"] == ["OOM in step 1", "ok"]
    assert table["losses"] == ["-", "reference"]
    assert result.returncode == 0


def test_report_that_was_cut_off_is_trouble(actswap: Command) -> None:
    off = write(actswap, "a", report(complete=False, ended="running"))

    result = actswap("compare", "--ascii", off)

    assert rows(result.stdout)["result"] == ["cut off"]
    assert result.returncode == 2


def test_shapes_have_no_losses_to_compare(actswap: Command) -> None:
    changed = {"device__compute": "shapes", "steps__loss_bits": [["0x0"], ["0x0"]]}
    off = write(actswap, "a", report(**changed))
    offload = write(actswap, "b", report(**changed))

    result = actswap("compare", "--ascii", off, offload)

    assert rows(result.stdout)["losses"] == ["not computed", "not computed"]
    assert rows(result.stdout)["gradients"] == ["not computed", "not computed"]
    assert result.returncode == 0


@pytest.mark.parametrize(
    "content, message",
    [
        (
            "nonsense",
            "cannot read the report a/rank0.json: line 1, column 8: '[' or '{' expected "
            "near 'nonsense'; is it the file that a run wrote?",
        ),
        (
            {"schema": "actswap.report/2"},
            "a/rank0.json is of schema actswap.report/2, this actswap (0.1.0) reads "
            "actswap.report/1: read it with the version that wrote it",
        ),
        (
            [],
            "a/rank0.json is not a report of actswap: its schema is missing, "
            "not actswap.report/1",
        ),
    ],
)
def test_unreadable_report_is_one_line(
    actswap: Command, content: Any, message: str
) -> None:
    write(actswap, "a", content)

    result = actswap("compare", "a")

    assert (result.stdout, result.stderr) == ("", f"actswap: error: {message}\n")
    assert result.returncode == 2


def test_folder_without_a_report_is_one_line(actswap: Command) -> None:
    (actswap.folder / "a").mkdir()

    result = actswap("compare", "a")

    assert result.stderr == "actswap: error: no report (*.json) in a\n"
    assert result.returncode == 2


@pytest.mark.skipif(
    Path("/dev/nvidiactl").exists() or Path("/dev/dxg").exists(),
    reason="this machine has a GPU",
)
def test_without_a_gpu_one_is_simulated(actswap: Command, python: str) -> None:
    script = actswap.script("train.py", "import os; print(os.environ['ACTSWAP_SIM_GPU'])")

    result = actswap("compare", "-o", "all", "--", python, script)

    assert result.stderr.splitlines()[0] == (
        "actswap: no NVIDIA GPU here, so h100-80gb is simulated; --gpu NAME for another"
    )
    assert (actswap.folder / "all" / "off.log").read_text() == "h100-80gb\n"
    assert result.returncode == 2


def test_program_without_cuda_ends_the_comparison(actswap: Command, python: str) -> None:
    script = actswap.script("train.py", "print(1)\nraise SystemExit(3)\n")

    result = actswap("compare", "--gpu", "h100-80gb", "-o", "all", "--", python, script)

    assert errors(result) == [
        "actswap: error: train.py ended with status 3 before it used CUDA; "
        "its own message is in all/off.log"
    ]
    assert (actswap.folder / "all" / "off.log").read_text() == "1\n"
    assert not (actswap.folder / "all" / "offload.log").exists()
    assert result.returncode == 2


# Trains for two steps. {0} is done to the loss.
TRAIN = """
import os, random, torch
model = torch.nn.Linear(8, 8).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(2):
    x = torch.arange(64.0, device="cuda").view(8, 8) / 64
    loss = model(x).square().mean()
    {0}
    loss.backward()
    optimizer.step()
"""
SEED = "import torch\ntorch.manual_seed(1)\n"


@pytest.mark.parametrize(
    "text, code, said",
    [
        (
            SEED
            + TRAIN.format(
                'loss = loss * (1 + step * (os.environ["ACTSWAP_POLICY"] == "offload"))'
            ),
            1,
            "",
        ),
        (
            SEED
            + TRAIN.format(
                'if os.environ["ACTSWAP_POLICY"] == "offload": raise SystemExit(4)'
            ),
            2,
            "",
        ),
        (
            TRAIN.format(""),
            3,
            "actswap: error: not comparable: two runs with off differ from step 1 on.",
        ),
    ],
    ids=["differs", "crashes", "not deterministic"],
)
def test_the_exit_code_says_how_the_comparison_went(
    actswap: Command, python: str, text: str, code: int, said: str
) -> None:
    script = actswap.script("train.py", text)

    result = actswap(
        "compare", "--gpu", "h100-80gb", "-p", "off,offload", "-o", "all", "--ascii",
        "--", python, script,
    )  # fmt: skip

    assert result.returncode == code, result.stderr
    assert said in result.stderr
    # A script that differs from itself is not run under any policy.
    assert (actswap.folder / "all" / "offload.log").exists() == (code != 3)


def test_example_is_identical_under_every_policy(actswap: Command, python: str) -> None:
    example = str(TOP / "examples" / "train_gpt.py")

    result = actswap(
        "compare", "--gpu", "h100-80gb", "-b", "90%", "--ascii", "-o", "all", "--",
        python, example, *SMALL
    )  # fmt: skip

    table = rows(result.stdout)
    assert table["result"] == ["ok"] * 4, result.stderr
    assert table["losses"] == ["reference"] + ["identical, 3 of 3"] * 3
    assert table["gradients"] == ["reference"] + ["identical, 3 of 3"] * 3
    assert table["released a step"][0] == "0 B"
    assert table["released a step"][1] != "0 B"
    off, offload, recompute = (
        json.loads((actswap.folder / "all" / policy / "rank0.json").read_text())
        for policy in ("off", "offload", "recompute")
    )
    for one in (off, offload, recompute):
        assert faults(one) == []
        assert one["budget"]["kept"] and one["budget"]["bytes"] == 85028896768 * 9 // 10
    assert [cell.split()[2:] for cell in table["budget"]] == [["to", "spare"]] * 4
    read = actswap("report", "all", "--html", "page.html")
    assert (read.returncode, read.stderr) == (0, "")
    page = (actswap.folder / "page.html").read_text()
    assert len(page) < 1_000_000 and 'id="policies"' in page
    plain = off["steps"]["after_forward_bytes"]
    assert max(recompute["steps"]["after_forward_bytes"]) < max(plain)
    # Once a step is known, all that the budget has room for stays.
    ours = offload["steps"]["after_forward_bytes"]
    assert ours[0] < plain[0] and ours[-1] == plain[-1]
    assert result.returncode == 0
