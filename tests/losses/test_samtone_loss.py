"""The loss with same-tower negatives."""

import numpy as np
import pytest
import tensorflow as tf
import testing

from tf_samtone.errors import InvalidInputError
from tf_samtone.losses import InBatchSoftmaxLoss, SamToNeLoss

QUERIES = testing.unit_vectors_at(testing.QUERY_DEGREES)
DOCUMENTS = testing.unit_vectors_at(testing.DOCUMENT_DEGREES)
HARD_NEGATIVES = testing.unit_vectors_at(testing.HARD_NEGATIVE_DEGREES)[:, None]
# The second question repeats the first.
REPEATED = testing.unit_vectors_at((0, 0, 100))
REPEATED_IDS = [7, 7, 9]
TILE_SIZES = pytest.mark.parametrize("tile_size", [None, 1, 2, 3, 64])
QUERY_SIDE = {"same_tower": "query", "bidirectional": False}


def rows(queries=QUERIES, documents=DOCUMENTS, *, inputs=(), **options):
    loss = SamToNeLoss(**{"temperature": 0.05, **options})
    return loss.per_example(queries, documents, **dict(inputs)).numpy()


def gradients(queries, documents, *, inputs=(), **options):
    """Return the gradients of the mean loss to both embeddings."""
    queries, documents = tf.constant(queries), tf.constant(documents)
    loss = SamToNeLoss(**{"temperature": 0.05, **options})
    with tf.GradientTape() as tape:
        tape.watch([queries, documents])
        values = loss.per_example(queries, documents, **dict(inputs))
        mean = tf.reduce_mean(values)
    return [g.numpy() for g in tape.gradient(mean, [queries, documents])]


# Values of the fixture, computed in float64 from the formulas.
@TILE_SIZES
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (QUERY_SIDE, 0.4579555834),
        ({}, 0.7792388299),
        ({"direction_reduction": "mean"}, 0.3896194150),
        ({"same_tower": "both"}, 1.5244943565),
        ({"same_tower": "both", "direction_reduction": "mean"}, 0.7622471783),
        # L(QP) + L(PQ, PP), the sum of two values of the fixture.
        ({"same_tower": "document"}, 0.4383172027 + 1.0665387731),
        ({**QUERY_SIDE, "same_tower_weight": 0.5}, 0.4482190078),
        ({**QUERY_SIDE, "same_tower_weight": 2}, 0.4769564129),
        ({**QUERY_SIDE, "score_margin": 0.0}, 0.1030020656),
        ({**QUERY_SIDE, "score_margin": 0.1}, 0.4579555834),
        ({**QUERY_SIDE, "label_smoothing": 0.1}, 0.9960671895),
    ],
    ids=str,
)
def test_value_of_the_fixture(options, expected, tile_size):
    actual = rows(tile_size=tile_size, **options).mean()
    assert actual == pytest.approx(expected, rel=1e-9)


@TILE_SIZES
def test_rows_of_the_fixture_on_the_query_side(tile_size):
    expected = [0.0181964104, 1.2284256742, 0.1272446655]
    actual = rows(tile_size=tile_size, **QUERY_SIDE)
    assert actual == pytest.approx(expected, rel=1e-8)


def test_rows_of_the_fixture_on_the_document_side():
    # The difference to the loss without the document-to-query direction.
    expected = [0.2653587537, 2.2382882492, 0.6959693166]
    actual = rows(same_tower="both") - rows(**QUERY_SIDE)
    assert actual == pytest.approx(expected, rel=1e-9)


# Gradients of the fixture have seven digits after the point.
@TILE_SIZES
def test_gradients_of_the_fixture_on_the_query_side(tile_size):
    d_queries, d_documents = gradients(
        QUERIES, DOCUMENTS, tile_size=tile_size, **QUERY_SIDE
    )
    expected = [
        [0.1783751, 0.2160108],
        [2.9978906, -3.2172922],
        [0.2042240, -0.0443327],
    ]
    np.testing.assert_allclose(d_queries, expected, rtol=0, atol=1e-7)
    expected = [
        [3.2259927, 2.8077996],
        [-3.7500859, -2.2468053],
        [0.2005939, -0.7321889],
    ]
    np.testing.assert_allclose(d_documents, expected, rtol=0, atol=1e-7)


@TILE_SIZES
def test_gradients_of_the_fixture_on_both_sides(tile_size):
    d_queries, d_documents = gradients(
        QUERIES, DOCUMENTS, tile_size=tile_size, same_tower="both"
    )
    expected = [
        [-1.3224687, -0.1861221],
        [2.4614493, -8.3935124],
        [0.1560418, -2.7062754],
    ]
    np.testing.assert_allclose(d_queries, expected, rtol=0, atol=1e-7)
    expected = [
        [2.8623149, 3.8090986],
        [-7.6853273, 3.1601726],
        [3.7254356, 4.0379695],
    ]
    np.testing.assert_allclose(d_documents, expected, rtol=0, atol=1e-7)


@TILE_SIZES
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (QUERY_SIDE, 0.8756720140),
        ({**QUERY_SIDE, "hard_negatives": "own"}, 0.4579861708),
        ({"same_tower": "both"}, 1.9422107871),
    ],
    ids=["query side", "own", "both"],
)
def test_value_of_the_fixture_with_hard_negatives(options, expected, tile_size):
    actual = rows(
        inputs={"hard_negatives": HARD_NEGATIVES},
        tile_size=tile_size,
        **options,
    )
    assert actual.mean() == pytest.approx(expected, rel=1e-9)


