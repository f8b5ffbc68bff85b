"""A run of two replicas that goes on with one."""

import os
import pathlib
import signal
import subprocess
import sys

import numpy as np
import pytest
from safetensors.numpy import load_file

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "tests" / "programs" / "train_and_die.py"
TWO_REPLICAS = '[training]\nstrategy = "mirrored"\ndevices = 2\n'


def train(folder, output, *flags):
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, PROGRAM, folder, output, "--kind=plain", *flags],
        env={**os.environ, "PYTHONPATH": path},
        check=False,
        timeout=300,
    ).returncode


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    """Folders of a run on one device, and of one that lost a device."""
    folder = tmp_path_factory.mktemp("replicas")
    one, two = folder / "one", folder / "two"
    assert train(folder, one) == 0
    path = folder / "recipe.toml"
    recipe = path.read_text()
    path.write_text(recipe.replace("[training]\n", TWO_REPLICAS))
    assert train(folder, two, "--die=step:8") == -signal.SIGKILL
    path.write_text(recipe)
    assert train(folder, two, "--resume") == 0
    return one, two


def tensors(output, group):
    newest = max((output / "checkpoints" / "samtone").glob("step-*"))
    return load_file(newest / f"{group}.safetensors")


@pytest.mark.large
@pytest.mark.parametrize("group", ["model", "optimizer", "training_state"])
def test_it_ends_like_a_run_on_one_device(outputs, group):
    expected, actual = (tensors(output, group) for output in outputs)

    assert list(actual) == list(expected)
    for name, array in expected.items():
        np.testing.assert_allclose(
            actual[name], array, rtol=1e-4, atol=1e-6, err_msg=name
        )


@pytest.mark.large
def test_the_mean_loss_counts_each_step_once(outputs):
    expected, actual = (tensors(output, "metrics") for output in outputs)

    assert actual["loss/count"] == expected["loss/count"]
    np.testing.assert_allclose(
        actual["loss/total"], expected["loss/total"], rtol=1e-5
    )
