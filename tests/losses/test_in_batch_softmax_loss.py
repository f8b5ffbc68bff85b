"""The plain in-batch softmax loss."""

import numpy as np
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


def mean_loss(queries=QUERIES, documents=DOCUMENTS, *, inputs=(), **options):
    loss = InBatchSoftmaxLoss(temperature=0.05, **options)
    return float(
        tf.reduce_mean(loss.per_example(queries, documents, **dict(inputs)))
    )


# Values of the fixture, computed in float64 from the formulas.
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"bidirectional": False}, 0.4383172027),
        ({}, 0.7596004493),
        ({"direction_reduction": "mean"}, 0.3798002246),
    ],
    ids=["one direction", "sum", "mean"],
)
def test_value_of_the_fixture(options, expected):
    assert mean_loss(**options) == pytest.approx(expected, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize(
    ("mask", "expected"),
    [(None, 0.8637104013), ([[True], [False], [True]], 0.7257230841)],
    ids=["all", "second masked"],
)
def test_value_of_the_fixture_with_hard_negatives(mask, expected):
    inputs = {"hard_negatives": HARD_NEGATIVES, "hard_negative_mask": mask}
    actual = mean_loss(inputs=inputs, bidirectional=False)
    assert actual == pytest.approx(expected, rel=1e-6, abs=1e-6)


def test_hard_negatives_leave_the_document_direction_alone():
    inputs = {"hard_negatives": HARD_NEGATIVES}
    assert mean_loss(inputs=inputs) == pytest.approx(
        1.1849936478, rel=1e-6, abs=1e-6
    )


@pytest.mark.parametrize(
    ("mask_duplicates", "expected"),
    [(False, 4.2017623208), (True, 0.0444201182)],
    ids=["unmasked", "masked"],
)
def test_value_of_the_fixture_with_a_repeated_query(mask_duplicates, expected):
    actual = mean_loss(
        REPEATED,
        inputs={"query_ids": REPEATED_IDS},
        bidirectional=False,
        mask_duplicates=mask_duplicates,
    )
    assert actual == pytest.approx(expected, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("reduction", ["sum", "mean"])
@pytest.mark.parametrize("bidirectional", [True, False])
def test_random_rows_agree_with_the_reference(bidirectional, reduction):
    queries = testing.random_unit_vectors(0, 12, 6)
    documents = testing.random_unit_vectors(1, 12, 6)
    inputs = {
        "hard_negatives": testing.random_unit_vectors(2, 12, 3, 6),
        "hard_negative_mask": np.random.default_rng(3).random([12, 3]) < 0.6,
        "query_ids": np.arange(12) // 2,
        "document_ids": np.arange(12) % 9,
    }
    options = {
        "temperature": 0.1,
        "bidirectional": bidirectional,
        "direction_reduction": reduction,
    }
    if not bidirectional:
        # The option concerns two directions; one is never halved.
        options["direction_reduction"] = "sum"
    actual = InBatchSoftmaxLoss(**options).per_example(
        queries, documents, **inputs
    )
    expected = testing.reference_loss(queries, documents, **options, **inputs)
    np.testing.assert_allclose(actual, expected, rtol=2e-6, atol=1e-6)


def test_masking_is_off_without_ids():
    assert mean_loss(REPEATED, bidirectional=False) == pytest.approx(
        4.2017623208, abs=1e-6
    )


def test_swapping_the_sides_of_a_bidirectional_loss_changes_nothing():
    assert mean_loss(DOCUMENTS, QUERIES) == pytest.approx(
        mean_loss(QUERIES, DOCUMENTS), abs=1e-6
    )


OPTIONS = {
    "temperature": 0.2,
    "bidirectional": False,
    "direction_reduction": "mean",
    "mask_duplicates": False,
    "reduction": "sum",
    "name": "another",
}


@pytest.mark.parametrize("option", OPTIONS)
def test_the_config_keeps_every_option(option):
    loss = InBatchSoftmaxLoss(**{option: OPTIONS[option]})
    copy = InBatchSoftmaxLoss.from_config(loss.get_config())
    assert copy.get_config()[option] == OPTIONS[option]
    assert getattr(copy, option) == OPTIONS[option]


def test_the_defaults_are_those_of_the_papers():
    config = InBatchSoftmaxLoss().get_config()
    assert config["temperature"] == 0.01
    assert config["bidirectional"] is True
    assert config["direction_reduction"] == "sum"
    assert config["mask_duplicates"] is True
