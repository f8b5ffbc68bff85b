"""Triplet loss with same-tower negatives."""

import types

import numpy as np
import pytest
import tensorflow as tf
import testing

from tf_samtone.errors import InvalidInputError
from tf_samtone.losses import TripletLoss

QUERIES = testing.unit_vectors_at(testing.QUERY_DEGREES)
DOCUMENTS = testing.unit_vectors_at(testing.DOCUMENT_DEGREES)
HARD_NEGATIVES = testing.unit_vectors_at(testing.HARD_NEGATIVE_DEGREES)[:, None]


def rows(
    *hard_negatives,
    queries=QUERIES,
    documents=DOCUMENTS,
    inputs=(),
    **options,
):
    loss = TripletLoss(**{"margin": 0.2, "bidirectional": False, **options})
    return loss.per_example(
        queries, documents, *hard_negatives, **dict(inputs)
    ).numpy()


# Values of the fixture, computed in float64 from the definition.
FIXTURE = {
    "hardest": (0.1134606536, 0.1135001925, 0.1491842094, 0.2134274611),
    "mean": (0.0635772230, 0.0401334162, 0.0442454106, 0.0700235319),
    "active": (0.1271544460, 0.0963201989, 0.1161442028, 0.2100705958),
}
each_reduction = pytest.mark.parametrize(
    ("negatives", "expected"), FIXTURE.items(), ids=FIXTURE
)


@each_reduction
def test_value_of_the_fixture_without_same_tower(negatives, expected):
    actual = rows(negatives=negatives, same_tower=None).mean()
    assert actual == pytest.approx(expected[0], rel=1e-9)


@each_reduction
def test_value_of_the_fixture_with_other_queries(negatives, expected):
    actual = rows(negatives=negatives).mean()
    assert actual == pytest.approx(expected[1], rel=1e-9)


@each_reduction
def test_value_of_the_fixture_with_hard_negatives(negatives, expected):
    actual = rows(HARD_NEGATIVES, negatives=negatives).mean()
    assert actual == pytest.approx(expected[2], rel=1e-9)


@each_reduction
def test_value_of_the_fixture_on_the_document_side(negatives, expected):
    # What the document direction adds to the loss without it.
    both = rows(negatives=negatives, bidirectional=True, same_tower="both")
    actual = (both - rows(negatives=negatives)).mean()
    assert actual == pytest.approx(expected[3], rel=1e-9)


@each_reduction
def test_the_directions_may_be_halved(negatives, expected):
    actual = rows(
        negatives=negatives,
        bidirectional=True,
        same_tower="both",
        direction_reduction="mean",
    ).mean()
    total = expected[1] + expected[3]
    assert actual == pytest.approx(total / 2, rel=1e-9)


def test_a_masked_column_is_no_negative():
    inputs = {"query_ids": [1, 1, 2]}
    batch = testing.ReferenceBatch(QUERIES, DOCUMENTS, **inputs)
    expected = [max(h) for h in batch.hinges("QP", "QQ", margin=0.2)]
    actual = rows(inputs=inputs)
    np.testing.assert_allclose(actual, expected, rtol=1e-12)
    assert actual[1] != rows()[1]


@pytest.mark.parametrize("negatives", FIXTURE)
def test_columns_above_the_score_margin_are_no_negatives(negatives):
    batch = testing.ReferenceBatch(QUERIES, DOCUMENTS)
    hinges = batch.hinges("QP", "QQ", margin=0.2, score_margin=0.0)
    expected = {
        "hardest": [max(h, default=0) for h in hinges],
        "mean": [sum(h) / max(1, len(h)) for h in hinges],
        "active": [
            sum(h) * 3 / sum(x > 0 for row in hinges for x in row)
            for h in hinges
        ],
    }
    actual = rows(negatives=negatives, score_margin=0.0)
    np.testing.assert_allclose(actual, expected[negatives], rtol=1e-12)


@pytest.mark.parametrize("negatives", FIXTURE)
def test_separate_rows_have_no_loss_and_no_gradient(negatives):
    # Every negative is at 0, more than the margin below the positive's 1.
    queries = tf.eye(3)
    loss = TripletLoss(negatives=negatives)
    with tf.GradientTape() as tape:
        tape.watch(queries)
        values = loss.per_example(queries, queries)
    assert values.numpy().tolist() == [0, 0, 0]
    assert not tape.gradient(values, queries).numpy().any()


