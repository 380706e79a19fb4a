# SPDX-License-Identifier: Apache-2.0
"""`actswap report` as text and as JSON: one rank, many, and files it cannot read."""

import json
from pathlib import Path
from typing import Any

import pytest
import reports
from command import TOP, Command, errors
from reports import GIB, MS, write
from schema import faults

GOLDEN = TOP / "tests" / "golden"


def lines(text: str) -> dict[str, str]:
    """What stands behind each label at the left."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        if line.startswith("  ") and line[2:3].strip():
            found[line[2:18].strip()] = line[18:].strip()
    return found


def four(actswap: Command, missing: int = 2, **changes: Any) -> str:
    """Ranks of a world of four, of which one left no report; 3 needs most, 1 is slow."""
    for rank in {0, 1, 2, 3} - {missing}:
        content = reports.full(
            run__rank=rank,
            run__world_size=4,
            run__pid=100 + rank,
            peak__bytes=(7 if rank == 3 else 5) * GIB,
            steps__time_ns=[900 * MS, (430 if rank == 1 else 400) * MS],
            **changes,
        )
        write(actswap.folder, f"four/rank{rank}.json", content)
    return "four"


def test_schema_takes_all_that_it_knows_and_refuses_other_types() -> None:
    assert faults(reports.small()) == []
    assert faults(reports.full()) == []
    assert faults(reports.out_of_memory()) == []
    assert faults(reports.full(of_a_later_version={"a": 1})) == []
    (wrong,) = faults(reports.full(peak__bytes="5 GiB"))
    assert wrong.startswith("peak/bytes ")
    assert faults(reports.full(ended="somehow")) != []
    assert faults(reports.full(timeline__t_ns=list(range(2001)))) != []


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.json")), ids=lambda p: p.stem)
def test_report_of_an_older_version_stays_readable(actswap: Command, path: Path) -> None:
    assert faults(path) == []

    text = actswap("report", "--ascii", str(path))
    page = actswap("report", str(path), "--html", "page.html")
    merged = actswap("report", str(path), "--json")

    assert (text.returncode, page.returncode, merged.returncode) == (0, 0, 0)
    assert text.stdout == path.with_suffix(".txt").read_text().replace(
        "GOLDEN", str(GOLDEN)
    )
    (run,) = json.loads(merged.stdout)["runs"]
    assert run["ranks"][0]["report"] == json.loads(path.read_text())


def test_text_tells_the_peak_and_what_held_it(actswap: Command) -> None:
    write(actswap.folder, "a/rank0.json", reports.full())

    result = actswap("report", "a", "--ascii")

    told = lines(result.stdout)
    assert told["peak on device"] == "5.0 GiB of 80.0 GiB (6%)   step 2, backward"
    assert told["step time"] == "400 ms"
    assert told["report"] == "a/rank0.json"
    assert told["as a page"] == "actswap report a --html report.html"
    rows = [row.split() for row in result.stdout.splitlines()]
    assert ["activation", "4.0", "GiB", "80%", "adapter", "#" * 19] in rows
    assert "simulated (values), not measured" in result.stdout
    assert "half of the activation bytes wait 64 ms or longer" in result.stdout
    assert "in the time of this simulation" in result.stdout
    assert (result.returncode, result.stderr) == (0, "")
    assert "\033" not in result.stdout and result.stdout.isascii()


def test_a_card_that_pretends_to_be_small_is_said(actswap: Command) -> None:
    small = reports.full(device__total_bytes=40 << 30, device__card_bytes=80 << 30)
    write(actswap.folder, "a/rank0.json", small)

    text = actswap("report", "a", "--ascii")
    page = actswap("report", "a", "--html", "-")
    sides = actswap("compare", "--ascii", "a")

    told = "NVIDIA H100 80GB HBM3, pretending 40.0 GiB"
    assert told in text.stdout and told in page.stdout
    assert "NVIDIA H100 80GB HBM3 (pretending 40.0 GiB)" in sides.stdout
    assert lines(text.stdout)["peak on device"].startswith("5.0 GiB of 40.0 GiB (12%)")
    own = reports.full(device__card_bytes=80 << 30)
    write(actswap.folder, "a/rank0.json", own)
    assert "pretending" not in actswap("report", "a").stdout


def exceeded() -> dict[str, Any]:
    over = {"bytes": 4 << 30, "kept": False, "over_bytes": 1 << 30, "spare_bytes": 0,
            "step": 6, "phase": "backward", "block": "layers.3"}  # fmt: skip
    return reports.full(budget=over)


def test_the_budget_is_kept_or_exceeded(actswap: Command) -> None:
    for report, told in (
        (reports.full(), "44.0 GiB: kept, 39.0 GiB to spare"),
        (
            exceeded(),
            "4.0 GiB: exceeded by 1.0 GiB, first in step 7, backward, in layers.3",
        ),
        (reports.small(), None),
    ):
        write(actswap.folder, "a/rank0.json", report)
        text = actswap("report", "a", "--ascii").stdout
        page = actswap("report", "a", "--html", "-").stdout
        assert lines(text).get("budget") == told
        assert (f">Budget {told}.<" in page) == (told is not None)


def test_top_limits_the_sites_and_says_what_is_left(actswap: Command) -> None:
    write(actswap.folder, "a/rank0.json", reports.full())

    result = actswap("report", "a", "--top", "3")

    assert "model.py:120 Block.forward < train.py:18 step" in result.stdout
    assert "model.py:121" not in result.stdout
    assert "... 17 more: add --top 20" in result.stdout


def test_fits_names_the_smallest_card_and_what_the_next_one_lacks(
    actswap: Command,
) -> None:
    cards = [("T4 16GB", 15, "no"), ("L4 24GB", 21, "no"), ("L40S 48GB", 44, "as_is")]
    verdict = [
        {"gpu": gpu, "usable_bytes": usable * GIB, "fits": fits, "basis": "simulated",
         "peak_bytes": 24 * GIB, "short_bytes": max(24 - usable, 0) * GIB}
        for gpu, usable, fits in cards + [("H100 80GB", 76, "as_is")]
    ]  # fmt: skip
    write(actswap.folder, "some/rank0.json", reports.full(verdict=verdict))
    write(actswap.folder, "none/rank0.json", reports.full(verdict=verdict[:2]))

    assert lines(actswap("report", "some").stdout)["fits"] == (
        "L40S 48GB as it is, 20.0 GiB to spare; L4 24GB is 3.0 GiB short (simulated)"
    )
    assert lines(actswap("report", "none").stdout)["fits"] == (
        "L4 24GB is 3.0 GiB short (simulated)"
    )


def test_what_a_report_lacks_is_said(actswap: Command) -> None:
    write(actswap.folder, "a/rank0.json", reports.small())

    result = actswap("report", "a")

    assert lines(result.stdout)["not in it"] == (
        "memory over time, sites in the code, idle gaps, step times, "
        "what it would fit on"
    )
    assert "largest sites" not in result.stdout
    assert result.returncode == 0


def test_memory_that_was_not_seen_is_not_zero(actswap: Command) -> None:
    report = reports.small(peak__source="none", peak__bytes=0, peak__by_category=[])
    write(actswap.folder, "a/rank0.json", report)

    result = actswap("report", "a")

    told = lines(result.stdout)
    assert told["peak on device"] == "not known: no allocation was seen"
    assert " 0 B" not in result.stdout


def test_out_of_memory_tells_what_was_asked_and_what_is_to_come(
    actswap: Command,
) -> None:
    write(actswap.folder, "a/rank0.json", reports.out_of_memory())

    told = lines(actswap("report", "a").stdout)

    assert told["run"] == "out of memory in step 1"
    assert told["out of memory"] == (
        "asked for 512.0 MiB with 78.0 GiB of 80.0 GiB in use"
    )
    assert told["held by"] == "activation 46.0 GiB, parameter 15.0 GiB"
    assert told["still to come"] == "optimizer_state 30.0 GiB"
    assert told["free in pieces"] == "2.0 GiB, the largest piece 96.0 MiB"


def test_the_file_of_an_oom_belongs_to_its_report(actswap: Command) -> None:
    """The program caught the exception and went on; both files are of one process."""
    write(actswap.folder, "a/rank0.json", reports.full())
    write(actswap.folder, "a/rank0.oom.json", reports.out_of_memory())

    result = actswap("report", "a")

    told = lines(result.stdout)
    assert told["run"] == "ended by itself after 2 steps"
    assert told["out of memory"].startswith("asked for 512.0 MiB")
    assert told["report"] == "a/rank0.json"
    assert "ranks" not in told


def test_ranks_are_put_together_and_the_outliers_named(actswap: Command) -> None:
    result = actswap("report", four(actswap), "--ascii")

    assert "rank 3 of 4" in result.stdout.splitlines()[0]
    assert "rank 3 has the highest peak, 7.0 GiB; the lowest is 5.0 GiB" in result.stdout
    assert "rank 1 has the slowest step, 430 ms" in result.stdout
    assert "1 of 4 ranks left no report: 2" in result.stdout
    assert lines(result.stdout)["report"] == "four/rank3.json"


def test_a_rank_that_was_asked_for_is_told(actswap: Command) -> None:
    result = actswap("report", four(actswap), "--rank", "1")

    assert "rank 1 of 4" in result.stdout.splitlines()[0]
    assert lines(result.stdout)["report"] == "four/rank1.json"


def test_ranks_from_the_disks_of_several_machines_are_one_run(actswap: Command) -> None:
    for rank in (0, 1):
        content = reports.small(run__rank=rank, run__world_size=2, run__pid=rank + 1)
        write(actswap.folder, f"node{rank}/rank{rank}.json", content)

    (run,) = json.loads(actswap("report", "node0", "node1", "--json").stdout)["runs"]

    assert [rank["rank"] for rank in run["ranks"]] == [0, 1]
    assert run["missing_ranks"] == []


def test_json_is_one_object_with_every_rank(actswap: Command) -> None:
    result = actswap("report", four(actswap), "--json")

    merged = json.loads(result.stdout)
    assert merged["schema"] == "actswap.merged/1"
    (run,) = merged["runs"]
    assert (run["world_size"], run["missing_ranks"]) == (4, [2])
    assert (run["highest_peak_rank"], run["slowest_rank"]) == (3, 1)
    assert [rank["rank"] for rank in run["ranks"]] == [0, 1, 3]
    for rank in run["ranks"]:
        assert rank["report"] == json.loads((actswap.folder / rank["file"]).read_text())


def test_ranks_that_are_missing_come_as_ranges(actswap: Command) -> None:
    for rank in (0, 4, 9):
        content = reports.small(run__rank=rank, run__world_size=12, run__pid=rank + 1)
        write(actswap.folder, f"a/rank{rank}.json", content)

    result = actswap("report", "a")

    assert "9 of 12 ranks left no report: 1 to 3, 5 to 8, 10, 11" in result.stdout


def test_runs_of_a_comparison_come_side_by_side(actswap: Command) -> None:
    for n, policy in enumerate(("off", "offload", "recompute")):
        content = reports.full(run__settings__policy=policy, peak__bytes=(5 - n) * GIB)
        write(actswap.folder, f"all/{policy}/rank0.json", content)

    result = actswap("report", "all", "--ascii")

    row = next(r for r in result.stdout.splitlines() if r.startswith("peak on device"))
    assert row.split() == [
        "peak",
        "on",
        "device",
        "5.0",
        "GiB",
        "4.0",
        "GiB",
        "3.0",
        "GiB",
    ]
    assert lines(result.stdout)["report"] == "all/off/rank0.json"


def test_a_second_run_in_one_folder_is_a_run_of_its_own(actswap: Command) -> None:
    write(actswap.folder, "a/rank0.json", reports.small())
    write(actswap.folder, "a/rank0.2.json", reports.small(run__id="r2"))

    merged = json.loads(actswap("report", "a", "--json").stdout)

    names = sorted(run["name"] for run in merged["runs"])
    assert names == ["rank0.2.json", "rank0.json"]


UNREADABLE = {
    "nonsense": (
        "hello",
        "cannot read the report a/rank0.json: line 1, column 5: '[' or '{' expected "
        "near 'hello'; is it the file that a run wrote?",
    ),
    "empty": (
        "",
        "the report a/rank0.json is empty: its run ended before it wrote, or the disk "
        "is full; leave the file out",
    ),
    "cut_off": (
        '{\n"schema": "actswap.report/1",\n"peak": {',
        "the report a/rank0.json is cut off at line 3, column 9: copy it again, or leave "
        "it out",
    ),
    "cut_off_in_a_word_by_an_editor": (
        '{\n"schema": "actswap.rep\n',
        "the report a/rank0.json is cut off at line 2, column 22: copy it again, or "
        "leave it out",
    ),
    "newer": (
        {"schema": "actswap.report/2", "run": {"actswap": "9.1"}},
        "a/rank0.json is of schema actswap.report/2, this actswap (0.1.0) reads "
        "actswap.report/1: read it with the version that wrote it, 9.1",
    ),
    "other": (
        {"schema": "trace/7"},
        "a/rank0.json is not a report of actswap: its schema is trace/7, "
        "not actswap.report/1",
    ),
}


@pytest.mark.parametrize("content, message", UNREADABLE.values(), ids=UNREADABLE.keys())
def test_unreadable_report_is_one_line(
    actswap: Command, content: Any, message: str
) -> None:
    write(actswap.folder, "a/rank0.json", content)

    result = actswap("report", "a", "--html", "page.html")

    assert (result.stdout, result.stderr) == ("", f"actswap: error: {message}\n")
    assert result.returncode == 1
    assert not (actswap.folder / "page.html").exists()


def test_every_cut_of_a_report_is_one_line(actswap: Command) -> None:
    whole = json.dumps(reports.small())
    for length in range(0, len(whole) - 1, 23):
        write(actswap.folder, "a/rank0.json", whole[:length])
        result = actswap("report", "a")
        assert result.returncode == 1
        assert len(result.stderr.splitlines()) == 1, result.stderr
        assert "a/rank0.json" in result.stderr


@pytest.mark.parametrize("value", [None, "text", [[None]], 1 << 62], ids=repr)
@pytest.mark.parametrize("way", [["--json"], ["--html", "-"]], ids=" ".join)
def test_a_field_of_an_unexpected_type_is_not_known(
    actswap: Command, value: Any, way: list[str]
) -> None:
    """Each top field, and all inside of one, in turn; none makes the command fail."""
    whole = reports.full(oom={"asked_bytes": 1})
    for field, content in whole.items():
        if field == "schema":
            continue
        changes = [value]
        if isinstance(content, dict):
            changes.append({name: value for name in content})
        for change in changes:
            write(actswap.folder, "a/rank0.json", whole | {field: change})
            for each in (way, ["--text"]) if way == ["--json"] else (way,):
                result = actswap("report", "a", *each)
                assert (result.returncode, result.stderr) == (0, ""), (field, change)


WRONG = {
    "nothing": ([], "no report given: actswap report DIR"),
    "two_ways": (
        ["a", "--json", "--html", "x"],
        "--text, --json and --html: one at a time",
    ),
    "rank": (["a", "--rank", "one"], "--rank one is not a number from 0"),
    "no_such_rank": (
        ["a", "--rank", "7"],
        "no report of rank 7 in a: 1 of 1 ranks left one",
    ),
    "top": (["a", "--top", "0"], "--top 0 is not a number from 1"),
    "open": (["a", "--open"], "--open shows a page: add --html FILE"),
    "option_after_the_folder": (
        ["a", "--htlm", "x"],
        "--htlm is not an option of actswap report. Did you mean --html? "
        "(all: actswap report --help)",
    ),
}


@pytest.mark.parametrize("arguments, message", WRONG.values(), ids=WRONG.keys())
def test_wrong_word_is_one_line(
    actswap: Command, arguments: list[str], message: str
) -> None:
    write(actswap.folder, "a/rank0.json", reports.small())

    result = actswap("report", *arguments)

    assert (result.stdout, errors(result)) == ("", [f"actswap: error: {message}"])
    assert result.returncode == 2


def test_missing_file_and_empty_folder_are_one_line(actswap: Command) -> None:
    (actswap.folder / "empty").mkdir()

    missing = actswap("report", "none.json")
    empty = actswap("report", "empty")

    assert missing.stderr == (
        "actswap: error: cannot read the report none.json: No such file or directory\n"
    )
    assert empty.stderr == (
        "actswap: error: no report (*.json) in empty: is it the folder that the run "
        "named?\n"
    )
    assert (missing.returncode, empty.returncode) == (1, 1)


def test_a_disk_that_is_full_is_said(actswap: Command) -> None:
    write(actswap.folder, "a/rank0.json", reports.full())

    result = actswap("report", "a", "--html", "/dev/full")

    assert result.stderr == (
        "actswap: error: cannot write /dev/full: No space left on device; name another "
        "file\n"
    )
    assert result.returncode == 1


def test_a_file_that_is_no_page_is_not_overwritten(actswap: Command) -> None:
    write(actswap.folder, "a/rank0.json", reports.full())
    before = (actswap.folder / "a/rank0.json").read_text()

    result = actswap("report", "a", "--html", "a/rank0.json")

    assert result.stderr == (
        "actswap: error: a/rank0.json exists and is no page: name another file\n"
    )
    assert result.returncode == 2
    assert (actswap.folder / "a/rank0.json").read_text() == before


def test_modules_alike_are_one_row_and_hold_what_is_inside(actswap: Command) -> None:
    made = {
        "model.layers.0": 1,
        "model.layers.0.mlp": 20,
        "model.layers.1.mlp": 30,
        "model.layers.1.attn": 4,
        "model.norm": 5,
        "Llama": 7,
        "lm_head": 61,
        "(outside)": 2,
    }
    whole = reports.full()
    whole["modules"] = [
        {"module": name, "peak_bytes": mib << 20} for name, mib in made.items()
    ]
    path = write(actswap.folder, "rank0.json", whole)

    def shown(*options: str) -> list[str]:
        out = actswap("report", "--ascii", *options, path).stdout
        lines = out.split("  largest modules")[1].split("\n\n")[0].splitlines()[1:]
        return [line[4:] for line in lines]

    assert shown("--top", "20") == [
        "  61.0 MiB          lm_head",
        "  60.0 MiB          model",
        "  55.0 MiB      2x    model.layers.*",
        "  50.0 MiB      2x      model.layers.*.mlp",
        "   4.0 MiB              model.layers.1.attn",
        "   5.0 MiB            model.norm",
        "   7.0 MiB          Llama",
        "   2.0 MiB          (outside)",
    ]
    assert shown("--top", "3") == [
        "  61.0 MiB          lm_head",
        "  60.0 MiB          model",
        "  55.0 MiB      2x    model.layers.*",
        "... 5 more: add --top 8",
    ]
