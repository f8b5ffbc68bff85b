"""One softmax over blocks, against the values of the fixture."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
import testing

from tf_samtone.losses.direction import Direction
from tf_samtone.losses.pair_batch import PairBatch

QUERIES = testing.unit_vectors_at(testing.QUERY_DEGREES)
DOCUMENTS = testing.unit_vectors_at(testing.DOCUMENT_DEGREES)
HARD_NEGATIVES = testing.unit_vectors_at(testing.HARD_NEGATIVE_DEGREES)[:, None]
# The second question repeats the first.
REPEATED = testing.unit_vectors_at((0, 0, 100))
TILE_SIZES = [None, 1, 2, 3, 64]


def batch(queries=QUERIES, **options):
    return PairBatch.checked(queries, DOCUMENTS, HARD_NEGATIVES, **options)


def direction(side, *blocks, pairs=None, **options):
    """Return a direction of the blocks named as in the notation."""
    pairs = batch() if pairs is None else pairs
    makers = {
        "QP": lambda: pairs.other_tower_block("query"),
        "PQ": lambda: pairs.other_tower_block("document"),
        "QQ": lambda: pairs.same_tower_block("query"),
        "PP": lambda: pairs.same_tower_block("document"),
        "QN": lambda: pairs.hard_block("all"),
        "QNown": lambda: pairs.hard_block("own"),
        "PNother": lambda: pairs.hard_block("others"),
    }
    anchors, positives = pairs.sides(side)
    return Direction(
        anchors=anchors,
        positives=positives,
        blocks=[makers[name]() for name in blocks],
        scale=tf.constant(20.0, anchors.dtype),
        **options,
    )


# Values of the fixture, computed in float64 from the formulas; they are given
# to ten digits.
@pytest.mark.parametrize("tile_size", TILE_SIZES)
@pytest.mark.parametrize(
    ("side", "blocks", "options", "expected"),
    [
        ("query", "QP", {}, 0.4383172027),
        ("query", "QP QQ", {}, 0.4579555834),
        ("document", "PQ PP", {}, 1.0665387731),
        ("document", "PP", {}, 0.9396873330),
        ("query", "QP QN", {}, 0.8637104013),
        ("query", "QP QNown QQ", {}, 0.4579861708),
        ("query", "QP QQ", {"score_margin": 0.0}, 0.1030020656),
        ("query", "QP QQ", {"score_margin": 0.1}, 0.4579555834),
        ("document", "PQ PP", {"score_margin": -0.05}, 0.0913005950),
        ("document", "PQ PP", {"score_margin": 0.0}, 0.5519765525),
        ("document", "PQ PP", {"score_margin": 0.1}, 1.0665387731),
        ("query", "QP", {"label_smoothing": 0.1}, 0.9105803486),
        ("query", "QP QN", {"label_smoothing": 0.1}, 1.6390317750),
        ("query", "QP QQ", {"label_smoothing": 0.1}, 0.9960671895),
        (
            "query",
            "QP",
            {"margin": 0.1, "margin_is_inside": True},
            1.1919755801,
        ),
        ("query", "QP", {"margin": 0.1}, 0.4659961611),
    ],
    ids=str,
)
def test_value_of_the_fixture(side, blocks, options, expected, tile_size):
    loss = direction(side, *blocks.split(), tile_size=tile_size, **options)
    assert np.mean(loss.loss()) == pytest.approx(expected, rel=1e-9)


# One softmax with anchors on both sides: the losses of the two directions,
# each with the positive in its denominator, put together.
@pytest.mark.parametrize(
    ("query_blocks", "document_blocks", "positives", "expected"),
    [
        # sentence-transformers' GTE in four directions, the positive twice.
        ("QP QN QQ", "PQ PP PNother", 2, 1.8615648825),
        # Qwen3-Embedding with nothing masked.
        ("QP QNown QQ", "PP", 1, 1.0521244848),
    ],
    ids=["gte of sentence-transformers", "qwen3"],
)
def test_value_of_the_fixture_of_joint_softmaxes(
    query_blocks, document_blocks, positives, expected
):
    one = direction("query", *query_blocks.split()).loss()
    other = direction("document", *document_blocks.split()).loss()
    joint = tf.math.log(tf.exp(one) + tf.exp(other) + positives - 2)
    assert np.mean(joint) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("block", "expected"), [("QQ", 4.2017623210), ("QP QQ", 0.0444311131)]
)
def test_value_of_the_fixture_with_ids_in_some_blocks(block, expected):
    # The masks are of the blocks, so each block can be masked alone.
    masked = batch(REPEATED, query_ids=[7, 7, 9])
    plain = batch(REPEATED)
    blocks = [
        direction("query", name, pairs=masked if name in block else plain)
        for name in ("QP", "QQ")
    ]
    both = dataclasses.replace(
        blocks[0], blocks=[b for d in blocks for b in d.blocks]
    )
    assert np.mean(both.loss()) == pytest.approx(expected, rel=1e-9)


def test_smoothing_counts_unmasked_columns_only():
    # The same rows with the repeated query's columns not there at all.
    masked = direction(
        "query",
        "QP",
        "QQ",
        pairs=batch(REPEATED, query_ids=[7, 7, 9]),
        label_smoothing=0.1,
    )
    rows = testing.ReferenceBatch(REPEATED[1:], DOCUMENTS[1:]).softmax(
        "QP", "QQ", temperature=0.05, label_smoothing=0.1
    )
    np.testing.assert_allclose(masked.loss()[1], rows[0], rtol=1e-12)


@pytest.mark.parametrize("tile_size", [None, 2])
def test_smoothing_of_a_row_without_negatives_costs_nothing(tile_size):
    pairs = batch(query_ids=[1, 1, 1])
    loss = direction(
        "query",
        "QP",
        "QQ",
        pairs=pairs,
        label_smoothing=0.1,
        tile_size=tile_size,
    )
    assert loss.loss().numpy().tolist() == [0, 0, 0]


def test_smoothing_has_its_floor_at_zero():
    # Where every negative has the odds that the target asks for.
    z = np.log(0.1 / 2 / 0.9)
    columns = np.array([[1.0 + z / 20, 0], [1.0, 0], [1.0 + z / 20, 0]])
    pairs = PairBatch.checked(np.array([[1.0, 0.0]] * 3), columns)
    loss = direction("query", "QP", pairs=pairs, label_smoothing=0.1).loss()
    assert loss.numpy()[1] == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("tile_size", [None, 2])
def test_masked_columns_are_counted(tile_size):
    pairs = batch(query_ids=[1, 1, 2], document_ids=[4, 5, 6])
    loss = direction("query", "QP", "QQ", pairs=pairs, tile_size=tile_size)
    assert loss.masked().numpy().tolist() == [2, 2, 0]


def test_columns_above_the_score_margin_are_counted():
    pairs = PairBatch.checked(
        testing.unit_vectors_at([0, 90, 180]),
        testing.unit_vectors_at([30, 90, 10]),
    )
    loss = direction("query", "QP", pairs=pairs, score_margin=0.0)
    # Row 0 loses the document at 10 degrees, nearer than its own; row 1 is at
    # its own; row 2, whose own is 170 degrees off, loses both others.
    assert loss.masked().numpy().tolist() == [1, 0, 2]


@pytest.mark.parametrize(
    ("columns", "tile_size", "is_dense"),
    [
        (2048, None, True),
        (2049, None, False),
        (2048, 2048, False),
    ],
)
def test_tiles_start_above_2048_columns(columns, tile_size, is_dense):
    @tf.function
    def loss(vectors):
        pairs = PairBatch.checked(vectors, vectors)
        return direction("query", "QP", pairs=pairs, tile_size=tile_size).loss()

    spec = tf.TensorSpec([columns, 2])
    graph = loss.get_concrete_function(spec).graph
    sizes = [
        np.prod(tensor.shape.as_list())
        for operation in graph.get_operations()
        for tensor in operation.outputs
        if tensor.shape.is_fully_defined()
    ]
    assert (max(sizes) >= columns * columns) == is_dense


def test_an_unknown_number_of_columns_is_tiled():
    @tf.function
    def loss(vectors):
        pairs = PairBatch.checked(vectors, vectors)
        return direction("query", "QP", pairs=pairs).loss()

    spec = tf.TensorSpec([None, 2])
    graph = loss.get_concrete_function(spec).graph
    assert any("While" in op.type for op in graph.get_operations())
