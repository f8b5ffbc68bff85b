"""The T5 encoder as a Keras model; its values are in the parity tests."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tf_samtone.errors import InvalidInputError
from tf_samtone.models import T5Encoder

OPTIONS = {
    "vocabulary_size": 50,
    "num_layers": 3,
    "num_heads": 3,
    "hidden_dim": 24,
    "intermediate_dim": 20,
    "key_value_dim": 5,
    "dropout": 0.3,
    "activation": "relu",
    "use_gated_activation": False,
    "layer_norm_epsilon": 1e-5,
}


def random_inputs(lengths, seq, seed=0):
    token_ids = np.random.default_rng(seed).integers(3, 50, [len(lengths), seq])
    mask = np.arange(seq) < np.array(lengths)[:, None]
    return {
        "token_ids": np.where(mask, token_ids, 0).astype(np.int32),
        "padding_mask": mask.astype(np.int32),
    }


def sharpen(encoder, seed=0):
    """Move the weights away from their start, where norms and bias are flat."""
    generator = np.random.default_rng(seed)
    for weight in encoder.weights:
        noise = 0.2 * generator.normal(size=weight.shape)
        weight.assign(weight.numpy() + noise)
    return encoder


@pytest.mark.parametrize("option", OPTIONS)
def test_the_config_keeps_every_option(make_tiny_encoder, option):
    encoder = make_tiny_encoder(**{option: OPTIONS[option]})
    copy = T5Encoder.from_config(encoder.get_config())
    assert copy.get_config() == encoder.get_config()
    assert getattr(copy, option) == OPTIONS[option]
    assert [w.shape for w in copy.weights] == [w.shape for w in encoder.weights]


def test_serialization_restores_the_class_and_the_dtype(make_tiny_encoder):
    encoder = make_tiny_encoder(dtype="mixed_bfloat16")
    copy = keras.saving.deserialize_keras_object(
        keras.saving.serialize_keras_object(encoder)
    )
    assert type(copy) is T5Encoder
    assert copy.dtype_policy.name == "mixed_bfloat16"


def test_names_of_the_weights_are_those_of_keras_hub(make_tiny_encoder):
    paths = {weight.path for weight in make_tiny_encoder(name="t5").weights}
    layer = "transformer_encoder_layer_1"
    assert {
        "token_embedding/embeddings",
        f"{layer}/self_attention/query_projector/kernel",
        f"{layer}/self_attention_layer_norm/weight",
        f"{layer}/input_projector/kernel",
        f"{layer}/gate_projector/kernel",
        f"{layer}/output_projector/kernel",
        f"{layer}/layer_norm/weight",
        "encoder_output_layer_norm/weight",
    } <= paths


@pytest.mark.parametrize("dtype", ["float16", "mixed_float16"])
def test_float16_is_refused(make_tiny_encoder, dtype):
    with pytest.raises(InvalidInputError, match="65504.*mixed_bfloat16"):
        make_tiny_encoder(dtype=dtype)


def test_float16_as_the_global_policy_is_refused(make_tiny_encoder):
    keras.config.set_dtype_policy("mixed_float16")
    try:
        with pytest.raises(InvalidInputError, match="mixed_bfloat16"):
            make_tiny_encoder()
    finally:
        keras.config.set_dtype_policy("float32")


def test_an_unknown_activation_is_refused(make_tiny_encoder):
    with pytest.raises(InvalidInputError, match="activation='swish'"):
        make_tiny_encoder(activation="swish")


def test_the_id_under_the_padding_does_not_matter(make_tiny_encoder):
    encoder = sharpen(make_tiny_encoder(vocabulary_size=50))
    inputs = random_inputs([9, 4, 1], 9)
    mask = inputs["padding_mask"]
    expected = encoder(inputs).numpy()
    inputs["token_ids"] = np.where(mask > 0, inputs["token_ids"], 7)
    actual = encoder(inputs).numpy()
    np.testing.assert_array_equal(actual[mask > 0], expected[mask > 0])


@pytest.mark.parametrize("seq", [10, 40, 200])
def test_the_length_of_the_padding_does_not_matter(make_tiny_encoder, seq):
    encoder = sharpen(make_tiny_encoder(vocabulary_size=50))
    inputs = random_inputs([9, 4], 9)
    mask = inputs["padding_mask"]
    padded = {
        name: np.pad(value, [(0, 0), (0, seq - 9)])
        for name, value in inputs.items()
    }
    expected = encoder(inputs).numpy()
    actual = encoder(padded).numpy()[:, :9]
    scale = np.abs(expected).max()
    np.testing.assert_allclose(
        actual[mask > 0], expected[mask > 0], rtol=0, atol=1e-5 * scale
    )


def test_the_order_of_the_tokens_matters(make_tiny_encoder):
    encoder = sharpen(make_tiny_encoder(vocabulary_size=50))
    inputs = random_inputs([9], 9)
    turned = {**inputs, "token_ids": inputs["token_ids"][:, ::-1].copy()}
    difference = encoder(turned).numpy()[:, ::-1] - encoder(inputs).numpy()
    assert np.abs(difference).max() > 1e-2


def test_bfloat16_agrees_with_float32(make_tiny_encoder):
    exact = sharpen(make_tiny_encoder(vocabulary_size=50))
    mixed = make_tiny_encoder(vocabulary_size=50, dtype="mixed_bfloat16")
    mixed.set_weights(exact.get_weights())
    inputs = random_inputs([30, 12, 3], 30)
    tokens = inputs["padding_mask"] > 0
    outputs = mixed(inputs)
    assert outputs.dtype == tf.bfloat16
    a = exact(inputs).numpy()[tokens].astype(np.float64)
    b = tf.cast(outputs, tf.float32).numpy()[tokens].astype(np.float64)
    lengths = np.linalg.norm(a, axis=-1) * np.linalg.norm(b, axis=-1)
    assert ((a * b).sum(-1) / lengths).min() >= 0.999


def test_weights_stay_float32_in_mixed_precision(make_tiny_encoder):
    encoder = make_tiny_encoder(dtype="mixed_bfloat16")
    assert {weight.dtype for weight in encoder.weights} == {"float32"}


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
def test_hidden_states_of_1e5_are_finite(make_tiny_encoder, dtype):
    encoder = make_tiny_encoder(vocabulary_size=50, dtype=dtype)
    table = encoder.token_embedding.embeddings
    table.assign(1e5 * table.numpy())
    assert np.isfinite(encoder(random_inputs([9, 4], 9)).numpy()).all()


def test_dropout_acts_in_training_only(make_tiny_encoder):
    encoder = make_tiny_encoder(vocabulary_size=50, dropout=0.5)
    inputs = random_inputs([9, 4], 9)
    first, again = (encoder(inputs, training=False).numpy() for _ in range(2))
    np.testing.assert_array_equal(first, again)
    noisy = encoder(inputs, training=True).numpy()
    assert np.abs(noisy - first).max() > 1e-2


def test_every_weight_gets_a_gradient(make_tiny_encoder):
    encoder = make_tiny_encoder(vocabulary_size=50)
    with tf.GradientTape() as tape:
        outputs = encoder(random_inputs([9, 4], 9), training=False)
        total = tf.reduce_sum(outputs * outputs[:, ::-1])
    variables = [weight.value for weight in encoder.trainable_weights]
    gradients = tape.gradient(total, variables)
    sizes = [tf.norm(tf.convert_to_tensor(g)).numpy() for g in gradients]
    assert min(sizes) > 0


def test_a_given_embedding_layer_is_shared(make_tiny_encoder):
    first = make_tiny_encoder(1)
    second = make_tiny_encoder(2, token_embedding=first.token_embedding)
    assert second.token_embedding is first.token_embedding
    assert "token_embedding" not in second.get_config()
