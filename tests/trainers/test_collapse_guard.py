"""Tests of the collapse guard."""

import keras
import numpy as np
import pytest

from tf_samtone.errors import CollapseError
from tf_samtone.trainers import CollapseGuard


class _Encoder(keras.Model):
    """Stands in for a dual encoder with given document embeddings."""

    def __init__(self, embeddings):
        super().__init__()
        self._rows = embeddings

    def encode_documents(self, documents):
        return self._rows[: len(documents)]


def _guard(embeddings, total_steps=10):
    guard = CollapseGuard([f"text {i}" for i in range(20)], total_steps)
    guard.set_model(_Encoder(np.asarray(embeddings, np.float32)))
    return guard


def test_one_point_stops_the_run_and_says_what_to_change():
    guard = _guard(np.ones((20, 4)))
    with pytest.raises(CollapseError, match="Lower the learning rate"):
        guard.on_train_batch_end(4)


def test_spread_embeddings_pass():
    _guard(np.eye(20)).on_train_batch_end(4)


def test_embeddings_that_are_not_finite_stop_the_run():
    with pytest.raises(CollapseError, match="nan"):
        _guard(np.full((20, 4), np.nan)).on_train_batch_end(9)


def test_other_steps_are_not_checked():
    _guard(np.ones((20, 4))).on_train_batch_end(5)


def test_one_document_that_answers_many_questions_is_looked_at_once():
    guard = CollapseGuard(["same"] * 9 + ["other"], total_steps=2)
    assert guard.probe == ["same", "other"]
