"""Divided batches on logical CPU devices, and in Keras's fit."""

import pathlib
import subprocess
import sys

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).parents[2]
PROGRAM = ROOT / "tests" / "programs" / "divide_under_strategy.py"


@pytest.fixture(scope="module")
def divided(tmp_path_factory):
    """What the program wrote, by number of replicas; fits of one and two."""
    folder = tmp_path_factory.mktemp("divided")
    results = {}
    for replicas, what in ((1, ["fit"]), (2, ["fit"]), (4, [])):
        output = folder / f"{replicas}.npz"
        done = subprocess.run(
            [sys.executable, PROGRAM, str(replicas), str(output), *what],
            cwd=ROOT,
            env={"PYTHONPATH": str(ROOT), "PATH": "", "HOME": str(folder)},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        results[replicas] = dict(np.load(output, allow_pickle=False))
    return results


@pytest.mark.parametrize("replicas", [1, 2, 4])
def test_devices_get_consecutive_rows_in_their_order(divided, replicas):
    # The second batch of eight rows of three numbers.
    rows = np.arange(24, 48, dtype=np.float32) / 10.0

    np.testing.assert_array_equal(
        divided[replicas]["static"], rows.reshape(replicas, -1, 3)
    )


@pytest.mark.parametrize("replicas, filled", [(1, 5), (2, 6), (4, 8)])
def test_devices_share_a_short_batch(divided, replicas, filled):
    # Rows 8 to 12, and the last one again.
    rows = np.minimum(np.arange(8, 8 + filled), 12)
    first = (rows * 3).astype(np.float32) / 10.0

    np.testing.assert_array_equal(
        divided[replicas]["short"][:, :, 0], first.reshape(replicas, -1)
    )


@pytest.mark.parametrize("kind", ["full", "short", "endless"])
def test_fit_ends_with_the_weights_of_one_device(divided, kind):
    key = f"fit/{kind}/mean"

    np.testing.assert_allclose(divided[2][key], divided[1][key], rtol=1e-6)


def test_a_short_batch_counts_its_own_rows_only(divided):
    # SGD at 0.1 on the means of rows 0 to 7 and 8 to 12, twice.
    mean = 0.0
    for rows in [np.arange(8), np.arange(8, 13)] * 2:
        mean -= 0.1 * (mean - (rows * 0.3).mean())

    np.testing.assert_allclose(divided[2]["fit/short/mean"], mean, rtol=1e-6)


@pytest.mark.parametrize("replicas", [1, 2])
@pytest.mark.parametrize(
    "kind, steps", [("full", 2), ("short", 2), ("endless", 3)]
)
def test_keras_knows_the_number_of_steps(divided, replicas, kind, steps):
    figures = divided[replicas]

    assert figures[f"fit/{kind}/seen"].tolist() == [steps, steps]
    assert figures[f"fit/{kind}/expected"].tolist() == [steps, steps]


@pytest.mark.parametrize("kind", ["full", "short", "endless"])
def test_validation_counts_the_rows_of_all_replicas(divided, kind):
    # Rows 0 to 10, in batches of eight and three.
    np.testing.assert_allclose(
        divided[2][f"fit/{kind}/val_loss"], [1.5, 1.5], rtol=1e-6
    )
