"""The plain in-batch softmax loss."""

import pytest
import tensorflow as tf
import testing

from tf_samtone.losses import InBatchSoftmaxLoss

QUERIES = testing.unit_vectors_at(testing.QUERY_DEGREES)
DOCUMENTS = testing.unit_vectors_at(testing.DOCUMENT_DEGREES)
HARD_NEGATIVES = testing.unit_vectors_at(testing.HARD_NEGATIVE_DEGREES)[:, None]
# The second question repeats the first.
REPEATED = testing.unit_vectors_at((0, 0, 100))
REPEATED_IDS = [7, 7, 9]
TILE_SIZES = pytest.mark.parametrize("tile_size", [None, 1, 2, 3, 64])


def mean_loss(queries=QUERIES, documents=DOCUMENTS, *, inputs=(), **options):
    loss = InBatchSoftmaxLoss(temperature=0.05, **options)
    return float(
        tf.reduce_mean(loss.per_example(queries, documents, **dict(inputs)))
    )


# Values of the fixture, computed in float64 from the formulas.
@TILE_SIZES
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"bidirectional": False}, 0.4383172027),
        ({}, 0.7596004493),
        ({"direction_reduction": "mean"}, 0.3798002246),
    ],
    ids=["one direction", "sum", "mean"],
)
def test_value_of_the_fixture(options, expected, tile_size):
    actual = mean_loss(tile_size=tile_size, **options)
    assert actual == pytest.approx(expected, rel=1e-9)


@TILE_SIZES
@pytest.mark.parametrize(
    ("hard_negatives", "mask", "expected"),
    [
        ("all", None, 0.8637104013),
        ("all", [[True], [False], [True]], 0.7257230841),
        ("own", None, 0.4383483334),
    ],
    ids=["all", "second masked", "own"],
)
def test_value_of_the_fixture_with_hard_negatives(
    hard_negatives, mask, expected, tile_size
):
    actual = mean_loss(
        inputs={"hard_negatives": HARD_NEGATIVES, "hard_negative_mask": mask},
        bidirectional=False,
        hard_negatives=hard_negatives,
        tile_size=tile_size,
    )
    assert actual == pytest.approx(expected, rel=1e-9)


@TILE_SIZES
def test_hard_negatives_leave_the_document_direction_alone(tile_size):
    inputs = {"hard_negatives": HARD_NEGATIVES}
    actual = mean_loss(inputs=inputs, tile_size=tile_size)
    assert actual == pytest.approx(1.1849936478, rel=1e-9)


@TILE_SIZES
@pytest.mark.parametrize(
    ("position", "expected"),
    [("inside", 1.1919755801), ("outside", 0.4659961611)],
)
def test_value_of_the_fixture_with_a_margin(position, expected, tile_size):
    actual = mean_loss(
        bidirectional=False,
        margin=0.1,
        margin_position=position,
        tile_size=tile_size,
    )
    assert actual == pytest.approx(expected, rel=1e-9)


@TILE_SIZES
@pytest.mark.parametrize(
    ("inputs", "expected"),
    [({}, 0.9105803486), ({"hard_negatives": HARD_NEGATIVES}, 1.6390317750)],
    ids=["plain", "hard negatives"],
)
def test_value_of_the_fixture_with_label_smoothing(inputs, expected, tile_size):
    actual = mean_loss(
        inputs=inputs,
        bidirectional=False,
        label_smoothing=0.1,
        tile_size=tile_size,
    )
    assert actual == pytest.approx(expected, rel=1e-9)


@TILE_SIZES
@pytest.mark.parametrize(
    ("mask_duplicates", "expected"),
    [(False, 4.2017623208), (True, 0.0444201182)],
    ids=["unmasked", "masked"],
)
def test_value_of_the_fixture_with_a_repeated_query(
    mask_duplicates, expected, tile_size
):
    actual = mean_loss(
        REPEATED,
        inputs={"query_ids": REPEATED_IDS},
        bidirectional=False,
        mask_duplicates=mask_duplicates,
        tile_size=tile_size,
    )
    assert actual == pytest.approx(expected, rel=1e-9)


def test_masking_is_off_without_ids():
    assert mean_loss(REPEATED, bidirectional=False) == pytest.approx(
        4.2017623208, rel=1e-9
    )


def test_a_repeated_document_is_no_negative():
    # The fixture's repeated query, on the other side.
    actual = mean_loss(
        DOCUMENTS, REPEATED, inputs={"document_ids": REPEATED_IDS}
    )
    expected = mean_loss(
        REPEATED, DOCUMENTS, inputs={"query_ids": REPEATED_IDS}
    )
    assert actual == pytest.approx(expected, rel=1e-12)


def test_swapping_the_sides_of_a_bidirectional_loss_changes_nothing():
    assert mean_loss(DOCUMENTS, QUERIES) == pytest.approx(
        mean_loss(QUERIES, DOCUMENTS), rel=1e-12
    )


def test_the_mean_of_one_direction_is_that_direction():
    one = mean_loss(bidirectional=False, direction_reduction="mean")
    assert one == pytest.approx(0.4383172027, rel=1e-9)


OPTIONS = {
    "temperature": 0.2,
    "bidirectional": False,
    "direction_reduction": "mean",
    "mask_duplicates": False,
    "margin": 0.1,
    "margin_position": "outside",
    "label_smoothing": 0.1,
    "same_tower_weight": 0.5,
    "hard_negatives": "own",
    "score_margin": 0.1,
    "tile_size": 7,
    "reduction": "sum",
    "name": "another",
}


@pytest.mark.parametrize("option", OPTIONS)
def test_the_config_keeps_every_option(option):
    options = {"margin_position": "inside", option: OPTIONS[option]}
    loss = InBatchSoftmaxLoss(**options)
    copy = InBatchSoftmaxLoss.from_config(loss.get_config())
    assert copy.get_config() == loss.get_config()
    assert copy.get_config()[option] == OPTIONS[option]
    assert getattr(copy, option) == OPTIONS[option]
    assert set(copy.get_config()) == set(OPTIONS)


def test_the_defaults_are_those_of_the_papers():
    config = InBatchSoftmaxLoss().get_config()
    assert config["temperature"] == 0.01
    assert config["bidirectional"] is True
    assert config["direction_reduction"] == "sum"
    assert config["mask_duplicates"] is True
