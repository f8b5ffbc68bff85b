"""The same global batch on one, two and four replicas."""

import pathlib
import subprocess
import sys

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).parents[2]
PROGRAM = ROOT / "tests" / "programs" / "fit_on_replicas.py"


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """What the program wrote, by number of replicas."""
    folder = tmp_path_factory.mktemp("replicas")
    results = {}
    for replicas in (1, 2, 4):
        output = folder / f"{replicas}.npz"
        done = subprocess.run(
            [sys.executable, PROGRAM, str(replicas), str(output)],
            cwd=ROOT,
            env={"PYTHONPATH": str(ROOT), "PATH": "", "HOME": str(folder)},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        results[replicas] = dict(np.load(output, allow_pickle=False))
    return results


@pytest.mark.parametrize("replicas", [2, 4])
def test_weights_do_not_depend_on_the_number_of_replicas(fitted, replicas):
    np.testing.assert_allclose(
        fitted[replicas]["weights"], fitted[1]["weights"], atol=1e-6
    )


@pytest.mark.parametrize("replicas", [2, 4])
def test_the_reported_loss_is_that_of_one_device(fitted, replicas):
    np.testing.assert_allclose(
        fitted[replicas]["history/loss"], fitted[1]["history/loss"], rtol=1e-6
    )


@pytest.mark.parametrize("replicas", [2, 4])
@pytest.mark.parametrize(
    "name",
    [
        "alignment",
        "uniformity",
        "cross_similarity",
        "same_tower_similarity",
        "same_tower_share",
        "masked_pairs",
        "p@1",
        "mrr",
    ],
)
def test_every_metric_is_that_of_one_device(fitted, replicas, name):
    np.testing.assert_allclose(
        fitted[replicas][f"history/{name}"],
        fitted[1][f"history/{name}"],
        rtol=1e-5,
        atol=1e-6,
    )


def test_training_changed_the_loss(fitted):
    first, last = fitted[1]["history/loss"]
    assert last < first
