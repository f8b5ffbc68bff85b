"""Runs that are killed, resumed, and compared with one that was not."""

import json
import os
import pathlib
import signal
import subprocess
import sys

import pytest
from safetensors.numpy import load_file

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "tests" / "programs" / "train_and_die.py"


def train(folder, output, *flags):
    """Return the exit code of a run in a process of its own."""
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, PROGRAM, folder, output, *flags],
        env={**os.environ, "PYTHONPATH": path},
        check=False,
        timeout=300,
    ).returncode


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Exit codes of a run that was stopped four times, and both folders."""
    folder = tmp_path_factory.mktemp("kills")
    expected, actual = folder / "expected", folder / "actual"
    assert train(folder, expected) == 0
    codes = [
        train(folder, actual, "--resume", f"--die={where}")
        # Steps 1 to 5, of which 3 are saved; 4 to 6, of which the last is
        # half saved; 4 to 7; 8 and 9; and the rest.
        for where in ("step:5", "write:1", "term:4", "rotate:1")
    ]
    codes.append(train(folder, actual, "--resume"))
    return codes, expected, actual


def newest_checkpoint(output):
    return max((output / "checkpoints" / "samtone").glob("step-*"))


def test_only_the_run_that_got_a_sigterm_could_say_so(runs):
    kill = -signal.SIGKILL
    assert runs[0] == [kill, kill, 75, kill, 0]


@pytest.mark.parametrize("group", ["model", "optimizer", "metrics"])
def test_killed_runs_end_with_the_same_bits(runs, group):
    expected, actual = (
        {
            name: (array.dtype, array.shape, array.tobytes())
            for name, array in load_file(
                newest_checkpoint(output) / f"{group}.safetensors"
            ).items()
        }
        for output in runs[1:]
    )
    assert actual == expected


def test_they_end_with_the_same_metric_history(runs):
    expected, actual = (
        json.loads((output / "results.json").read_text()) for output in runs[1:]
    )
    for results in (expected, actual):
        del results["seconds"]
        for stage in results["training"]["samtone"]:
            del stage["seconds"]
    assert actual == expected


def test_they_save_the_same_model(runs):
    expected, actual = (
        json.loads((output / "model" / "manifest.json").read_text())
        for output in runs[1:]
    )
    assert actual["fields"] == expected["fields"]


def test_they_leave_the_same_files(runs):
    expected, actual = (
        sorted(
            str(path.relative_to(output))
            for path in output.rglob("*")
            if path.is_file() and path.parent.parent.name != "checkpoints"
        )
        for output in runs[1:]
    )
    assert actual == expected
