"""Packed rows, and layers computed twice."""

import numpy as np
import pytest
import tensorflow as tf

from tf_samtone.models import Tower, projection_layer
from tf_samtone.models.dropout_seed import dropout_seed, folded_seed
from tf_samtone.text import pack_rows

LENGTHS = [1, 40, 17, 3, 64, 9, 30, 2]


@pytest.fixture(scope="module")
def encoder(make_tiny_encoder):
    return sharpened(make_tiny_encoder(dropout=0.0))


def sharpened(encoder):
    """Move the weights away from their start, where norms and bias are flat."""
    generator = np.random.default_rng(0)
    for weight in encoder.weights:
        noise = 0.2 * generator.normal(size=weight.shape)
        weight.assign(weight.numpy() + noise)
    return encoder


def texts():
    generator = np.random.default_rng(1)
    return tf.RaggedTensor.from_row_lengths(
        generator.integers(3, 300, sum(LENGTHS)).astype(np.int32), LENGTHS
    )


def padded():
    mask = tf.sequence_mask(LENGTHS, max(LENGTHS), tf.int32)
    return {"token_ids": texts().to_tensor(), "padding_mask": mask}


@pytest.mark.parametrize("row_length", [64, 100, 166])
def test_a_text_has_the_hidden_states_of_a_row_of_its_own(encoder, row_length):
    packed = pack_rows(texts(), row_length)
    hidden = encoder.encode_packed(packed).numpy()
    alone = encoder(padded()).numpy()
    segments = packed["segment_ids"].numpy()
    for i, length in enumerate(LENGTHS):
        np.testing.assert_allclose(
            hidden[segments == i + 1], alone[i, :length], rtol=0, atol=1e-5
        )


def test_packed_towers_give_the_embeddings_of_padded_ones(encoder):
    tower = Tower(encoder, projection_layer(8))
    np.testing.assert_allclose(
        tower(pack_rows(texts(), 70)), tower(padded()), rtol=0, atol=1e-5
    )


def test_a_row_of_padding_does_not_matter(encoder):
    tower = Tower(encoder, projection_layer(8))
    np.testing.assert_allclose(
        tower(pack_rows(texts(), 70, rows=9)),
        tower(pack_rows(texts(), 70)),
        rtol=0,
        atol=1e-6,
    )


def test_packed_gradients_are_those_of_padded_rows(encoder):
    tower = Tower(encoder, projection_layer(8))
    weights = [v.value for v in tower.trainable_variables]
    upstream = np.random.default_rng(2).normal(size=[len(LENGTHS), 8])

    def gradients(features):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tower(features) * upstream.astype(np.float32))
        return [tf.convert_to_tensor(g) for g in tape.gradient(loss, weights)]

    expected = gradients(padded())
    scale = max(np.abs(g).max() for g in expected)
    for a, e in zip(gradients(pack_rows(texts(), 70)), expected, strict=True):
        np.testing.assert_allclose(a, e, rtol=0, atol=1e-5 * scale)


def step(encoder, number=0):
    """Returns hidden states and gradients with dropout on."""
    weights = [v.value for v in encoder.trainable_variables]

    @tf.function(autograph=False)
    def run():
        with tf.GradientTape() as tape, dropout_seed(folded_seed(number)):
            hidden = encoder(padded(), training=True)
            loss = tf.reduce_sum(tf.math.sin(hidden))
        gradients = tape.gradient(loss, weights)
        return hidden, [tf.convert_to_tensor(g) for g in gradients]

    return run()


@pytest.mark.filterwarnings("ignore:Converting sparse IndexedSlices")
def test_rematerialised_layers_have_equal_gradients(make_tiny_encoder):
    plain = sharpened(make_tiny_encoder(dropout=0.3))
    twice = sharpened(make_tiny_encoder(dropout=0.3, rematerialize=True))
    hidden, gradients = step(plain)
    hidden_again, gradients_again = step(twice)
    # Sharpened weights amplify rounding, which differs between processors;
    # another mask of dropout would be off by a hundred times these bounds.
    np.testing.assert_allclose(hidden_again, hidden, rtol=0, atol=1e-4)
    scale = max(np.abs(g).max() for g in gradients)
    for a, e in zip(gradients_again, gradients, strict=True):
        np.testing.assert_allclose(a, e, rtol=0, atol=1e-4 * scale)
    other, _ = step(twice, number=1)
    assert np.abs(other - hidden).max() > 1e-2


@pytest.mark.filterwarnings("ignore:Converting sparse IndexedSlices")
def test_rematerialised_layers_are_computed_twice(make_tiny_encoder):
    def matmuls(encoder):
        weights = [v.value for v in encoder.trainable_variables]

        @tf.function(autograph=False)
        def run():
            with tf.GradientTape() as tape:
                hidden = encoder(padded(), training=True)
            return tape.gradient(hidden, weights)[-1]

        operations = run.get_concrete_function().graph.get_operations()
        return sum("MatMul" in o.type for o in operations)

    plain = matmuls(make_tiny_encoder(dropout=0.0))
    twice = matmuls(make_tiny_encoder(dropout=0.0, rematerialize=True))
    # A layer has nine products forwards and eighteen backwards.
    assert twice == plain + 2 * 9
