"""Tests of dual encoders that change their depth."""

import keras
import numpy as np
import pytest
from data_files.make_tiny_vocabulary import TINY_VOCABULARY

from tf_samtone.models import DualEncoder, T5Encoder
from tf_samtone.text import load_tokenizer
from tf_samtone.trainers.layer_growth import with_num_layers

TEXTS = ["a small text", "another one", ""]


def make_model(num_layers, architecture="sde"):
    keras.utils.set_random_seed(0)
    tokenizer = load_tokenizer(TINY_VOCABULARY)
    encoder = T5Encoder(
        vocabulary_size=tokenizer.vocabulary_size(),
        num_layers=num_layers,
        num_heads=2,
        hidden_dim=8,
        intermediate_dim=16,
        key_value_dim=4,
        dropout=0.0,
    )
    return DualEncoder.from_encoder(
        encoder,
        tokenizer,
        architecture=architecture,
        projection_dim=6,
        query_length=8,
        document_length=12,
    )


@pytest.mark.parametrize("before", [0, 1])
def test_added_layers_of_scale_zero_change_no_embedding(before):
    model = make_model(before)

    grown = with_num_layers(model, 2)

    assert grown.query_tower.encoder.num_layers == 2
    np.testing.assert_allclose(
        grown.encode_documents(TEXTS), model.encode_documents(TEXTS), atol=1e-5
    )


def test_first_layers_meet_embeddings_of_unit_size():
    model = make_model(0)
    embedding = model.query_tower.encoder.token_embedding.embeddings
    embedding.assign(embedding * 0.1)

    grown = with_num_layers(model, 1)

    table = grown.query_tower.encoder.token_embedding.get_weights()[0]
    assert np.sqrt((table**2).mean()) == pytest.approx(1.0, abs=1e-5)
    np.testing.assert_allclose(
        grown.encode_queries(TEXTS), model.encode_queries(TEXTS), atol=1e-3
    )


def test_two_towers_grow_each_with_its_own_weights():
    model = make_model(1, architecture="ade")
    embedding = model.document_tower.encoder.token_embedding.embeddings
    embedding.assign(embedding * -1.0)

    grown = with_num_layers(model, 2)

    assert (
        np.abs(
            grown.encode_queries(TEXTS) - grown.encode_documents(TEXTS)
        ).max()
        > 0.01
    )
    for verb in ("encode_queries", "encode_documents"):
        np.testing.assert_array_equal(
            getattr(grown, verb)(TEXTS), getattr(model, verb)(TEXTS)
        )


def test_layers_can_be_taken_away():
    model = make_model(2)

    shallow = with_num_layers(model, 0)

    table = model.query_tower.encoder.token_embedding.get_weights()[0]
    ids = model.query_preprocessor(["a small text"])["token_ids"].numpy()[0]
    tokens = table[ids[ids > 0]].astype("float64")
    # RMSNorm of each token, mean, projection, unit length.
    normed = tokens / np.sqrt((tokens**2).mean(1, keepdims=True) + 1e-6)
    vector = normed.mean(0) @ model.query_tower.projection.get_weights()[0]
    expected = vector / np.linalg.norm(vector)
    found = shallow.encode_queries(["a small text"])[0]
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_without_layers_the_unused_position_bias_is_not_trained():
    paths = [
        [weight.path for weight in m.trainable_variables]
        for m in (with_num_layers(make_model(1), 0), make_model(1))
    ]

    assert "position_bias/relative_attention_bias" not in paths[0]
    assert "position_bias/relative_attention_bias" in paths[1]


def test_added_layers_are_trained():
    grown = with_num_layers(with_num_layers(make_model(1), 0), 1)

    assert len(grown.trainable_variables) == len(
        make_model(1).trainable_variables
    )


def test_larger_residual_scale_changes_embeddings():
    model = make_model(1)

    grown = with_num_layers(model, 2, residual_init_scale=1.0)

    difference = grown.encode_queries(TEXTS) - model.encode_queries(TEXTS)
    assert np.abs(difference).max() > 1e-3


def test_the_same_depth_is_the_same_model():
    model = make_model(1)

    assert with_num_layers(model, 1) is model
