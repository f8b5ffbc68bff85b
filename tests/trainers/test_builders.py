"""Tests of building live objects from recipe parts."""

import dataclasses

import keras
import keras_hub
import numpy as np
import pytest

from tf_samtone.data import Pair
from tf_samtone.errors import InvalidInputError
from tf_samtone.losses import (
    GTELoss,
    InBatchSoftmaxLoss,
    PairLoss,
    SamToNeLoss,
)
from tf_samtone.optimizers import Adafactor
from tf_samtone.text import fingerprint, load_tokenizer
from tf_samtone.trainers import (
    LossRecipe,
    ModelRecipe,
    OptimizerRecipe,
    StageRecipe,
    TrainingRecipe,
)
from tf_samtone.trainers.builders import (
    build_dataset,
    build_loss,
    build_model,
    build_optimizer,
)


def test_every_option_reaches_the_loss():
    recipe = LossRecipe(
        temperature=0.5,
        same_tower="both",
        direction_reduction="mean",
        mask_duplicates=False,
    )
    config = build_loss(recipe).get_config()
    assert {
        k: config[k] for k in dataclasses.asdict(recipe) if k != "name"
    } == {k: v for k, v in dataclasses.asdict(recipe).items() if k != "name"}


def test_the_name_chooses_the_loss():
    names = ("samtone", "in_batch_softmax", "pair", "gte")
    losses = [build_loss(LossRecipe(name=name)) for name in names]
    assert [type(loss) for loss in losses] == [
        SamToNeLoss,
        InBatchSoftmaxLoss,
        PairLoss,
        GTELoss,
    ]


def test_the_learning_rate_warms_up_and_decays_to_zero():
    stage = StageRecipe(
        steps=10, batch_size=2, learning_rate=0.5, warmup_steps=4
    )
    optimizer = build_optimizer(OptimizerRecipe(), stage)
    schedule = optimizer._learning_rate
    assert isinstance(optimizer, Adafactor)
    assert float(schedule(0)) < float(schedule(3)) <= 0.5
    assert float(schedule(10)) == 0.0


def test_weight_decay_and_clipping_reach_adamw():
    recipe = OptimizerRecipe(
        name="adamw", weight_decay=0.1, global_clipnorm=2.0
    )
    optimizer = build_optimizer(recipe, StageRecipe(steps=2, batch_size=2))
    assert isinstance(optimizer, keras.optimizers.AdamW)
    assert (optimizer.weight_decay, optimizer.global_clipnorm) == (0.1, 2.0)


def test_random_weights_need_a_tokenizer(make_recipe):
    model = ModelRecipe(num_layers=1, vocabulary_size=384)
    with pytest.raises(InvalidInputError, match="train_tokenizer"):
        build_model(make_recipe(model=model))


def test_scale_zero_starts_as_a_mean_of_token_embeddings(
    make_recipe, preset_folder
):
    tokenizer = load_tokenizer(preset_folder)
    assert isinstance(tokenizer, keras_hub.models.T5Tokenizer)
    model = ModelRecipe(
        num_layers=2,
        num_heads=2,
        hidden_dim=16,
        intermediate_dim=32,
        vocabulary_size=384,
        residual_init_scale=0.0,
    )
    encoder = build_model(make_recipe(model=model), tokenizer).query_tower
    token_ids = np.array([[5, 9, 1]])
    hidden = encoder.encoder(
        {"token_ids": token_ids, "padding_mask": token_ids}
    )
    table = encoder.encoder.token_embedding.embeddings.numpy()
    rows = table[token_ids].astype(np.float64)
    expected = rows / np.sqrt(np.square(rows).mean(-1, keepdims=True) + 1e-6)
    np.testing.assert_allclose(hidden, expected, rtol=1e-5)


def test_consecutive_pairs_share_a_batch_when_grouped(
    make_recipe, preset_folder
):
    model = build_model(make_recipe())
    pairs = [Pair(f"q{i}", f"d{i}") for i in range(12)]
    stage = StageRecipe(steps=1, batch_size=4, group_size=4)
    batch = next(iter(build_dataset(model, pairs, stage, seed=3)))
    rows = fingerprint([pair.query for pair in pairs]).tolist()
    found = sorted(rows.index(int(x)) for x in batch["query_ids"])
    assert found[0] % 4 == 0
    assert found == list(range(found[0], found[0] + 4))


def test_adamw_without_weight_decay_is_built():
    recipe = OptimizerRecipe(name="adamw")

    optimizer = build_optimizer(recipe, StageRecipe(steps=2, batch_size=2))

    # Keras refuses `None` here, which other optimizers take for none.
    assert optimizer.weight_decay == 0.0


def test_a_resumed_stage_leaves_out_the_batches_that_are_done(
    make_recipe, preset_folder
):
    model = build_model(make_recipe())
    pairs = [Pair(f"q{i}", f"d{i}") for i in range(12)]
    stage = StageRecipe(steps=9, batch_size=4)
    whole = build_dataset(model, pairs, stage, seed=3)
    rest = build_dataset(model, pairs, stage, seed=3, start_step=4)
    np.testing.assert_array_equal(
        next(iter(rest))["query_ids"],
        next(iter(whole.skip(4)))["query_ids"],
    )


def test_options_of_the_batches_reach_the_dataset(make_recipe):
    model = build_model(make_recipe())
    # One document answers half of the queries.
    pairs = [Pair(f"q{i}", f"d{max(i, 5)}") for i in range(10)]
    stage = StageRecipe(steps=1, batch_size=4, unique_texts=True)
    training = TrainingRecipe(
        packing="rows", last_batch="pad", gradient_cache_batch_size=2
    )
    dataset = build_dataset(model, pairs, stage, seed=3, training=training)
    for batch in dataset.take(3):
        documents = batch["document_ids"].numpy()[batch["is_valid"] == 1]
        assert len(set(documents)) == len(documents)
        # Two groups, numbered within.
        assert batch["queries"]["segment_ids"].numpy().max() == 2


def test_layers_keep_activations_or_not_outside_of_the_config(make_recipe):
    training = TrainingRecipe(rematerialize=True)
    model = build_model(make_recipe(training=training))
    encoder = model.query_tower.encoder
    assert all(
        layer.rematerialize for layer in encoder.encoder_transformer_layers
    )
    # How a model was trained is no part of what it is.
    assert model.fingerprint() == build_model(make_recipe()).fingerprint()
