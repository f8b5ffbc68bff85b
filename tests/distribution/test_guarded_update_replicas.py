"""The same updates on one, two and four replicas."""

import importlib.util
import pathlib
import subprocess
import sys

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).parents[2]
PROGRAM = ROOT / "tests" / "programs" / "update_under_strategy.py"
REPLICAS = (1, 2, 4)
SPOILED = (
    "sgd+inf",
    "adafactor+inf",
    "adamw+inf",
    "adamw+nan",
    "adamw+overflow",
    "adamw+loss",
    "nadam+inf",
    "average_overwrites+inf",
)


@pytest.fixture(scope="module")
def updated(tmp_path_factory):
    """What the program wrote, by number of replicas."""
    folder = tmp_path_factory.mktemp("updates")
    results = {}
    for replicas in REPLICAS:
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


@pytest.fixture(scope="module")
def program():
    """The program as a module, for its data."""
    spec = importlib.util.spec_from_file_location("program", PROGRAM)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("replicas", [2, 4])
@pytest.mark.parametrize(
    "case, tolerance",
    [
        ("sgd", 1e-6),
        ("sgd_clipnorm", 1e-6),
        ("sgd_clipvalue", 1e-6),
        ("adafactor", 1e-5),
        ("adamw", 1e-5),
        ("nadam", 1e-5),
        ("average_overwrites", 1e-5),
    ],
)
def test_weights_and_slots_do_not_depend_on_the_number_of_replicas(
    updated, replicas, case, tolerance
):
    np.testing.assert_allclose(
        updated[replicas][f"{case}/state"][0],
        updated[1][f"{case}/state"][0],
        rtol=0,
        atol=tolerance,
    )


@pytest.mark.parametrize("replicas", [2, 4])
@pytest.mark.parametrize("case", ["sgd", "adafactor", "adamw", "nadam"])
def test_all_replicas_hold_the_same(updated, replicas, case):
    state = updated[replicas][f"{case}/state"]

    np.testing.assert_array_equal(state, np.broadcast_to(state[0], state.shape))
    assert len(state) == replicas


@pytest.mark.parametrize("replicas", REPLICAS)
@pytest.mark.parametrize("case", SPOILED)
def test_a_bad_step_of_one_replica_leaves_all_as_they_were(
    updated, replicas, case
):
    figures = updated[replicas]

    assert figures[f"{case}/bad_flag"].tolist() == [False] * replicas
    np.testing.assert_array_equal(
        figures[f"{case}/after"], figures[f"{case}/before"]
    )


@pytest.mark.parametrize("replicas", REPLICAS)
@pytest.mark.parametrize("case", SPOILED)
def test_training_goes_on_as_if_the_bad_step_had_not_been(
    updated, replicas, case
):
    figures = updated[replicas]

    np.testing.assert_array_equal(
        figures[f"{case}/state"], figures[f"{case.split('+')[0]}/state"]
    )
    assert figures[f"{case}/iterations"] == 10


@pytest.mark.parametrize("replicas", REPLICAS)
@pytest.mark.parametrize(
    "case, clip",
    [
        ("sgd", lambda gradients: clip_together(gradients, 0.5)),
        ("sgd_clipnorm", lambda gradients: clip_each(gradients, 0.3)),
        ("sgd_clipvalue", lambda gradients: clip_values(gradients, 0.02)),
    ],
    ids=["global_clipnorm", "clipnorm", "clipvalue"],
)
def test_clipped_steps_on_a_schedule_are_those_of_numpy(
    updated, program, replicas, case, clip
):
    weights, norms = gradient_descent(program, clip)

    np.testing.assert_allclose(
        updated[replicas][f"{case}/weights"], weights, atol=2e-6
    )
    np.testing.assert_allclose(
        updated[replicas][f"{case}/norms"],
        np.broadcast_to(np.array(norms)[:, None], (10, replicas)),
        rtol=1e-5,
    )


def test_clipping_was_at_work(program):
    _, norms = gradient_descent(program, lambda gradients: gradients)

    assert max(norms) > 0.5


def gradient_descent(program, clip):
    """Return float64 weights after ten steps, and the norms of all steps."""
    table, matrix, bias = (
        x.astype(np.float64) for x in program.initial_weights()
    )
    norms = []
    for step, (ids, targets) in enumerate(zip(*program.batches(), strict=True)):
        error = (table[ids] @ matrix + bias - targets) / len(ids)
        table_gradient = np.zeros_like(table)
        np.add.at(table_gradient, ids, error @ matrix.T)
        gradients = [table_gradient, table[ids].T @ error, error.sum(0)]
        norms.append(np.sqrt(sum((x**2).sum() for x in gradients)))
        end = 1e-4
        rate = (0.1 - end) * (1.0 - step / 16) + end
        table, matrix, bias = (
            value - rate * gradient
            for value, gradient in zip(
                (table, matrix, bias), clip(gradients), strict=True
            )
        )
    return np.concatenate([x.ravel() for x in (table, matrix, bias)]), norms


def clip_together(gradients, limit):
    norm = np.sqrt(sum((x**2).sum() for x in gradients))
    return [x * min(1.0, limit / norm) for x in gradients]


def clip_each(gradients, limit):
    return [x * min(1.0, limit / np.sqrt((x**2).sum())) for x in gradients]


def clip_values(gradients, limit):
    return [np.clip(x, -limit, limit) for x in gradients]
