# SPDX-License-Identifier: Apache-2.0
"""The life of a report: where it goes, what survives, what a wrong setting does."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from place import Place

SIM = {"ACTSWAP_SIM_GPU": "h100-80gb"}


def stderr_of(place: Place, mode: str, **more: str) -> str:
    result = place.run(
        place.program("snippet"), mode, preload=str(place.library), **(SIM | more)
    )
    assert result.returncode == 0, result.stderr
    return result.stderr


def test_a_run_leaves_one_report_and_a_summary(place: Place) -> None:
    err = stderr_of(place, "plain", ACTSWAP_RUN_ID="r1")
    assert [str(f.relative_to(place.work)) for f in place.report_files()] == [
        "actswap-r1/rank0.json"
    ]
    (report,) = place.reports()
    assert report["complete"] is True
    assert report["run"]["id"] == "r1"
    assert report["run"]["command"] == [place.program("snippet"), "plain"]
    assert report["device"]["name"] == "NVIDIA H100 80GB HBM3"
    assert report["device"]["measured"] is False
    assert report["peak"]["bytes"] == 7340032
    assert report["peak"]["source"] == "driver"
    assert "actswap: policy off, report actswap-r1/rank0.json\n" in err
    assert "(simulated, auto)" in err
    assert "peak on device   7.0 MiB of 79.2 GiB" in err


@pytest.mark.parametrize(
    ("arguments", "title"),
    [(["-u", "train.py", "--x"], "train.py"), (["-c", "CODE"], "python3")],
)
def test_the_summary_names_the_script(
    place: Place, arguments: list[str], title: str
) -> None:
    code = (
        f"import ctypes\n"
        f"ctypes.CDLL({str(place.programs / 'libhookcalls.so')!r}).hook_calls()\n"
    )
    (place.work / "train.py").write_text(code)
    command = [code if word == "CODE" else word for word in arguments]
    result = place.run("python3", *command, preload=str(place.library), **SIM)
    assert f"\nactswap  {title}  rank 0 of 1, 0 steps" in result.stderr


def test_out_of_memory_is_said_at_once_and_ends_the_report(place: Place) -> None:
    err = stderr_of(place, "_exit", ACTSWAP_RUN_ID="r1")
    assert (
        "actswap: error: out of memory: step 1, asked for 1048576.0 TiB, in use 7.0 MiB,"
        " reserved 7.0 MiB; held by unknown 7.0 MiB\n" in err
    )
    (report,) = place.reports()
    assert (report["ended"], report["complete"]) == ("oom", False)


def test_a_report_is_never_overwritten(place: Place) -> None:
    stderr_of(place, "plain", ACTSWAP_RUN_ID="r1")
    err = stderr_of(place, "plain", ACTSWAP_RUN_ID="r1")
    names = [file.name for file in place.report_files()]
    assert names == ["rank0.2.json", "rank0.json"]
    assert "report actswap-r1/rank0.2.json" in err
    first, second = place.reports()
    assert first["run"]["pid"] != second["run"]["pid"]


def test_a_child_of_a_user_of_cuda_writes_nothing(place: Place) -> None:
    err = stderr_of(place, "fork", ACTSWAP_RUN_ID="r1")
    (report,) = place.reports()
    assert report["peak"]["bytes"] == 7340032
    assert err.count("peak on device") == 1


def test_a_child_that_alone_uses_cuda_has_its_report(place: Place) -> None:
    stderr_of(place, "child", ACTSWAP_RUN_ID="r1")
    (report,) = place.reports()
    assert report["complete"] is True


def test_a_process_without_cuda_writes_nothing(place: Place) -> None:
    assert stderr_of(place, "none", ACTSWAP_POLICY="nonsense") == ""
    assert place.files() == []


def test_ranks_of_a_launch_share_a_folder(place: Place) -> None:
    for rank in ("0", "1"):
        err = stderr_of(place, "plain", RANK=rank, WORLD_SIZE="2")
        assert ("peak on device" in err) == (rank == "0")
    names = [str(file.relative_to(place.work)) for file in place.report_files()]
    assert [name.split("/")[1] for name in names] == ["rank0.json", "rank1.json"]
    assert len({name.split("/")[0] for name in names}) == 1


def test_only_the_ranks_asked_for_write(place: Place) -> None:
    for rank in ("0", "1", "11"):
        stderr_of(place, "plain", RANK=rank, ACTSWAP_RANKS="1,3", ACTSWAP_RUN_ID="r1")
    assert [file.name for file in place.report_files()] == ["rank1.json"]


def test_off_writes_no_file(place: Place) -> None:
    err = stderr_of(place, "plain", ACTSWAP_REPORT="off")
    assert place.files() == []
    assert "actswap: policy off, report off\n" in err


def test_quiet_says_nothing(place: Place) -> None:
    assert stderr_of(place, "plain", ACTSWAP_LOG="quiet") == ""
    assert len(place.reports()) == 1


def test_the_log_file_gets_every_line(place: Place) -> None:
    err = stderr_of(place, "plain", ACTSWAP_LOG_FILE="logs/%r.log", ACTSWAP_RUN_ID="r1")
    assert err == ""
    log = (place.work / "logs/0.log").read_text()
    assert log.startswith("actswap: policy off, report actswap-r1/rank0.json\n")
    assert "peak on device" in log


def test_a_folder_that_cannot_be_written_is_one_warning(place: Place) -> None:
    (place.work / "file").write_text("in the way")
    err = stderr_of(place, "plain", ACTSWAP_REPORT="file/rank%r.json")
    warnings = [line for line in err.splitlines() if "warning" in line]
    assert warnings == [
        "actswap: warning: report: cannot write file/rank0.json: Not a directory; the "
        "run goes on without. Set ACTSWAP_REPORT to a path that can be written, or to off"
    ]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_is_one_warning(place: Place) -> None:
    place.work.chmod(0o500)
    assert "Permission denied" in stderr_of(place, "plain")


def test_a_wrong_setting_ends_the_run_at_the_first_call(place: Place) -> None:
    result = place.run(
        place.program("snippet"),
        "plain",
        preload=str(place.library),
        ACTSWAP_POLICY="offlaod",
        **SIM,
    )
    assert result.returncode == 78
    assert result.stdout == ""
    assert result.stderr == (
        "actswap: error: ACTSWAP_POLICY=offlaod is not a policy. Did you mean offload? "
        "(off, offload, recompute)\n"
    )
    assert place.files() == []


def test_leniency_makes_it_a_warning(place: Place) -> None:
    err = stderr_of(place, "plain", ACTSWAP_POLICY="offlaod", ACTSWAP_STRICT="0")
    assert re.match(r"actswap: warning: ACTSWAP_POLICY=offlaod is not a policy\.", err)
    (report,) = place.reports()
    assert report["run"]["settings"]["policy"] == "off"


def test_simulation_settings_are_refused_on_a_real_device(place: Place) -> None:
    """The driver of these tests is no simulated runtime."""
    result = place.run(
        place.program("driver-calls"),
        preload=str(place.library),
        ACTSWAP_SIM_ORDER="late",
    )
    assert result.returncode == 78
    assert result.stderr == (
        "actswap: error: ACTSWAP_SIM_ settings are for a simulated GPU and this is none: "
        "unset them, or start with actswap rehearse\n"
    )


def test_the_report_stays_where_the_program_began(place: Place, tmp_path: Path) -> None:
    """Frameworks change their folder; a relative path means the one at the start."""
    script = (
        "import ctypes, os\n"
        f"lib = ctypes.CDLL({str(place.programs / 'libhookcalls.so')!r})\n"
        "lib.hook_calls()\n"
        f"os.chdir({str(tmp_path)!r})\n"
    )
    result = place.run(
        "python3", "-c", script, preload=str(place.library), ACTSWAP_RUN_ID="r1", **SIM
    )
    assert result.returncode == 0, result.stderr
    (report,) = place.reports()
    assert report["complete"] is True


def test_a_framework_whose_allocations_do_not_arrive(place: Place) -> None:
    """Source none, one warning, nothing taken; the run is as ever."""
    result = place.run(
        place.program("silent"),
        preload=f"{place.library} {place.runtime}",
        ACTSWAP_POLICY="offload",
        **SIM,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout == (
        "attach 0\nattach again -16\n"
        "all of it: older than this forward\na part: address not known\n"
    )
    sentence = (
        "memory: the framework's allocations do not arrive here, so peaks are not known "
        "and nothing is offloaded"
    )
    assert result.stderr.count(f"actswap: warning: {sentence}\n") == 1
    (report,) = place.reports()
    assert report["peak"]["source"] == "none"
    assert report["warnings"] == [sentence]
    assert report["run"]["framework"] == "silent 1"
    assert report["run"]["torch"] is None
    assert "peak on device   not known" in result.stderr


ENDINGS = {
    "return": ("", 0, "exit"),
    "sys.exit": ("sys.exit(5)", 5, "exit"),
    "exception": ("raise ValueError", 1, "exit"),
    "os._exit": ("os._exit(6)", 6, "running"),
    "SIGTERM": ("os.kill(os.getpid(), signal.SIGTERM)", -15, "running"),
    "SIGKILL": ("os.kill(os.getpid(), signal.SIGKILL)", -9, "running"),
    "abort": ("os.abort()", -6, "running"),
    "exec": ("os.execv('/bin/true', ['true'])", 0, "running"),
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_report_survives_every_ending(place: Place, ending: str) -> None:
    """The status is the program's own, and memory's peak is in the file."""
    last, status, ended = ENDINGS[ending]
    start = (
        "import ctypes, os, resource, signal, sys\n"
        "resource.setrlimit(resource.RLIMIT_CORE, (0, 0))\n"
    )
    script = (
        f"ctypes.CDLL({str(place.programs / 'libhookcalls.so')!r})\n"
        "ours = ctypes.CDLL(None)\n"
        "p = ctypes.c_void_p()\n"
        "assert ours.cudaMalloc(ctypes.byref(p), 4096) == 0\n"
        "ours.actswap_mark(4)\n"
    )
    preload = f"{place.library} {place.runtime}"
    result = place.run("python3", "-c", start + script + last, preload=preload, **SIM)
    bare = place.run("python3", "-c", start + last)
    assert result.returncode == bare.returncode == status
    (report,) = place.reports()
    assert report["ended"] == ended
    assert report["complete"] == (ended == "exit")
    assert report["steps"]["peak_bytes"] == [4096]
