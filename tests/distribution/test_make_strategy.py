"""Strategies by name, and what is said when there are no such devices."""

import json
import pathlib
import subprocess
import sys

import pytest
import tensorflow as tf

from tf_samtone.distribution import STRATEGY_NAMES, make_strategy
from tf_samtone.errors import InvalidInputError

ROOT = pathlib.Path(__file__).parents[2]
PROGRAM = ROOT / "tests" / "programs" / "make_each_strategy.py"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """What the program wrote, in a process that may divide its CPU."""
    folder = tmp_path_factory.mktemp("made")
    done = subprocess.run(
        [sys.executable, PROGRAM, str(folder / "made.json")],
        cwd=ROOT,
        env={
            "PYTHONPATH": str(ROOT),
            "PATH": "",
            "HOME": str(folder),
            "CUDA_VISIBLE_DEVICES": "",
        },
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "made.json").read_text())


def test_none_is_the_strategy_of_tensorflow():
    assert make_strategy() is tf.distribute.get_strategy()


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(InvalidInputError, match=", ".join(STRATEGY_NAMES)):
        make_strategy("horovod")


@pytest.mark.parametrize(
    "name, devices",
    [("none", 2), ("tpu", 8), ("mirrored", -1)],
    ids=["none", "tpu", "negative"],
)
def test_a_number_of_devices_belongs_to_mirrored(name, devices):
    with pytest.raises(InvalidInputError, match=f"devices={devices}"):
        make_strategy(name, devices=devices)


def test_logical_cpus_run_together(made):
    assert made["sum"] == 1 + 2


def test_logical_cpus_are_used_again(made):
    assert made["again"] == 2


def test_a_running_tensorflow_cannot_be_divided_further(made):
    assert "into 4 logical devices" in made["too many"]
    assert "runs already, with 2" in made["too many"]


def test_mirrored_without_gpus_says_what_there_is(made):
    assert "at least one GPU" in made["no GPU"]
    assert "a machine with 1 CPU" in made["no GPU"]


def test_tpu_without_one_says_what_was_tried(made):
    assert "Expected a TPU named 'local'" in made["no TPU"]
    assert "this machine has 1 CPU" in made["no TPU"]


@pytest.mark.parametrize(
    "config",
    [
        "",
        "{",
        '{"cluster": {"worker": ["127.0.0.1:1"]}}',
        '{"cluster": {"worker": ["127.0.0.1:1"]}, '
        '"task": {"type": "worker", "index": 1}}',
        '{"cluster": {"worker": ["127.0.0.1:1"]}, '
        '"task": {"type": "evaluator", "index": 0}}',
    ],
    ids=["empty", "broken", "no task", "no such worker", "other type"],
)
def test_several_workers_need_a_cluster(monkeypatch, config):
    monkeypatch.setenv("TF_CONFIG", config)

    with pytest.raises(InvalidInputError, match="TF_CONFIG"):
        make_strategy("multi_worker")
