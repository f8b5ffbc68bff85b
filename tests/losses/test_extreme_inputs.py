"""Values at the edges: finite, or plainly not."""

import numpy as np
import pytest
import tensorflow as tf
import testing

from tf_samtone.losses import GTELoss, SamToNeLoss, TripletLoss

ROWS, DIM = 6, 4
QUERIES = testing.random_unit_vectors(0, ROWS, DIM)
DOCUMENTS = testing.random_unit_vectors(1, ROWS, DIM)
SAME = np.tile(np.float32([[0.6, 0.8, 0.0, 0.0]]), [ROWS, 1])


def rows_and_gradients(loss, queries, documents, **batch):
    queries, documents = tf.constant(queries), tf.constant(documents)
    with tf.GradientTape() as tape:
        tape.watch([queries, documents])
        rows = loss.per_example(queries, documents, **batch)
        total = tf.reduce_sum(rows)
    return rows.numpy(), tape.gradient(total, [queries, documents])


def has_only_finite(arrays):
    return all(np.isfinite(array).all() for array in arrays)


def test_a_batch_of_one_has_no_loss_and_no_gradient(loss):
    rows, gradients = rows_and_gradients(loss, QUERIES[:1], DOCUMENTS[:1])
    assert rows.tolist() == [0.0]
    np.testing.assert_array_equal(gradients, np.zeros([2, 1, DIM]))


def test_rows_with_all_others_masked_have_no_loss_and_no_gradient(loss):
    rows, gradients = rows_and_gradients(
        loss, QUERIES, DOCUMENTS, query_ids=[3] * ROWS
    )
    np.testing.assert_array_equal(rows, np.zeros(ROWS))
    np.testing.assert_array_equal(gradients, np.zeros([2, ROWS, DIM]))


def test_a_batch_of_padding_alone_has_no_loss_and_no_gradient(case):
    rows, gradients = rows_and_gradients(
        case.loss(), QUERIES, DOCUMENTS, is_valid=[False] * ROWS
    )
    np.testing.assert_array_equal(rows, np.zeros(ROWS))
    np.testing.assert_array_equal(gradients, np.zeros([2, ROWS, DIM]))


def test_an_empty_batch_has_no_rows(case):
    rows = case.loss().per_example(QUERIES[:0], DOCUMENTS[:0])
    assert rows.shape == [0]


@pytest.mark.parametrize("temperature", [0.01, 0.001])
@pytest.mark.parametrize("tile_size", [None, 4])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_identical_rows_stay_finite_at_low_temperature(
    softmax_case, temperature, tile_size, dtype
):
    loss = softmax_case.loss(temperature=temperature, tile_size=tile_size)
    same = tf.cast(SAME, dtype)
    rows, gradients = rows_and_gradients(loss, same, same)
    assert has_only_finite([rows, *[tf.cast(g, "float32") for g in gradients]])


@pytest.mark.parametrize("tile_size", [None, 4])
def test_the_lowest_temperature_is_exact(tile_size):
    # Row i against its nearest wrong column, at 1 / t = 1000.
    loss = SamToNeLoss(0.001, "both", tile_size=tile_size)
    rows, gradients = rows_and_gradients(
        loss, QUERIES.astype("float64"), DOCUMENTS.astype("float64")
    )
    batch = testing.ReferenceBatch(QUERIES, DOCUMENTS)
    expected = batch.softmax("QP", "QQ", temperature=0.001)
    expected += batch.softmax("PQ", "PP", temperature=0.001)
    np.testing.assert_allclose(rows, expected, rtol=1e-12, atol=1e-12)
    assert has_only_finite(gradients)


@pytest.mark.parametrize(
    ("left", "right"),
    [(1e-40, 1.0), (1e-40, 1e-40), (0.0, 0.0), (1e17, 1.0), (1e17, 1e17)],
    ids=["denormal", "both denormal", "zero", "huge", "both huge"],
)
def test_any_norm_within_reach_gives_finite_values(case, left, right):
    rows, gradients = rows_and_gradients(
        case.loss(), QUERIES * np.float32(left), DOCUMENTS * np.float32(right)
    )
    assert has_only_finite([rows, *gradients])


def test_similarities_out_of_reach_are_reported(case):
    # A similarity of 1e40 is beyond float32.
    size = np.float32(1e20)
    rows = case.loss().per_example(QUERIES * size, DOCUMENTS * size)
    assert not np.isfinite(np.mean(rows))


def test_a_positive_out_of_reach_does_not_pass_for_a_perfect_one():
    size = np.float32(1e20) * np.eye(ROWS, dtype=np.float32)
    assert np.isnan(SamToNeLoss().per_example(size, size)).all()


NAN_CASES = {
    "plain": {},
    "score margin": {"score_margin": 0.1},
    "tiled": {"tile_size": 4},
    "tiled score margin": {"tile_size": 4, "score_margin": 0.1},
}


@pytest.mark.parametrize("options", NAN_CASES.values(), ids=NAN_CASES)
@pytest.mark.parametrize("side", ["queries", "documents", "hard_negatives"])
@pytest.mark.parametrize("cls", [SamToNeLoss, GTELoss, TripletLoss])
def test_nan_reaches_the_loss(cls, side, options):
    if cls is TripletLoss and "tile_size" in options:
        options = {"score_margin": 0.2, "negatives": "mean"}
    batch = {
        "queries": QUERIES.copy(),
        "documents": DOCUMENTS.copy(),
        "hard_negatives": np.stack([DOCUMENTS[::-1]] * 2, axis=1),
    }
    batch[side][0, 0] = np.nan
    assert np.isnan(np.mean(cls(**options).per_example(**batch)))


@pytest.mark.parametrize("side", [0, 1], ids=["queries", "documents"])
def test_nan_reaches_the_loss_where_nothing_else_is_left(loss, side):
    batch = [QUERIES.copy(), DOCUMENTS.copy()]
    batch[side][0] = np.nan
    masked = loss.per_example(*batch, query_ids=[1] * ROWS)
    assert np.isnan(masked[0])
    alone = loss.per_example(batch[0][:1], batch[1][:1])
    assert np.isnan(alone[0])


@pytest.mark.parametrize("negatives", ["hardest", "mean", "active"])
def test_nan_reaches_the_triplet_loss_under_xla(negatives):
    hard_negatives = np.full([ROWS, 1, DIM], np.float32(0.1))
    hard_negatives[2] = np.nan
    loss = TripletLoss(negatives=negatives)
    compiled = tf.function(loss.per_example, jit_compile=True)
    rows = compiled(QUERIES, DOCUMENTS, hard_negatives)
    assert np.isnan(rows).all()
