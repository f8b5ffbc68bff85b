"""Pairs."""

import dataclasses

import pytest

from tf_samtone.data import Pair


def test_ids_are_optional():
    pair = Pair("a query", "a document")

    assert (pair.query_id, pair.document_id) == (None, None)


def test_a_pair_does_not_change():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Pair("a", "b").query = "c"
