"""What must not change a loss: order, replicas, padding, masked values."""

import numpy as np
import pytest
import tensorflow as tf
import testing

ROWS, K, DIM = 8, 2, 5
ARRAYS = ["queries", "documents", "hard_negatives"]
OF_ROWS = ["query_ids", "document_ids", "is_valid"]


def full_batch():
    """Return float32 arguments with all that `per_example` knows."""
    generator = np.random.default_rng(0)
    return {
        "queries": testing.random_unit_vectors(0, ROWS, DIM),
        "documents": testing.random_unit_vectors(1, ROWS, DIM),
        "hard_negatives": testing.random_unit_vectors(2, ROWS, K, DIM),
        "hard_negative_mask": generator.random([ROWS, K]) < 0.7,
        "query_ids": np.array([1, 2, 3, 3, 4, 5, 6, 7]),
        "document_ids": np.array([1, 2, 3, 4, 5, 6, 2, 8]),
        "hard_negative_ids": generator.integers(1, 9, [ROWS, K]),
        "positives": generator.random([ROWS, ROWS]) < 0.1,
        "is_valid": np.arange(ROWS) != 6,
    }


def rows_and_gradients(loss, batch):
    """Return the rows, and the gradients of their sum weighted by i + 1."""
    arrays = {k: tf.constant(batch[k]) for k in ARRAYS if k in batch}
    with tf.GradientTape() as tape:
        tape.watch(arrays)
        rows = loss.per_example(**{**batch, **arrays})
        total = tf.reduce_sum(rows * np.arange(1.0, len(rows) + 1.0))
    gradients = tape.gradient(total, arrays, unconnected_gradients="zero")
    return rows.numpy(), {k: g.numpy() for k, g in gradients.items()}


def check(actual, expected, tolerance=2e-6):
    assert testing.relative_error(actual[0], expected[0]) <= tolerance
    for name, gradient in expected[1].items():
        assert testing.relative_error(actual[1][name], gradient) <= tolerance


@pytest.mark.parametrize("num_replicas", [2, 4])
def test_replicas_with_a_part_of_the_rows_make_up_the_whole(loss, num_replicas):
    # Each sees all columns but owns a few rows; gradients add up.
    batch = full_batch()
    expected = rows_and_gradients(loss, batch)
    size = ROWS // num_replicas
    arrays = {name: tf.constant(batch[name]) for name in ARRAYS}
    with tf.GradientTape() as tape:
        tape.watch(arrays)
        parts = []
        for start in range(0, ROWS, size):
            rows = slice(start, start + size)
            local = {name: batch[name][rows] for name in OF_ROWS}
            gathered = {f"all_{name}": batch[name] for name in OF_ROWS}
            part = loss.per_example(
                arrays["queries"][rows],
                arrays["documents"][rows],
                arrays["hard_negatives"],
                batch["hard_negative_mask"],
                all_queries=arrays["queries"],
                all_documents=arrays["documents"],
                hard_negative_ids=batch["hard_negative_ids"],
                positives=batch["positives"][rows],
                row_offset=start,
                **local,
                **gathered,
            )
            parts.append(part)
        values = tf.concat(parts, axis=0)
        total = tf.reduce_sum(values * np.arange(1.0, ROWS + 1.0))
    gradients = tape.gradient(total, arrays)
    check((values.numpy(), gradients), expected)


def test_permuting_the_batch_permutes_rows_and_gradients(loss):
    batch = full_batch()
    order = np.random.default_rng(2).permutation(ROWS)
    shuffled = {name: value[order] for name, value in batch.items()}
    shuffled["positives"] = batch["positives"][order][:, order]
    rows, _ = rows_and_gradients(loss, batch)
    # The weights of the gradient's rows move along.
    arrays = {name: tf.constant(shuffled[name]) for name in ARRAYS}
    with tf.GradientTape() as tape:
        tape.watch(arrays)
        values = loss.per_example(**{**shuffled, **arrays})
        total = tf.reduce_sum(values * (order + 1.0))
    gradients = tape.gradient(total, arrays)
    _, expected = rows_and_gradients(loss, batch)
    check(
        (values.numpy(), gradients),
        (rows[order], {name: g[order] for name, g in expected.items()}),
    )


def padded(batch, fill):
    """Return the batch without row 6, and with rubbish in its place."""
    keep = np.flatnonzero(batch["is_valid"])
    without = {name: value[keep] for name, value in batch.items()}
    without["positives"] = batch["positives"][keep][:, keep]
    with_rubbish = {name: value.copy() for name, value in batch.items()}
    for name in ARRAYS:
        with_rubbish[name][6] = fill
    return without, with_rubbish, keep


@pytest.mark.parametrize("fill", [0.0, 3.0, np.nan, np.inf])
def test_padding_equals_the_batch_without_it(case, fill):
    loss = case.loss()
    without, with_rubbish, keep = padded(full_batch(), fill)
    values, gradients = rows_and_gradients(loss, with_rubbish)
    assert values[6] == 0
    assert not any(gradient[6].any() for gradient in gradients.values())
    arrays = {name: tf.constant(without[name]) for name in ARRAYS}
    with tf.GradientTape() as tape:
        tape.watch(arrays)
        rows = loss.per_example(**{**without, **arrays})
        total = tf.reduce_sum(rows * (keep + 1.0))
    check(
        (values[keep], {name: g[keep] for name, g in gradients.items()}),
        (rows.numpy(), tape.gradient(total, arrays)),
    )


def test_nan_under_the_hard_negative_mask_reaches_nothing(case):
    batch = full_batch()
    mask = batch["hard_negative_mask"][..., None]
    poisoned = np.where(mask, batch["hard_negatives"], np.float32(np.nan))
    actual = rows_and_gradients(
        case.loss(), {**batch, "hard_negatives": poisoned}
    )
    expected = rows_and_gradients(case.loss(), batch)
    np.testing.assert_array_equal(actual[0], expected[0])
    for name, gradient in expected[1].items():
        np.testing.assert_array_equal(actual[1][name], gradient)


@pytest.mark.parametrize("count", [0, 2], ids=["k = 0", "all masked"])
def test_no_hard_negatives_change_nothing(case, count):
    batch = full_batch()
    del batch["hard_negative_ids"]
    batch["hard_negatives"] = batch["hard_negatives"][:, :count]
    batch["hard_negative_mask"] = np.zeros([ROWS, count], bool)
    actual, _ = rows_and_gradients(case.loss(), batch)
    del batch["hard_negatives"], batch["hard_negative_mask"]
    expected, _ = rows_and_gradients(case.loss(), batch)
    assert testing.relative_error(actual, expected) <= 1e-6


def test_a_matrix_of_positives_masks_like_ids(loss):
    batch = {name: full_batch()[name] for name in ("queries", "documents")}
    ids = np.array([1, 1, 1, 2, 2, 2, 3, 4])
    positives = ids[:, None] == ids
    actual = rows_and_gradients(loss, {**batch, "positives": positives})
    expected = rows_and_gradients(loss, {**batch, "query_ids": ids})
    np.testing.assert_array_equal(actual[0], expected[0])
    assert not np.array_equal(actual[0], rows_and_gradients(loss, batch)[0])


def test_an_integer_mask_is_read_as_booleans(loss):
    batch = full_batch()
    mask = batch["hard_negative_mask"].astype(np.int32)
    actual, _ = rows_and_gradients(loss, {**batch, "hard_negative_mask": mask})
    np.testing.assert_array_equal(actual, rows_and_gradients(loss, batch)[0])
