"""The registry of published sizes."""

import dataclasses

import pytest

from tf_samtone.errors import InvalidInputError
from tf_samtone.models import T5Encoder, find_model_size
from tf_samtone.models.model_sizes import MODEL_SIZES


@pytest.mark.parametrize(
    ("name", "millions"),
    [("gtr_base", 110), ("gtr_large", 335), ("gtr_xl", 1240)],
)
def test_encoders_of_gtr_have_the_published_number_of_weights(name, millions):
    # Ni et al., 2021, figures of three digits.
    parameters = find_model_size(name).encoder.parameters
    assert round(parameters / 1e6) == pytest.approx(millions, abs=1)


def test_the_largest_has_the_published_number_without_its_embeddings():
    # "4.8B": 4.865e9 with the embeddings (32128 x 1024), 4.832e9 without.
    encoder = find_model_size("gtr_xxl").encoder
    without = encoder.parameters - 32128 * 1024
    assert round(without / 1e9, 1) == 4.8


@pytest.mark.parametrize(
    ("name", "published"),
    [
        ("t5_small", 60_506_624),
        ("t5_base", 222_903_552),
        ("t5_large", 737_668_096),
        ("t5_xl", 2_851_598_336),
        ("t5_xxl", 11_307_321_344),
    ],
)
def test_with_their_decoder_they_are_the_published_t5(name, published):
    # Of the checkpoints t5-small to t5-11b, whose tables are shared.
    encoder = find_model_size(name).encoder
    cross_attention = 4 * encoder.hidden_dim * encoder.inner_dim
    decoder = encoder.parameters - 32128 * encoder.hidden_dim
    decoder += encoder.num_layers * (cross_attention + encoder.hidden_dim)
    assert encoder.parameters + decoder == published


@pytest.mark.parametrize(
    ("alias", "name"), [("t5_3b", "t5_xl"), ("t5_11b", "t5_xxl")]
)
def test_the_two_largest_have_a_second_name(alias, name):
    assert find_model_size(alias) is MODEL_SIZES[name]


def test_every_size_is_projected_to_768():
    assert {size.projection_dim for size in MODEL_SIZES.values()} == {768}


def test_training_is_that_of_the_papers():
    samtone = find_model_size("t5_1.1_large").paper
    assert (samtone.batch_size, samtone.stages) == (
        512,
        {"fine-tuning": 20_000},
    )
    gtr = find_model_size("gtr_xl").paper
    assert (gtr.batch_size, gtr.stages) == (
        2048,
        {"pre-training": 800_000, "fine-tuning": 20_000},
    )
    for paper in (samtone, gtr):
        assert (paper.learning_rate, paper.temperature) == (1e-3, 0.01)


def test_an_unknown_size_lists_the_known():
    with pytest.raises(InvalidInputError, match=r"'gtr_xxl'.*'t5_3b'.*'huge'"):
        find_model_size("huge")


def test_a_size_makes_an_encoder(make_tiny_encoder):
    size = dataclasses.replace(
        find_model_size("t5_small").encoder,
        vocabulary_size=32,
        num_layers=1,
        hidden_dim=8,
        intermediate_dim=8,
    )
    encoder = T5Encoder(**dataclasses.asdict(size))
    assert encoder.count_params() == size.parameters
