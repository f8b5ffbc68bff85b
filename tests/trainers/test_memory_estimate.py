"""Tests of the memory estimate, term by term."""

import dataclasses

import keras
import numpy as np
import pytest

from tf_samtone.errors import InvalidInputError
from tf_samtone.models import T5Encoder
from tf_samtone.models.architectures import ARCHITECTURES, build_towers
from tf_samtone.models.encoder_size import EncoderSize
from tf_samtone.models.model_sizes import find_model_size
from tf_samtone.optimizers import Adafactor
from tf_samtone.trainers.memory_estimate import MemoryEstimate
from tf_samtone.trainers.training_load import TrainingLoad

# Wide enough for some matrices to be factored and others not.
SIZE = EncoderSize(
    vocabulary_size=300,
    num_layers=2,
    num_heads=2,
    hidden_dim=128,
    intermediate_dim=160,
    key_value_dim=32,
)
# One layer of hidden width 10, heads of 6 in all, feed-forward of 20.
TINY = EncoderSize(
    vocabulary_size=30,
    num_layers=1,
    num_heads=2,
    hidden_dim=10,
    intermediate_dim=20,
    key_value_dim=3,
)


def _estimate(size=SIZE, **load):
    load = {"batch_size": 8, "projection_dim": 130, **load}
    return MemoryEstimate.of(size, TrainingLoad(**load))


def _trainable(architecture="sde"):
    """The variables of real towers of that size."""
    encoder = T5Encoder(**dataclasses.asdict(SIZE))
    variables = {
        id(variable): variable
        for tower in build_towers(encoder, architecture, 130)
        for variable in tower.weights
    }
    return list(variables.values())


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_weights_are_those_of_the_model(architecture):
    weights = sum(v.numpy().nbytes for v in _trainable(architecture))
    assert _estimate(architecture=architecture).weights == weights


@pytest.mark.parametrize(
    ("name", "make"),
    [("adafactor", Adafactor), ("adamw", keras.optimizers.AdamW)],
    ids=["adafactor", "adamw"],
)
def test_optimizer_state_is_that_of_the_optimizer(name, make):
    optimizer = make(1e-3)
    optimizer.build(_trainable())
    # The step and the learning rate are scalars.
    slots = [v for v in optimizer.variables if v.shape != ()]
    expected = sum(v.numpy().nbytes for v in slots)
    assert _estimate(optimizer=name).optimizer == expected


@pytest.mark.parametrize(
    ("name", "layers", "hidden", "wide", "heads"),
    [
        ("small", 8, 512, 1024, 6),
        ("base", 12, 768, 2048, 12),
        ("large", 24, 1024, 2816, 16),
        ("xl", 24, 2048, 5120, 32),
        ("xxl", 24, 4096, 10240, 64),
    ],
    ids=["small", "base", "large", "xl", "xxl"],
)
def test_sizes_have_the_weights_of_their_matrices(
    name, layers, hidden, wide, heads
):
    matrices = 32128 * hidden
    matrices += layers * (4 * hidden * heads * 64 + 3 * hidden * wide)
    # Two norms a layer and one at the end, and 32 position buckets.
    rest = (2 * layers + 1) * hidden + 32 * heads
    size = find_model_size(f"t5_1.1_{name}").encoder
    assert size.parameters == matrices + rest


def test_a_size_is_read_off_an_encoder():
    encoder = T5Encoder(**dataclasses.asdict(SIZE))
    assert EncoderSize.of_encoder(encoder) == SIZE


def test_activations_of_a_layer_are_those_derived_by_hand():
    # Per place in float32, of width d = 10, i = 6, f = 20, H L = 2 * 5:
    # two norms 2 * 3 d, q k v and output 4 i, softmax 10, gated GELU 7 f
    # = 60 + 24 + 10 + 140 = 234 values; the last norm 3 d = 30.
    estimate = _estimate(TINY, batch_size=4, query_length=5, document_length=5)
    assert estimate.activations == 4 * (5 + 5) * (234 + 30) * 4


def test_bfloat16_halves_all_but_norms_and_softmax():
    # Bytes: a norm 10 * (2 + 2 + 4 + 4), of which there are three; q, k, v and
    # output 48; softmax 10 * (4 + 2); feed-forward 280.
    estimate = _estimate(
        TINY,
        batch_size=4,
        query_length=5,
        document_length=5,
        dtype="mixed_bfloat16",
    )
    assert estimate.activations == 4 * (5 + 5) * (360 + 48 + 60 + 280)


def test_rematerialised_layers_keep_their_inputs():
    deep = dataclasses.replace(SIZE, num_layers=50)
    shallow = dataclasses.replace(SIZE, num_layers=40)
    grown = [
        _estimate(size, rematerialize=True).activations
        for size in (deep, shallow)
    ]
    places = 8 * (64 + 256)
    assert grown[0] - grown[1] == 10 * places * 128 * 4


def test_a_gradient_cache_holds_one_micro_batch():
    cached = _estimate(batch_size=1024, gradient_cache_batch_size=32)
    assert cached.activations == _estimate(batch_size=32).activations


def test_devices_share_the_batch_but_not_the_weights():
    one, four = _estimate(batch_size=32), _estimate(batch_size=32, devices=4)
    assert four.activations == one.activations // 4
    assert four.weights == one.weights
    # The all-reduce's result beside each device's own gradients.
    assert four.gradients == 2 * one.gradients


def test_packed_rows_count_by_their_share():
    half = {"query_rows": 0.5, "document_rows": 0.5}
    assert _estimate(**half).activations == _estimate().activations // 2


def test_hard_negatives_count_as_documents():
    alone = _estimate(query_length=1, document_length=100)
    three = _estimate(query_length=1, document_length=100, hard_negatives=2)
    ratio = three.activations / alone.activations
    assert ratio == pytest.approx(3, rel=0.02)


def test_embeddings_grow_with_the_batch():
    # Queries and documents of 130 numbers, six times on one device.
    assert _estimate(batch_size=4096).embeddings == 4096 * 2 * 130 * 4 * 6


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "batch_size=0"),
        ({"dtype": "float16"}, "dtype='float16'"),
        ({"optimizer": "sgd"}, "optimizer='sgd'"),
        ({"devices": 3}, "devices=3"),
        ({"gradient_cache_batch_size": 3}, "gradient_cache_batch_size=3"),
    ],
    ids=["batch", "dtype", "optimizer", "devices", "micro-batch"],
)
def test_an_impossible_load_is_refused(options, message):
    with pytest.raises(InvalidInputError, match=message):
        TrainingLoad(**{"batch_size": 8, **options})


def test_the_total_is_the_sum_of_the_terms():
    estimate = _estimate()
    assert estimate.total == np.sum(list(dataclasses.astuple(estimate)))