@pytest.mark.parametrize("negatives", FIXTURE)
def test_the_gradient_at_the_kink_is_zero(negatives):
    # Positives at 1, negatives at 0.75: h = 0.25 - 1 + 0.75 = 0 exactly.
    queries = tf.eye(2)
    documents = tf.constant([[1.0, 0.75], [0.75, 1.0]])
    loss = TripletLoss(0.25, negatives=negatives, same_tower=None)
    with tf.GradientTape() as tape:
        tape.watch(queries)
        values = loss.per_example(queries, documents)
    assert values.numpy().tolist() == [0, 0]
    assert not tape.gradient(values, queries).numpy().any()


def test_replicas_count_the_active_negatives_together(monkeypatch):
    # The replica with row 1 sees that row's active negatives alone.
    loss = TripletLoss(negatives="active", bidirectional=False)
    whole = loss.per_example(QUERIES, DOCUMENTS)
    batch = testing.ReferenceBatch(QUERIES, DOCUMENTS)
    hinges = batch.hinges("QP", "QQ", margin=0.2)
    num_active = sum(h > 0 for row in hinges for h in row)
    own = sum(h > 0 for h in hinges[1])

    def all_reduce(operation, value):
        assert operation == tf.distribute.ReduceOp.SUM
        assert value.numpy() == own
        return tf.constant(num_active, value.dtype)

    monkeypatch.setattr(
        tf.distribute,
        "get_replica_context",
        lambda: types.SimpleNamespace(all_reduce=all_reduce),
    )
    part = loss.per_example(
        QUERIES[1:2],
        DOCUMENTS[1:2],
        all_queries=QUERIES,
        all_documents=DOCUMENTS,
        row_offset=1,
    )
    np.testing.assert_allclose(part, whole[1:2], rtol=1e-12)


@pytest.mark.parametrize("margin", [0, -0.1, float("inf"), None, "wide"])
def test_a_margin_that_is_not_positive_is_refused(margin):
    with pytest.raises(InvalidInputError, match="`margin` .* > 0.0. Received"):
        TripletLoss(margin)


def test_unknown_negatives_list_the_known():
    message = "'hardest', 'mean', 'active'.*negatives='semi-hard'"
    with pytest.raises(InvalidInputError, match=message):
        TripletLoss(negatives="semi-hard")


def test_an_unknown_side_lists_the_known():
    with pytest.raises(InvalidInputError, match="'both', None.*'left'"):
        TripletLoss(same_tower="left")


@pytest.mark.parametrize("same_tower", ["document", "both"])
def test_document_negatives_need_the_document_direction(same_tower):
    with pytest.raises(InvalidInputError, match="bidirectional=True"):
        TripletLoss(same_tower=same_tower, bidirectional=False)


@pytest.mark.parametrize(
    "option",
    [
        {"temperature": 0.05},
        {"label_smoothing": 0.1},
        {"same_tower_weight": 2.0},
        {"tile_size": 8},
        {"margin_position": "inside"},
    ],
    ids=str,
)
def test_options_of_a_softmax_are_refused(option):
    (name,) = option
    with pytest.raises(InvalidInputError, match=f"`{name}=.*softmax"):
        TripletLoss(**option)


OPTIONS = {
    "margin": 0.4,
    "negatives": "active",
    "same_tower": None,
    "bidirectional": False,
    "direction_reduction": "mean",
    "mask_duplicates": False,
    "hard_negatives": "own",
    "score_margin": 0.0,
    "reduction": "sum",
    "name": "another",
}


@pytest.mark.parametrize("option", OPTIONS)
def test_the_config_keeps_every_option(option):
    loss = TripletLoss(**{option: OPTIONS[option]})
    copy = TripletLoss.from_config(loss.get_config())
    assert copy.get_config() == loss.get_config()
    assert copy.get_config()[option] == OPTIONS[option]
    assert set(copy.get_config()) == set(OPTIONS)


@pytest.mark.parametrize("option", sorted(set(OPTIONS) - {"name", "reduction"}))
def test_every_option_changes_the_loss(option):
    base = {"same_tower": "query", "margin": 0.3, "negatives": "mean"}
    inputs = {"hard_negatives": HARD_NEGATIVES, "query_ids": [1, 2, 1]}
    plain = rows(inputs=inputs, **base, bidirectional=True)
    changed = {**base, "bidirectional": True, option: OPTIONS[option]}
    assert not np.array_equal(rows(inputs=inputs, **changed), plain)
