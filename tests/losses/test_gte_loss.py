"""The loss with all four blocks in one softmax."""

import numpy as np
import pytest
import testing

from tf_samtone.errors import InvalidInputError
from tf_samtone.losses import GTELoss, LearnedTemperature

QUERIES = testing.unit_vectors_at(testing.QUERY_DEGREES)
DOCUMENTS = testing.unit_vectors_at(testing.DOCUMENT_DEGREES)
HARD_NEGATIVES = testing.unit_vectors_at(testing.HARD_NEGATIVE_DEGREES)[:, None]


@pytest.mark.parametrize("tile_size", [None, 1, 2, 3, 64])
@pytest.mark.parametrize(
    ("twice", "expected"), [(True, 1.5120334351), (False, 1.1694315075)]
)
def test_value_of_the_fixture(twice, expected, tile_size):
    loss = GTELoss(0.05, twice, tile_size=tile_size)
    actual = np.mean(loss.per_example(QUERIES, DOCUMENTS))
    assert actual == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("tile_size", [None, 1, 2, 64])
@pytest.mark.parametrize(
    ("twice", "expected"), [(True, 1.2791960438893653), (False, 0.9480052057)]
)
def test_value_of_the_published_unit_test(twice, expected, tile_size):
    # A test of the GTE authors' loss: dot products, scale 1.
    queries = np.array([[1.0, 2.0], [0.3, -1.2]])
    documents = np.array([[-0.7, 0.5], [1.5, -0.4]])
    loss = GTELoss(1.0, twice, tile_size=tile_size)
    actual = np.mean(loss.per_example(queries, documents))
    assert actual == pytest.approx(expected, rel=1e-9)


def test_value_of_the_published_unit_test_on_unit_vectors():
    queries = np.array([[1.0, 2.0], [0.3, -1.2]])
    documents = np.array([[-0.7, 0.5], [1.5, -0.4]])
    actual = GTELoss(1.0, count_positive_twice=True).per_example(
        queries / np.linalg.norm(queries, axis=1, keepdims=True),
        documents / np.linalg.norm(documents, axis=1, keepdims=True),
    )
    assert np.mean(actual) == pytest.approx(1.3519364900, rel=1e-9)


@pytest.mark.parametrize(("twice", "floor"), [(True, np.log(2)), (False, 0.0)])
def test_a_batch_of_one_is_at_the_floor(twice, floor):
    loss = GTELoss(0.05, count_positive_twice=twice)
    actual = loss.per_example(QUERIES[:1], DOCUMENTS[:1])
    assert actual.numpy() == pytest.approx([floor], abs=1e-12)


def test_hard_negatives_are_columns_of_the_query():
    batch = testing.ReferenceBatch(QUERIES, DOCUMENTS, HARD_NEGATIVES)
    expected = batch.softmax("QP", "QQ", "PQ", "PP", "QN", temperature=0.05)
    actual = GTELoss(0.05).per_example(QUERIES, DOCUMENTS, HARD_NEGATIVES)
    np.testing.assert_allclose(actual, expected, rtol=1e-12)


def test_swapping_the_sides_changes_nothing():
    loss = GTELoss(0.05)
    np.testing.assert_allclose(
        loss.per_example(QUERIES, DOCUMENTS),
        loss.per_example(DOCUMENTS, QUERIES),
        rtol=1e-12,
    )


@pytest.mark.parametrize(
    "option",
    [
        {"bidirectional": False},
        {"direction_reduction": "mean"},
        {"label_smoothing": 0.1},
    ],
    ids=str,
)
def test_options_without_a_meaning_are_refused(option):
    (name,) = option
    with pytest.raises(InvalidInputError, match=f"`{name}=.*SamToNeLoss"):
        GTELoss(**option)


OPTIONS = {
    "temperature": 0.2,
    "count_positive_twice": True,
    "mask_duplicates": False,
    "margin": 0.1,
    "same_tower_weight": 0.5,
    "hard_negatives": "own",
    "score_margin": 0.1,
    "tile_size": 7,
    "reduction": "sum",
    "name": "another",
}


@pytest.mark.parametrize("option", OPTIONS)
def test_the_config_keeps_every_option(option):
    loss = GTELoss(margin_position="inside", **{option: OPTIONS[option]})
    copy = GTELoss.from_config(loss.get_config())
    assert copy.get_config() == loss.get_config()
    assert getattr(copy, option) == OPTIONS[option]


def test_the_config_is_complete():
    given = {*OPTIONS, "margin_position"}
    refused = {"bidirectional", "direction_reduction", "label_smoothing"}
    assert set(GTELoss(LearnedTemperature()).get_config()) == given | refused
