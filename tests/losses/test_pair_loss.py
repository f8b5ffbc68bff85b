"""The loss with a document-centric part."""

import numpy as np
import pytest
import testing

from tf_samtone.errors import InvalidInputError
from tf_samtone.losses import InBatchSoftmaxLoss, PairLoss

QUERIES = testing.unit_vectors_at(testing.QUERY_DEGREES)
DOCUMENTS = testing.unit_vectors_at(testing.DOCUMENT_DEGREES)
HARD_NEGATIVES = testing.unit_vectors_at(testing.HARD_NEGATIVE_DEGREES)[:, None]
TILE_SIZES = [None, 1, 2, 3, 64]
ONE_WAY = {"bidirectional": False}


def rows(*hard_negatives, **options):
    loss = PairLoss(temperature=0.05, **options)
    return loss.per_example(QUERIES, DOCUMENTS, *hard_negatives).numpy()


@pytest.mark.parametrize("tile_size", TILE_SIZES)
@pytest.mark.parametrize(
    ("alpha", "expected"),
    [(0.1, 0.4884542157), (1.0, 0.9396873330), (0.0, 0.4383172027)],
)
def test_value_of_the_fixture(alpha, expected, tile_size):
    actual = rows(alpha=alpha, tile_size=tile_size, **ONE_WAY).mean()
    assert actual == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("tile_size", TILE_SIZES)
def test_value_of_the_fixture_with_hard_negatives(tile_size):
    actual = rows(HARD_NEGATIVES, form="hard_negatives", tile_size=tile_size)
    assert actual.mean() == pytest.approx(0.8815254743, rel=1e-9)


@pytest.mark.parametrize(
    ("reduction", "plain"), [("sum", 0.7596004493), ("mean", 0.3798002246)]
)
def test_the_plain_part_may_have_two_directions(reduction, plain):
    actual = rows(direction_reduction=reduction).mean()
    expected = 0.9 * plain + 0.1 * 0.9396873330
    assert actual == pytest.approx(expected, rel=1e-9)


def test_the_document_centric_part_is_bounded_below():
    # Without the positive in its denominator it is -1.9462960233.
    assert (rows(alpha=1.0) >= 0).all()


@pytest.mark.parametrize(
    ("hard_negatives", "blocks"),
    [("all", ("QN", "PN")), ("own", ("QNown", "PNown"))],
)
def test_the_official_form_has_hard_negatives_on_both_sides(
    hard_negatives, blocks
):
    batch = testing.ReferenceBatch(QUERIES, DOCUMENTS, HARD_NEGATIVES)
    expected = 0.6 * batch.softmax("QP", blocks[0], temperature=0.05)
    expected += 0.4 * batch.softmax("PQ", blocks[1], temperature=0.05)
    actual = rows(
        HARD_NEGATIVES,
        form="hard_negatives",
        alpha=0.4,
        hard_negatives=hard_negatives,
    )
    np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-14)


def test_hard_negatives_join_the_plain_part_of_the_same_tower_form():
    batch = testing.ReferenceBatch(QUERIES, DOCUMENTS, HARD_NEGATIVES)
    expected = 0.9 * batch.softmax("QP", "QN", temperature=0.05)
    expected += 0.1 * batch.softmax("PP", temperature=0.05)
    actual = rows(HARD_NEGATIVES, **ONE_WAY)
    np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-14)


def test_without_the_document_centric_part_it_is_the_plain_loss():
    plain = InBatchSoftmaxLoss(temperature=0.05)
    np.testing.assert_allclose(
        rows(alpha=0.0),
        plain.per_example(QUERIES, DOCUMENTS),
        rtol=1e-12,
        atol=1e-14,
    )


@pytest.mark.parametrize("alpha", [-0.1, 1.1, float("nan"), "half", None])
def test_a_weight_outside_its_range_is_refused(alpha):
    message = r"`alpha` .* >= 0.0 and <= 1.0. Received: alpha="
    with pytest.raises(InvalidInputError, match=message):
        PairLoss(alpha=alpha)


def test_an_unknown_form_lists_the_known():
    message = "'same_tower', 'hard_negatives'.*form='paper'"
    with pytest.raises(InvalidInputError, match=message):
        PairLoss(form="paper")


OPTIONS = {
    "temperature": 0.2,
    "alpha": 0.5,
    "form": "hard_negatives",
    "bidirectional": False,
    "direction_reduction": "mean",
    "mask_duplicates": False,
    "margin": 0.1,
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
    loss = PairLoss(margin_position="outside", **{option: OPTIONS[option]})
    copy = PairLoss.from_config(loss.get_config())
    assert copy.get_config() == loss.get_config()
    assert getattr(copy, option) == OPTIONS[option]
    assert set(copy.get_config()) == {*OPTIONS, "margin_position"}