@TILE_SIZES
@pytest.mark.parametrize(
    ("mask_duplicates", "expected"),
    [(False, 4.9289950375), (True, 0.0444311131)],
    ids=["unmasked", "masked"],
)
def test_value_of_the_fixture_with_a_repeated_query(
    mask_duplicates, expected, tile_size
):
    inputs = {"query_ids": REPEATED_IDS}
    options = {**QUERY_SIDE, "mask_duplicates": mask_duplicates}
    actual = rows(REPEATED, inputs=inputs, tile_size=tile_size, **options)
    assert actual.mean() == pytest.approx(expected, rel=1e-9)


def test_swapping_the_sides_swaps_the_loss_of_both_towers():
    np.testing.assert_allclose(
        rows(QUERIES, DOCUMENTS, same_tower="query"),
        rows(DOCUMENTS, QUERIES, same_tower="document"),
        rtol=1e-12,
    )


def test_a_batch_of_one_has_no_same_tower_negative():
    assert rows(QUERIES[:1], DOCUMENTS[:1], same_tower="both") == [0.0]


def test_same_tower_negatives_only_add_to_the_loss():
    plain = InBatchSoftmaxLoss(temperature=0.05)
    plain_rows = plain.per_example(QUERIES, DOCUMENTS)
    assert (rows(same_tower="both") > plain_rows.numpy()).all()


@TILE_SIZES
def test_a_repeated_query_starves_real_negatives_unless_it_is_masked(
    tile_size,
):
    # At 0.01 the copy takes all of the mass of rows 0 and 1, so the document
    # of row 2, a real and close negative, gets no push from them.
    queries = tf.constant(REPEATED, tf.float32)
    documents = tf.constant(testing.unit_vectors_at((30, 25, 28)), tf.float32)

    def push_on_the_real_negative(mask_duplicates):
        loss = SamToNeLoss(
            temperature=0.01,
            bidirectional=False,
            mask_duplicates=mask_duplicates,
            tile_size=tile_size,
        )
        with tf.GradientTape() as tape:
            tape.watch(documents)
            values = loss.per_example(
                queries, documents, query_ids=REPEATED_IDS
            )
            total = tf.reduce_sum(values[:2])
        # Along the queries of rows 0 and 1, which are the x axis.
        return tape.gradient(total, documents).numpy()[2, 0]

    # Row 0: mass e^x / (1 + e^x), x = (cos 28 - cos 30) / 0.01 = 1.69; row 1
    # with cos 25 instead of cos 30, x = -2.34; each times 1 / 0.01.
    assert push_on_the_real_negative(True) == pytest.approx(93.3, rel=1e-2)
    # The copy's logit is above the document's by (1 - cos 28) / 0.01 = 11.7.
    assert 0 < push_on_the_real_negative(False) < 2e-3


def test_large_ids_that_float32_confuses_are_told_apart():
    ids = np.array([2**24, 2**24 + 1, 2**62])
    np.testing.assert_array_equal(
        rows(inputs={"query_ids": ids, "document_ids": ids}), rows()
    )


def test_python_integers_beyond_int32_are_accepted_as_ids():
    ids = [2**40, 2**40, 2**40 + 1]
    np.testing.assert_array_equal(
        rows(REPEATED, inputs={"query_ids": ids}),
        rows(REPEATED, inputs={"query_ids": REPEATED_IDS}),
    )


def test_an_unknown_side_lists_the_known():
    with pytest.raises(InvalidInputError, match="'document', 'both'.*'left'"):
        SamToNeLoss(same_tower="left")


@pytest.mark.parametrize("same_tower", ["document", "both"])
def test_document_negatives_need_the_document_direction(same_tower):
    with pytest.raises(InvalidInputError, match="bidirectional=True"):
        SamToNeLoss(same_tower=same_tower, bidirectional=False)


OPTIONS = {
    "temperature": 0.2,
    "same_tower": "both",
    "bidirectional": False,
    "direction_reduction": "mean",
    "mask_duplicates": False,
    "margin": 0.1,
    "margin_position": "outside",
    "label_smoothing": 0.1,
    "same_tower_weight": 0.5,
    "hard_negatives": "own",
    "score_margin": 0.0,
    "tile_size": 7,
    "reduction": "sum",
    "name": "another",
}


@pytest.mark.parametrize("option", OPTIONS)
def test_the_config_keeps_every_option(option):
    options = {"margin_position": "inside", option: OPTIONS[option]}
    loss = SamToNeLoss(**options)
    copy = SamToNeLoss.from_config(loss.get_config())
    assert copy.get_config() == loss.get_config()
    assert set(copy.get_config()) == set(OPTIONS)
    assert copy.get_config()[option] == OPTIONS[option]
    assert getattr(copy, option) == OPTIONS[option]


# The tile size is one that must not, and reduction and name concern the call.
@pytest.mark.parametrize(
    "option", sorted(set(OPTIONS) - {"tile_size", "reduction", "name"})
)
def test_every_option_changes_the_loss(option):
    inputs = {"hard_negatives": HARD_NEGATIVES, "query_ids": [1, 2, 1]}
    base = {"margin": 0.2, "margin_position": "inside"}
    plain = rows(inputs=inputs, **base)
    changed = {**base, option: OPTIONS[option]}
    assert not np.array_equal(rows(inputs=inputs, **changed), plain)


def test_the_defaults_are_those_of_the_paper_with_duplicates_masked():
    config = SamToNeLoss().get_config()
    assert config["temperature"] == 0.01
    assert config["same_tower"] == "query"
    assert config["bidirectional"] is True
    assert config["direction_reduction"] == "sum"
    assert config["mask_duplicates"] is True
