"""The narrow loader of tensorflow-ranking's metrics."""

import importlib.util
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

from tf_samtone.errors import MissingDependencyError
from tf_samtone.evaluation import load_ranking_metrics

LABELS = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]], np.float32)
SCORES = np.array([[3.0, 2.0, 1.0], [3.0, 2.0, 1.0]], np.float32)


@pytest.fixture
def not_loaded(monkeypatch):
    """Forget the modules of tensorflow-ranking for one test."""
    for name in [n for n in sys.modules if n.startswith("tensorflow_ranking")]:
        monkeypatch.delitem(sys.modules, name)


def test_mrr_and_precision_are_right():
    module = load_ranking_metrics()
    mrr = module.MRRMetric(topn=10)
    precision = module.PrecisionMetric(topn=1)

    mrr.update_state(LABELS, SCORES)
    precision.update_state(LABELS, SCORES)

    # Ranks 2 and 1 of the relevant documents.
    assert float(mrr.result()) == pytest.approx((1 / 2 + 1) / 2)
    assert float(precision.result()) == pytest.approx(1 / 2)


def test_metrics_run_inside_of_fit():
    module = load_ranking_metrics()
    model = keras.Sequential([keras.layers.Dense(3, kernel_initializer="ones")])
    model.compile("sgd", "mse", metrics=[module.MRRMetric(name="mrr")])
    dataset = tf.data.Dataset.from_tensors((SCORES, LABELS))

    history = model.fit(dataset, shuffle=False, verbose=0)

    # All scores tie, so the value is open; that there is one is the point.
    assert 0 < history.history["mrr"][0] <= 1


def test_it_is_loaded_once(not_loaded):
    assert load_ranking_metrics() is load_ranking_metrics()


def test_the_error_of_the_whole_package_stays_readable(not_loaded):
    load_ranking_metrics()

    # tf.estimator is gone since TensorFlow 2.16; bare parents that stayed
    # behind would hide this.
    with pytest.raises(ImportError, match="estimator"):
        importlib.import_module("tensorflow_ranking")


def test_a_missing_package_is_named(not_loaded, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)

    with pytest.raises(MissingDependencyError, match="tensorflow-ranking"):
        load_ranking_metrics()


def test_a_broken_package_keeps_its_reason_and_no_bare_parents(
    not_loaded, monkeypatch
):
    # None in sys.modules makes the import fail.
    monkeypatch.setitem(
        sys.modules, "tensorflow_ranking.python.metrics_impl", None
    )

    with pytest.raises(MissingDependencyError, match="metrics_impl"):
        load_ranking_metrics()

    assert "tensorflow_ranking" not in sys.modules
