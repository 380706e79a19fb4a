# SPDX-License-Identifier: Apache-2.0
"""The HTML page: one file, whole without its script, whatever is in the report."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import reports
from command import Command
from reports import GIB, MIB, MS, write

EVIL = """<script>alert(1)</script> </script> "'> {{sites}} & HTTP://x.example/ \ufffd"""
EMPTY_TAGS = {"meta", "br", "input"}


class Page(HTMLParser):
    """The page's elements; that each is closed is checked on the way."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.html = html
        self.open: list[str] = []
        self.sections: dict[str, str] = {}
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "section":
            self.sections[dict(attrs)["id"] or ""] = ""
        if tag not in EMPTY_TAGS:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not {"script", "style"} & set(self.open):
            self.text += data
            if "section" in self.open:
                self.sections[list(self.sections)[-1]] += data


def page_of(actswap: Command, *arguments: str) -> Page:
    result = actswap("report", *arguments, "--html", "page.html")
    assert (result.returncode, result.stderr) == (0, ""), result.stderr
    assert result.stdout == "page.html\n"
    return Page((actswap.folder / "page.html").read_text())


def one(actswap: Command, report: dict[str, Any]) -> Page:
    write(actswap.folder, "a/rank0.json", report)
    return page_of(actswap, "a")


def fetches_nothing(page: Page) -> bool:
    links = {"src", "href", "action", "srcset", "data", "poster"}
    return (
        "http" not in page.html.lower()
        and "url(" not in page.html
        and "@import" not in page.html
        and not any(links & set(attrs) for _, attrs in page.tags)
        and not any(tag in ("link", "base", "iframe") for tag, _ in page.tags)
    )


def test_page_has_a_section_for_all_that_is_known(actswap: Command) -> None:
    page = one(actswap, reports.full())

    assert list(page.sections) == ["memory", "peak", "idle", "modules", "sites", "how"]
    assert fetches_nothing(page)
    assert "At most 5.0 GiB of 80.0 GiB (6%) were in use, in step 2" in page.text
    assert "simulated (values), not measured" in page.text
    assert "half of the activation bytes wait 64 ms or longer" in page.sections["idle"]
    assert "round trip" not in page.sections["idle"]
    assert "activation" in page.sections["peak"] and "4.0 GiB" in page.sections["peak"]
    assert "model.py:118 Block.forward" in page.sections["sites"]
    assert "train.py:42 main" in page.sections["sites"]
    areas = [attrs for tag, attrs in page.tags if "data-series" in attrs]
    assert [area["class"] for area in areas] == [
        f"area c-{name}"
        for name in ("parameter", "optimizer_state", "gradient", "input", "activation",
                     "temporary", "cached")
    ]  # fmt: skip


def test_script_gets_the_numbers_of_the_picture(actswap: Command) -> None:
    report = reports.full()
    page = one(actswap, report)

    begin = page.html.index(">", page.html.index('class="timeline-data"')) + 1
    data = json.loads(page.html[begin : page.html.index("</script>", begin)])

    drawn = report["timeline"]
    assert (data["t"], data["step"]) == (drawn["t_ns"], drawn["step"])
    assert data["phase"] == drawn["phase"]
    for series in data["series"]:
        assert series["bytes"] == drawn["series"][series["name"]]


def test_a_long_start_is_left_out_of_the_picture_and_said(actswap: Command) -> None:
    report = reports.full()
    report["timeline"]["phase"][:200] = ["other"] * 200

    page = one(actswap, report)

    assert "The first 788 ms, before any forward, are left out." in page.text


def test_waits_on_a_card_are_held_against_its_round_trip(actswap: Command) -> None:
    report = reports.full(device__simulated=False, device__measured=True)
    report["verdict"][0]["basis"] = "measured"

    page = one(actswap, report)

    assert "78% of activation bytes wait longer than the 31 ms" in page.sections["idle"]
    assert "a round trip takes 31 ms" in page.sections["idle"]
    assert "measured" in page.text and "simulat" not in page.text


def test_page_says_what_a_report_does_not_have(actswap: Command) -> None:
    page = one(actswap, reports.small(run__actswap="0.1.0"))

    absent = "Not in this report: actswap 0.1.0, which wrote it, did not see it."
    for section in ("memory", "idle", "sites"):
        assert absent in page.sections[section]
    assert "memory over time" in page.sections["how"]
    assert "steps" in page.sections
    assert fetches_nothing(page)


def test_text_of_a_report_is_never_markup(actswap: Command) -> None:
    """Every text, and every key of an open object, may hold anything."""

    def poison(value: Any, key: str = "") -> Any:
        if key in ("schema", "source"):
            return value
        if isinstance(value, dict):
            return {name: poison(item, name) for name, item in value.items()}
        if isinstance(value, list):
            return [poison(item, key) for item in value]
        return EVIL if isinstance(value, str) else value

    report = poison(reports.out_of_memory())
    report["timeline"]["series"][EVIL] = [GIB] * len(report["timeline"]["t_ns"])
    report["run"]["settings"][EVIL] = EVIL

    page = one(actswap, report)

    assert sum(tag == "script" for tag, _ in page.tags) == 2
    assert fetches_nothing(page)
    assert EVIL in page.sections["peak"]
    clean = one(actswap, reports.out_of_memory())
    names = {name for _, attrs in page.tags for name in attrs}
    assert names <= {name for _, attrs in clean.tags for name in attrs}


def test_page_of_the_longest_run_is_under_a_megabyte(actswap: Command) -> None:
    report = reports.full(timeline=reports.timeline(1000, 2000))
    for series in report["timeline"]["series"].values():
        series[:] = [value + 137 * GIB + 7 for value in series]
    frame = "/a/long/path/to/site-packages/transformers/models/llama/modeling.py:1234 f"
    report["stacks"] = [[f"{frame}{n}"] * 12 for n in range(200)]
    report["sites"] = [report["sites"][0] | {"stack": n} for n in range(200)]
    for rank in range(128):
        report["run"] |= {"rank": rank, "world_size": 128, "pid": rank + 1}
        write(actswap.folder, f"a/rank{rank}.json", report)

    page = page_of(actswap, "a")

    assert len(page.html) < 1_000_000
    assert "128 ranks in all" in page.sections["ranks"]


def test_out_of_memory_comes_first(actswap: Command) -> None:
    page = one(actswap, reports.out_of_memory())

    assert "The program asked for 512.0 MiB while 78.0 GiB were in use" in page.text
    assert "Still to come: optimizer_state 30.0 GiB." in page.text
    assert "in step 1, forward, in blocks.2." in page.text
    assert "Held by activation 46.0 GiB, parameter 15.0 GiB." in page.text
    assert page.text.index("Out of memory") < page.text.index("At most")


def write_ranks(folder: Path, peaks: list[int]) -> None:
    """A run of so many ranks, each with its peak in GiB."""
    for rank, peak in enumerate(peaks):
        report = reports.full(
            run__rank=rank,
            run__world_size=len(peaks),
            run__pid=rank + 1,
            peak__bytes=peak * GIB,
        )
        write(folder, f"a/rank{rank}.json", report)


def test_one_of_the_ranks_is_shown_and_a_switch_has_the_others(actswap: Command) -> None:
    peaks = [5, 7, 6]
    write_ranks(actswap.folder, peaks)

    page = page_of(actswap, "a")

    buttons = [a for tag, a in page.tags if tag == "input"]
    assert [a["type"] for a in buttons] == ["radio"] * 3
    assert ["checked" in a for a in buttons] == [False, True, False], "the highest"
    picked = [a["for"] for tag, a in page.tags if tag == "label"]
    assert picked == [a["id"] for a in buttons] * 2, "in the head and in the table"
    for n, peak in enumerate(peaks):
        assert f"#pick-{n}:checked~* .rank-{n}{{display:block}}" in page.html
        assert f"At most {peak}.0 GiB" in page.text
        assert f'id="memory{f"-{n}" if n != 1 else ""}"' in page.html
    ids = [a["id"] for _, a in page.tags if "id" in a]
    assert len(ids) == len(set(ids))
    assert fetches_nothing(page)


def test_the_page_has_the_highest_ranks_and_the_one_asked_for(actswap: Command) -> None:
    write_ranks(actswap.folder, [*range(5, 17)])

    page = page_of(actswap, "a", "--rank", "0")

    buttons = [a for tag, a in page.tags if tag == "input"]
    assert [a["id"] for a in buttons if "checked" in a] == ["pick-0"]
    told = [a["id"] for a in buttons]
    assert told == ["pick-0", *(f"pick-{n}" for n in range(13 - len(told), 12))]
    assert 1 < len(told) < 9 and len(page.html) < 1_000_000
    assert f"{len(told)} of 12 are on this page" in page.text


def test_ranks_are_a_row_each_and_the_missing_one_is_named(actswap: Command) -> None:
    for rank in (0, 1, 3):
        report = reports.full(
            run__rank=rank,
            run__world_size=4,
            run__pid=rank + 1,
            peak__bytes=(5 + rank) * GIB,
            steps__time_ns=[900 * MS, (430 if rank == 1 else 400) * MS],
        )
        write(actswap.folder, f"a/rank{rank}.json", report)

    ranks = page_of(actswap, "a").sections["ranks"]

    assert "Rank 3" in ranks.title() and "highest peak" in ranks
    assert "slowest step" in ranks
    assert "1 of 4 ranks left no report: 2." in ranks


def test_policies_come_side_by_side(actswap: Command) -> None:
    for n, policy in enumerate(("off", "offload")):
        report = reports.full(
            run__settings__policy=policy,
            peak__bytes=(5 - n) * GIB,
            moves__out_bytes=n * 64 * MIB,
        )
        write(actswap.folder, f"all/{policy}/rank0.json", report)

    policies = page_of(actswap, "all").sections["policies"]

    assert re.search(r"offload\s*4\.0 GiB\s*6\.0 GiB\s*32\.0 MiB", policies)


def test_peak_of_tensors_stays_in_the_picture(actswap: Command) -> None:
    """One bucket of 2000 is higher; what the allocator keeps back is no part of it."""
    report = reports.full(timeline=reports.timeline(6, 2000))
    report["timeline"]["series"]["activation"][1234] = 30 * GIB
    report["timeline"]["series"]["cached"][700] = 50 * GIB

    page = one(actswap, report)

    held = sum(
        series[1234]
        for name, series in report["timeline"]["series"].items()
        if name != "cached"
    )
    assert f"peak {held / GIB:.1f} GiB, step 2, backward" in page.sections["memory"]
