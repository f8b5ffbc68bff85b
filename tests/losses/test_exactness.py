"""Values and gradients of every loss against the formulas in float64."""

import numpy as np
import pytest
import tensorflow as tf
import testing

ARRAYS = ["queries", "documents", "hard_negatives"]


def rows_and_gradients(loss, batch, dtype="float64"):
    """Return the rows, and the gradients of their sum weighted by i + 1."""
    arrays = {name: tf.constant(batch[name], dtype) for name in ARRAYS}
    with tf.GradientTape() as tape:
        tape.watch(arrays)
        rows = loss.per_example(**{**batch, **arrays})
        weights = tf.range(1, rows.shape[0] + 1)
        total = tf.reduce_sum(rows * tf.cast(weights, rows.dtype))
    gradients = tape.gradient(total, arrays)
    assert rows.dtype == dtype
    return rows.numpy(), [gradients[name].numpy() for name in ARRAYS]


def check(actual, expected, tolerance):
    (rows, gradients), (expected_rows, expected_gradients) = actual, expected
    assert testing.relative_error(rows, expected_rows) <= tolerance
    for gradient, other in zip(gradients, expected_gradients, strict=True):
        assert testing.relative_error(gradient, other) <= tolerance


def test_float64_is_exact_with_tiles_of_any_size(
    softmax_case, tile_size, full_batch, expected
):
    actual = rows_and_gradients(
        softmax_case.loss(tile_size=tile_size), full_batch
    )
    check(actual, expected(softmax_case), 1e-12)


def test_float32_is_exact_to_rounding_with_tiles_of_any_size(
    softmax_case, tile_size, full_batch, expected
):
    actual = rows_and_gradients(
        softmax_case.loss(tile_size=tile_size), full_batch, "float32"
    )
    check(actual, expected(softmax_case), 2e-6)


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [("float64", 1e-12), ("float32", 2e-6)]
)
def test_losses_without_tiles_are_exact(
    case, dtype, tolerance, full_batch, expected
):
    actual = rows_and_gradients(case.loss(), full_batch, dtype)
    check(actual, expected(case), tolerance)


@pytest.mark.parametrize("name", ARRAYS)
def test_gradients_agree_with_central_differences(name, case, full_batch):
    # Without tiles; the test above holds tiles to the same figures.
    def total(values):
        batch = testing.ReferenceBatch(**{**full_batch, name: values})
        rows = case.formula(batch)
        return rows @ np.arange(1, len(rows) + 1)

    expected = testing.central_differences(total, full_batch[name])
    _, gradients = rows_and_gradients(case.loss(), full_batch)
    actual = gradients[ARRAYS.index(name)]
    assert testing.relative_error(actual, expected) <= 1e-9
