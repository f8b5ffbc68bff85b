"""The weight of a fusion is chosen on judged queries."""

import pytest

from tf_samtone.errors import InvalidInputError
from tf_samtone.evaluation import tune_weight

# Normalised: A gives a 1, b 0.4, c 0; B gives c 1, b 0.8, a 0.
RUN_A = {"q": {"a": 10.0, "b": 4.0, "c": 0.0}}
RUN_B = {"q": {"c": 5.0, "b": 4.0, "a": 0.0}}


@pytest.mark.parametrize(
    ("relevant", "expected"),
    [
        # a wins over b for w > 0.4 w + 0.8 (1 - w), that is w > 0.571.
        ("a", 0.6),
        # b wins over c for 0.4 w + 0.8 (1 - w) > 1 - w, that is w > 1/3.
        ("b", 0.35),
        ("c", 0.0),
    ],
)
def test_the_first_best_weight_is_returned(relevant, expected):
    weight = tune_weight(RUN_A, RUN_B, {"q": {relevant: 1}})

    assert weight == pytest.approx(expected)


def test_only_the_given_weights_are_tried():
    weight = tune_weight(RUN_A, RUN_B, {"q": {"a": 1}}, weights=[0.2, 0.9, 1])

    assert weight == 0.9


def test_the_metric_decides():
    qrels = {"q": {"a": 1, "b": 1}}

    # a and b are the first two from w > 5/7: 0.8 (1 - w) + 0.4 w > 1 - w
    # holds from 1/3, and w > 1 - w from 1/2; for P@1 b alone suffices.
    assert tune_weight(RUN_A, RUN_B, qrels, metric="P@1") == 0.35
    assert tune_weight(RUN_A, RUN_B, qrels, metric="P@2") == 0.55


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"weights": []}, "at least one weight"),
        ({"weights": [0.5, 2]}, "weight=2"),
        ({"metric": "accuracy"}, "metric='accuracy'"),
        ({"normalisation": "rank"}, "normalisation='rank'"),
    ],
)
def test_unusable_arguments_are_refused(arguments, message):
    with pytest.raises(InvalidInputError, match=message):
        tune_weight(RUN_A, RUN_B, {"q": {"a": 1}}, **arguments)
