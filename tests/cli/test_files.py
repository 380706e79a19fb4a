# SPDX-License-Identifier: Apache-2.0
"""The launcher starts nothing when one of our own files is not as it was installed."""

import os
import shutil
from pathlib import Path

import pytest
from command import PREFIX, Command

FOLDERS = list((PREFIX / "lib").glob("**/actswap/manifest"))
MANIFEST = FOLDERS[0] if FOLDERS else Path("not-installed")
NAMES = [
    line.split(" ", 1)[1]
    for line in (MANIFEST.read_text().splitlines() if FOLDERS else [])
    if " " in line
]


def link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


@pytest.fixture
def copied(tmp_path: Path) -> tuple[Command, Path]:
    """The command of a copy of the whole prefix, and the copy's private folder."""
    prefix = tmp_path / "prefix"
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(PREFIX, prefix, copy_function=link_or_copy, ignore=ignore)
    folder = tmp_path / "run"
    folder.mkdir()
    command = Command(folder, prefix / "bin" / "actswap")
    return command, prefix / MANIFEST.parent.relative_to(PREFIX)


def replace(path: Path, content: bytes) -> None:
    """Through a new file: the copy may be a link to the installed one."""
    path.unlink()
    path.write_bytes(content)


def assert_refused(command: Command, line: str) -> None:
    for verb in ("rehearse", "run"):
        result = command(verb, "--", "sh", "-c", "echo started")
        assert (result.stdout, result.stderr) == ("", f"actswap: error: {line}\n")
        assert result.returncode == 125
    assert list(command.folder.iterdir()) == []


AGAIN = "install actswap again (scripts/setup)"


def test_the_parts_are_installed() -> None:
    assert {"libactswap.so", "simrt13.so", "simcu.so"} <= set(NAMES)
    assert any(name.startswith("standin/") for name in NAMES)
    assert any(name.startswith("python/") for name in NAMES)
    assert any(name.startswith("simtorch-") for name in NAMES)


def test_copy_with_every_file_starts(copied: tuple[Command, Path]) -> None:
    command, _ = copied

    result = command("run", "--", "sh", "-c", "echo started")

    assert (result.stdout, result.returncode) == ("started\n", 0)


@pytest.mark.parametrize("name", [*NAMES, "manifest"])
def test_missing_file_is_refused(copied: tuple[Command, Path], name: str) -> None:
    command, private = copied
    (private / name).unlink()

    assert_refused(command, f"{private / name}: No such file or directory; {AGAIN}")


@pytest.mark.parametrize("name", NAMES[:3])
def test_cut_off_file_is_refused(copied: tuple[Command, Path], name: str) -> None:
    command, private = copied
    replace(private / name, (private / name).read_bytes()[:-1])

    assert_refused(
        command, f"{private / name} is not the file that was installed; {AGAIN}"
    )


def test_cut_off_manifest_is_refused(copied: tuple[Command, Path]) -> None:
    command, private = copied
    replace(private / "manifest", MANIFEST.read_bytes().removesuffix(b"end\n"))

    assert_refused(command, f"{private / 'manifest'} is cut off; {AGAIN}")


def test_damaged_manifest_is_refused(copied: tuple[Command, Path]) -> None:
    command, private = copied
    replace(private / "manifest", b"many libactswap.so\nend\n")

    assert_refused(command, f"{private}/manifest is damaged; {AGAIN}")


def test_folder_that_ld_preload_cannot_name_is_refused(
    copied: tuple[Command, Path], tmp_path: Path
) -> None:
    command, private = copied
    (tmp_path / "prefix").rename(tmp_path / "pre fix")
    moved = Command(command.folder, tmp_path / "pre fix" / "bin" / "actswap")
    where = tmp_path / "pre fix" / private.relative_to(tmp_path / "prefix")

    assert_refused(
        moved,
        f"{where}: the loader takes no colon or space in LD_PRELOAD; "
        "install actswap in a folder without them",
    )
