"""The same global batch on one, two and four replicas."""

import pathlib
import subprocess
import sys

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).parents[2]
PROGRAM = ROOT / "tests" / "programs" / "fit_on_replicas.py"


# Tracing takes long with four replicas.
ALL = ["sgd", "adafactor", "cached", "packed and cached"]
VARIANTS = {1: [*ALL, "packed"], 2: ALL, 4: ["cached"]}


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """What the program wrote, by number of replicas."""
    folder = tmp_path_factory.mktemp("replicas")
    outputs = {count: folder / f"{count}.npz" for count in VARIANTS}
    processes = [
        subprocess.Popen(
            [sys.executable, PROGRAM, str(replicas), output]
            + VARIANTS[replicas],
            cwd=ROOT,
            env={"PYTHONPATH": str(ROOT), "PATH": "", "HOME": str(folder)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for replicas, output in outputs.items()
    ]
    try:
        for process in processes:
            _, errors = process.communicate(timeout=600)
            assert process.returncode == 0, errors
    finally:
        for process in processes:
            process.kill()
    return {
        count: dict(np.load(output, allow_pickle=False))
        for count, output in outputs.items()
    }


@pytest.mark.parametrize(
    ("variant", "replicas", "tolerance"),
    [("sgd", 2, 1e-6), ("cached", 4, 1e-6), ("adafactor", 2, 1e-5)],
)
def test_weights_do_not_depend_on_the_number_of_replicas(
    fitted, variant, replicas, tolerance
):
    np.testing.assert_allclose(
        fitted[replicas][f"{variant}/weights"],
        fitted[1][f"{variant}/weights"],
        rtol=0,
        atol=tolerance,
    )


@pytest.mark.parametrize("replicas", [1, 2, 4])
def test_a_gradient_cache_gives_the_same_weights(fitted, replicas):
    np.testing.assert_allclose(
        fitted[replicas]["cached/weights"],
        fitted[1]["sgd/weights"],
        rtol=0,
        atol=1e-6,
    )


@pytest.mark.parametrize("replicas", [1, 2])
def test_packed_rows_in_groups_give_the_same_weights(fitted, replicas):
    np.testing.assert_allclose(
        fitted[replicas]["packed and cached/weights"],
        fitted[1]["packed/weights"],
        rtol=0,
        atol=1e-6,
    )


@pytest.mark.parametrize(
    ("variant", "replicas"), [("sgd", 2), ("cached", 2), ("cached", 4)]
)
def test_the_reported_loss_is_that_of_one_device(fitted, replicas, variant):
    np.testing.assert_allclose(
        fitted[replicas][f"{variant}/loss"],
        fitted[1][f"{variant}/loss"],
        rtol=1e-5,
    )


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
def test_every_metric_is_that_of_one_device(fitted, name):
    np.testing.assert_allclose(
        fitted[2][f"sgd/{name}"],
        fitted[1][f"sgd/{name}"],
        rtol=1e-5,
        atol=1e-6,
    )


@pytest.mark.parametrize("variant", ["sgd", "adafactor", "cached"])
def test_training_changed_the_loss(fitted, variant):
    first, last = fitted[1][f"{variant}/loss"]
    assert last < first
