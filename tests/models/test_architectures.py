"""What the two towers of each architecture share."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tf_samtone.errors import InvalidInputError
from tf_samtone.losses import SamToNeLoss
from tf_samtone.models import ARCHITECTURES, build_towers, projection_layer

INPUTS = {
    "token_ids": np.array([[5, 9, 1], [7, 8, 1]], np.int32),
    "padding_mask": np.ones([2, 3], np.int32),
}
# The parts of a tower, and the architectures in which both sides share them.
PARTS = {
    "embedding": lambda tower: tower.encoder.token_embedding.embeddings,
    "position bias": lambda tower: (
        tower.encoder.position_bias.relative_attention_bias
    ),
    "layer": lambda tower: (
        tower.encoder.encoder_transformer_layers[1].output_projector.kernel
    ),
    "norm": lambda tower: tower.encoder.encoder_layer_norm.weight,
    "projection": lambda tower: tower.projection.kernel,
}
SHARED = {
    "sde": set(PARTS),
    "ade": set(),
    "ade-spl": {"projection"},
    "ade-ste": {"embedding"},
    "ade-fte": {"embedding"},
}


@pytest.fixture(params=ARCHITECTURES)
def architecture(request):
    return request.param


def test_every_architecture_is_covered_here():
    assert set(SHARED) == set(ARCHITECTURES)


@pytest.mark.parametrize("part", PARTS)
def test_a_changed_weight_acts_on_the_other_side_if_shared(
    make_tiny_encoder, architecture, part
):
    query_tower, document_tower = build_towers(
        make_tiny_encoder(), architecture, 8
    )
    before = document_tower(INPUTS).numpy()
    weight = PARTS[part](query_tower)
    noise = np.random.default_rng(0).normal(size=weight.shape)
    weight.assign(weight.numpy() + noise)
    change = np.abs(document_tower(INPUTS).numpy() - before).max()
    if part in SHARED[architecture]:
        assert change > 1e-3
    else:
        assert change == 0


def test_both_towers_start_equal(make_tiny_encoder, architecture):
    query_tower, document_tower = build_towers(
        make_tiny_encoder(), architecture, 8
    )
    np.testing.assert_array_equal(document_tower(INPUTS), query_tower(INPUTS))


def test_the_query_tower_keeps_the_given_encoder(
    make_tiny_encoder, architecture
):
    encoder = make_tiny_encoder()
    query_tower, _ = build_towers(encoder, architecture, 8)
    assert query_tower.encoder is encoder


def test_only_the_embedder_of_ade_fte_is_frozen(
    make_tiny_dual_encoder, architecture
):
    model = make_tiny_dual_encoder(architecture)
    frozen = [weight.path for weight in model.non_trainable_weights]
    expected = ["token_embedding/embeddings"]
    assert frozen == (expected if architecture == "ade-fte" else [])


def test_a_training_step_moves_what_is_not_frozen(
    make_tiny_dual_encoder, architecture
):
    model = make_tiny_dual_encoder(architecture)
    model.compile(
        keras.optimizers.SGD(0.1),
        SamToNeLoss(temperature=0.1),
        run_eagerly=True,
    )
    texts = ["a cat reads", "the small dog", "an old teacher", "the engine"]
    before = [weight.numpy() for weight in model.weights]
    pairs = tf.data.Dataset.from_tensor_slices((texts, texts[::-1])).batch(4)
    model.fit(pairs, verbose=0)
    unmoved = {
        weight.path
        for weight, old in zip(model.weights, before, strict=True)
        if np.array_equal(weight.numpy(), old)
    }
    expected = {"token_embedding/embeddings"}
    assert unmoved == (expected if architecture == "ade-fte" else set())


def test_an_unknown_architecture_lists_the_known(make_tiny_encoder):
    with pytest.raises(InvalidInputError, match="'ade-fte'.*'siamese'"):
        build_towers(make_tiny_encoder(), "siamese")


@pytest.mark.parametrize("width", [-3, 8.0, "8", True, None])
def test_a_width_that_is_no_int_from_0_is_refused(make_tiny_encoder, width):
    with pytest.raises(InvalidInputError, match="`projection_dim`, an int >="):
        build_towers(make_tiny_encoder(), "sde", width)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_width_0_leaves_the_projection_out(make_tiny_encoder, architecture):
    towers = build_towers(make_tiny_encoder(), architecture, 0)
    assert [tower.projection for tower in towers] == [None, None]
    assert [tower.dim for tower in towers] == [16, 16]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_given_projection_reaches_both_towers(
    make_tiny_encoder, architecture
):
    projection = projection_layer(8, use_bias=True, activation="tanh")
    projection.build((None, 16))
    projection.bias.assign(np.arange(8.0))
    towers = build_towers(
        make_tiny_encoder(), architecture, projection=projection
    )
    for tower in towers:
        assert tower.projection.activation is keras.activations.tanh
        np.testing.assert_array_equal(tower.projection.bias, np.arange(8.0))
        np.testing.assert_array_equal(
            tower.projection.kernel, projection.kernel
        )
    is_shared = towers[0].projection is towers[1].projection
    assert is_shared == (architecture in ("sde", "ade-spl"))
