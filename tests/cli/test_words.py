# SPDX-License-Identifier: Apache-2.0
"""A wrong word is one line that names it and the nearest right one, before any start."""

import pytest
from command import Command, errors

WRONG = {
    "topic": (
        ["help", "gpu"],
        "there is no help on gpu. Did you mean gpus? (env, policies, gpus, or a verb)",
    ),
    "verb": (
        ["rehears", "true"],
        "rehears is not a verb of actswap. Did you mean rehearse? "
        "(rehearse, run, compare, report, help)",
    ),
    "option": (
        ["rehearse", "--gpo", "h100-80gb", "true"],
        "--gpo is not an option of actswap rehearse. Did you mean --gpu? "
        "(all: actswap rehearse --help)",
    ),
    "option_of_another_verb": (
        ["run", "--gpu=h100-80gb", "true"],
        "--gpu is not an option of actswap run. (all: actswap run --help)",
    ),
    "missing_value": (["rehearse", "--gpu"], "--gpu needs a value: --gpu NAME"),
    "value_too_many": (
        ["compare", "--ascii=yes", "true"],
        "--ascii takes no value: --ascii=yes",
    ),
    "policy": (
        ["rehearse", "-p", "offlaod", "true"],
        "-p offlaod is not a policy. Did you mean offload? (off, offload, recompute)",
    ),
    "budget": (
        ["rehearse", "-b", "44 GiB", "true"],
        "-b 44 GiB is not a size (64GiB, 48GB, bytes, 50%)",
    ),
    "budget_of_a_comparison": (
        ["compare", "--gpu", "h100-80gb", "-b", "0%", "true"],
        "-b 0% is not a size (64GiB, 48GB, bytes, 50%)",
    ),
    "disk": (
        ["rehearse", "-d", "/scratch", "true"],
        "-d /scratch lacks a size: /scratch:64GiB",
    ),
    "steps": (
        ["run", "--steps", "0", "true"],
        "--steps 0 is not a number of steps (1, 2, ...)",
    ),
    "policy_in_a_list": (
        ["compare", "--gpu", "h100-80gb", "-p", "off,recmpute", "true"],
        "-p recmpute is not a policy. Did you mean recompute? (off, offload, recompute)",
    ),
    "empty_policy_in_a_list": (
        ["compare", "--gpu", "h100-80gb", "-p", "off,,offload", "true"],
        "-p off,,offload: a policy's name is missing",
    ),
    "compute": (
        ["rehearse", "--compute", "value", "true"],
        "--compute value is not known. Did you mean values? (auto, values, shapes)",
    ),
    "order": (
        ["rehearse", "--order", "lat", "true"],
        "--order lat is not known. Did you mean late? (early, late, seed:1)",
    ),
    "check": (
        ["rehearse", "--check", "race", "true"],
        "--check race is not known. Did you mean races? (off, races, first-race)",
    ),
    "two_gpus": (
        ["rehearse", "--gpu", "l40s,h100-80gb", "true"],
        "--gpu l40s,h100-80gb: one GPU at a time; run once for each",
    ),
    "no_program": (
        ["rehearse", "-p", "off"],
        "no program given: actswap rehearse -- python train.py",
    ),
}


@pytest.mark.parametrize("arguments, message", WRONG.values(), ids=WRONG.keys())
def test_wrong_word_is_one_line(
    actswap: Command, arguments: list[str], message: str
) -> None:
    result = actswap(*arguments)

    assert result.stderr == f"actswap: error: {message}\n"
    assert (result.returncode, result.stdout) == (2, "")
    assert list(actswap.folder.iterdir()) == []


def test_unknown_gpu_names_the_nearest_and_lists_all(actswap: Command) -> None:
    result = actswap("rehearse", "--gpu", "h100-80bg", "true")

    (line,) = errors(result)
    start = "actswap: error: --gpu h100-80bg is not a GPU known here. "
    assert line.startswith(start + "Did you mean h100-80gb? (")
    assert "l40s" in line and "b200" in line
    assert result.returncode == 2


@pytest.mark.parametrize("verb", ["rehearse", "run"])
def test_policy_typo_in_the_environment_names_the_variable(
    actswap: Command, verb: str
) -> None:
    result = actswap(verb, "true", ACTSWAP_POLICY="offlaod")

    assert result.stderr == (
        "actswap: error: ACTSWAP_POLICY=offlaod is not a policy. "
        "Did you mean offload? (off, offload, recompute)\n"
    )
    assert result.returncode == 2


def test_typo_in_a_settings_name_names_the_nearest(actswap: Command) -> None:
    result = actswap("run", "true", ACTSWAP_POLCY="offload")

    (line,) = errors(result)
    assert "ACTSWAP_POLCY" in line and "ACTSWAP_POLICY" in line
    assert result.returncode == 2


def test_run_refuses_what_only_rehearse_sets(actswap: Command) -> None:
    result = actswap("run", "true", ACTSWAP_SIM_ORDER="late")

    assert result.stderr == (
        "actswap: error: ACTSWAP_SIM_ORDER is set by `actswap rehearse` only: "
        "unset it, or rehearse\n"
    )
    assert result.returncode == 2


@pytest.mark.parametrize("verb", ["rehearse", "run", "compare"])
def test_help_of_a_verb_goes_to_stdout(actswap: Command, verb: str) -> None:
    result = actswap(verb, "--help")

    assert result.stdout.startswith(f"Usage: actswap {verb} [OPTION...]")
    assert (result.returncode, result.stderr) == (0, "")
    assert actswap("help", verb).stdout == result.stdout


def test_help_env_lists_every_setting_that_run_accepts(actswap: Command) -> None:
    result = actswap("help", "env")

    assert result.returncode == 0
    for name in ("POLICY", "REPORT", "HOST_MEMORY", "STRICT", "LOG"):
        assert f"ACTSWAP_{name}=" in result.stdout


def test_version_is_one_line(actswap: Command) -> None:
    result = actswap("--version")

    assert result.stdout == "actswap 0.1.0\n"
    assert result.returncode == 0
