"""One tower."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tf_samtone.models import Tower, projection_layer

INPUTS = {
    "token_ids": np.array([[5, 9, 1, 0], [7, 1, 0, 0]], np.int32),
    "padding_mask": np.array([[1, 1, 1, 0], [1, 1, 0, 0]], np.int32),
}


@pytest.fixture
def tower(make_tiny_encoder):
    return Tower(make_tiny_encoder(), projection_layer(8), name="tower")


def test_it_pools_projects_and_normalises_in_this_order(tower):
    hidden = tower.encoder(INPUTS).numpy().astype(np.float64)
    pooled = [hidden[0, :3].mean(0), hidden[1, :2].mean(0)]
    projected = pooled @ tower.projection.kernel.numpy().astype(np.float64)
    square = (projected**2).sum(-1, keepdims=True)
    expected = projected / np.sqrt(square + 1e-6)
    np.testing.assert_allclose(tower(INPUTS), expected, rtol=0, atol=1e-6)


def test_dim_is_the_width_of_the_embeddings(tower):
    assert tower.dim == 8
    assert tower(INPUTS).shape == (2, 8)
    shapes = {name: value.shape for name, value in INPUTS.items()}
    assert tower.compute_output_shape(shapes) == (2, 8)


def test_inputs_besides_the_token_features_are_ignored(tower):
    extra = {**INPUTS, "text_ids": np.array([1, 2])}
    np.testing.assert_array_equal(tower(extra), tower(INPUTS))


def test_a_text_without_tokens_gives_a_zero_vector(tower):
    empty = {name: 0 * value for name, value in INPUTS.items()}
    np.testing.assert_array_equal(tower(empty), np.zeros([2, 8]))


def test_the_embedding_is_float32_in_mixed_precision(make_tiny_encoder):
    encoder = make_tiny_encoder(dtype="mixed_bfloat16")
    tower = Tower(encoder, projection_layer(8))
    outputs = tower(INPUTS)
    assert outputs.dtype == tf.float32
    # bfloat16 would be off by 2**-9.
    lengths = np.linalg.norm(outputs.numpy().astype(np.float64), axis=-1)
    np.testing.assert_allclose(lengths, np.ones(2), rtol=1e-5)


def test_the_projection_is_float32_under_any_global_policy():
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        layer = projection_layer(4)
    finally:
        keras.config.set_dtype_policy("float32")
    assert layer.compute_dtype == "float32"


def test_the_projection_has_no_bias_and_keeps_its_width():
    layer = projection_layer(4, name="mine")
    layer.build((None, 3))
    assert [w.shape for w in layer.weights] == [(3, 4)]
    assert layer.name == "mine"


def test_training_reaches_the_dropout_of_the_encoder(tower):
    noise = tower(INPUTS, training=True) - tower(INPUTS, training=False)
    assert np.abs(noise).max() > 1e-3


def test_serialization_restores_encoder_and_projection(tower):
    copy = keras.saving.deserialize_keras_object(
        keras.saving.serialize_keras_object(tower)
    )
    copy.set_weights(tower.get_weights())
    np.testing.assert_array_equal(copy(INPUTS), tower(INPUTS))
    assert copy.name == "tower"
