"""From a recipe's parts to live objects."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import keras
import keras_hub
import tensorflow as tf

from tf_samtone.data import (
    Collection,
    Pair,
    read_beir_folder,
    read_python_docs,
    training_dataset,
)
from tf_samtone.distribution import make_strategy
from tf_samtone.errors import InvalidInputError
from tf_samtone.evaluation import in_batch_metrics
from tf_samtone.losses import (
    ContrastiveLoss,
    GTELoss,
    InBatchSoftmaxLoss,
    PairLoss,
    SamToNeLoss,
)
from tf_samtone.models import DualEncoder, T5Encoder
from tf_samtone.optimizers import Adafactor, LinearDecay
from tf_samtone.trainers.recipe import (
    DataRecipe,
    LossRecipe,
    OptimizerRecipe,
    Recipe,
    StageRecipe,
    TrainingRecipe,
)

__all__ = [
    "build_dataset",
    "build_loss",
    "build_model",
    "build_optimizer",
    "build_strategy",
    "check_inputs",
    "compile_model",
    "group_ids",
    "read_collection",
]


def check_inputs(recipe: Recipe) -> None:
    """Refuses a recipe whose files are absent, before any work starts.

    Raises:
        InvalidInputError: the message says what to get and where to put it.
    """
    wanted = []
    if recipe.data.reader == "beir":
        wanted.append(("data.path", recipe.data.path, recipe.data.how_to_get))
    looks_local = recipe.model.preset.startswith((".", "/", "~"))
    if looks_local:
        wanted.append(
            ("model.preset", recipe.model.preset, recipe.model.how_to_get)
        )
    for name, path, how_to_get in wanted:
        if not Path(path).expanduser().is_dir():
            raise InvalidInputError(
                f"Expected {name} to be a folder. Received: {path!r}, which "
                f"does not exist. {how_to_get or 'Correct the recipe.'}"
            )


def read_collection(data: DataRecipe) -> Collection:
    """Reads the collection that a `DataRecipe` names."""
    if data.reader == "beir":
        return read_beir_folder(Path(data.path).expanduser())
    if data.packages:
        return read_python_docs(data.packages)
    return read_python_docs()


def build_model(recipe: Recipe, tokenizer: Any = None) -> DualEncoder:
    """Builds the dual encoder of a recipe.

    Args:
        recipe: `Recipe`.
        tokenizer: `T5Tokenizer` for random weights; ignored with a preset.

    Returns:
        `DualEncoder`.
    """
    keras.utils.set_random_seed(recipe.seed)
    model = recipe.model
    shape = {
        "architecture": model.architecture,
        "projection_dim": model.projection_dim,
        "query_length": model.query_length,
        "document_length": model.document_length,
    }
    if model.preset:
        loaded = DualEncoder.from_preset(
            model.preset, dropout=model.dropout, dtype=model.dtype, **shape
        )
        return _with_memory_of(loaded, recipe.training)
    if not isinstance(tokenizer, keras_hub.models.T5Tokenizer):
        raise InvalidInputError(
            "Expected a T5Tokenizer for a model without a preset. Received: "
            f"tokenizer={tokenizer!r}. Train one with "
            "tf_samtone.text.train_tokenizer."
        )
    encoder = T5Encoder(
        vocabulary_size=model.vocabulary_size,
        num_layers=model.num_layers,
        num_heads=model.num_heads,
        hidden_dim=model.hidden_dim,
        intermediate_dim=model.intermediate_dim,
        key_value_dim=model.hidden_dim // model.num_heads,
        dropout=model.dropout,
        dtype=model.dtype,
    )
    embeddings = encoder.token_embedding.embeddings
    embeddings.assign(embeddings * model.embedding_init_scale)
    for layer in encoder.encoder_transformer_layers:
        for dense in (
            layer.self_attention.output_projector,
            layer.output_projector,
        ):
            dense.kernel.assign(dense.kernel * model.residual_init_scale)
    built = DualEncoder.from_encoder(encoder, tokenizer, **shape)
    return _with_memory_of(built, recipe.training)


def _with_memory_of(
    model: DualEncoder, training: TrainingRecipe
) -> DualEncoder:
    """Makes the layers keep their activations or not.

    Not in the encoder's config: a saved model is the same either way.
    """
    for tower in (model.query_tower, model.document_tower):
        for layer in tower.encoder.encoder_transformer_layers:
            layer.rematerialize = training.rematerialize
    return model


def build_loss(loss: LossRecipe) -> ContrastiveLoss:
    """Builds the loss of a `LossRecipe`.

    Raises:
        InvalidInputError: if the loss has no use for an option that is set.
    """
    options = {
        "temperature": loss.temperature,
        "bidirectional": loss.bidirectional,
        "direction_reduction": loss.direction_reduction,
        "mask_duplicates": loss.mask_duplicates,
    }
    if loss.name == "samtone":
        return SamToNeLoss(same_tower=loss.same_tower, **options)
    others = {
        "in_batch_softmax": InBatchSoftmaxLoss,
        "pair": PairLoss,
        "gte": GTELoss,
    }
    return others[loss.name](**options)


def build_optimizer(
    optimizer: OptimizerRecipe, stage: StageRecipe
) -> keras.optimizers.Optimizer:
    """Builds the optimizer of one stage, decaying linearly to 0."""
    schedule = LinearDecay(
        learning_rate=stage.learning_rate,
        total_steps=stage.steps,
        warmup_steps=stage.warmup_steps,
    )
    options: dict[str, Any] = {
        "learning_rate": schedule,
        "global_clipnorm": optimizer.global_clipnorm or None,
    }
    if optimizer.name == "adamw":
        # Unlike other optimizers Keras's AdamW takes no `None` for none.
        return keras.optimizers.AdamW(
            weight_decay=optimizer.weight_decay, **options
        )
    return Adafactor(weight_decay=optimizer.weight_decay or None, **options)


def compile_model(
    model: DualEncoder,
    recipe: Recipe,
    stage: StageRecipe,
    loss: LossRecipe | None = None,
) -> None:
    """Compiles a model for one stage.

    Args:
        model: `DualEncoder`, made in the scope of its strategy.
        recipe: `Recipe`.
        stage: `StageRecipe`.
        loss: `LossRecipe` in place of the recipe's own. Defaults to `None`.
    """
    training = recipe.training
    with model.distribute_strategy.scope():
        model.compile(
            optimizer=build_optimizer(recipe.optimizer, stage),
            loss=build_loss(loss or recipe.loss),
            metrics=in_batch_metrics(),
            gradient_cache_batch_size=training.gradient_cache_batch_size
            or None,
            max_bad_steps=training.max_bad_steps,
            seed=recipe.seed,
        )


def group_ids(pairs: Sequence[Pair], stage: StageRecipe) -> list[int] | None:
    """Numbers the runs of neighbours that stay in one batch."""
    if stage.group_size == 1:
        return None
    return [i // stage.group_size for i in range(len(pairs))]


def build_strategy(training: TrainingRecipe) -> tf.distribute.Strategy:
    """Builds the strategy that a `TrainingRecipe` names.

    Raises:
        InvalidInputError: if the devices are not there.
    """
    return make_strategy(
        training.strategy, devices=training.devices, tpu=training.tpu
    )


def build_dataset(
    model: DualEncoder,
    pairs: Sequence[Pair],
    stage: StageRecipe,
    seed: int,
    *,
    training: TrainingRecipe | None = None,
    start_step: int = 0,
) -> tf.data.Dataset:
    """Builds the endless stream of batches of one stage.

    Args:
        model: `DualEncoder`, made in the scope of its strategy.
        pairs: list of `Pair`.
        stage: `StageRecipe`.
        seed: int.
        training: `TrainingRecipe`. Defaults to its defaults.
        start_step: int. Batches to leave out at the start. Defaults to `0`.

    Raises:
        InvalidInputError: if the batch cannot be divided evenly, or there are
            fewer pairs than it holds.
    """
    training = training or TrainingRecipe()
    replicas = model.distribute_strategy.num_replicas_in_sync
    training.check_batch(stage.batch_size, replicas)
    micro = training.gradient_cache_batch_size
    return training_dataset(
        [pair.query for pair in pairs],
        [pair.document for pair in pairs],
        query_preprocessor=model.query_preprocessor,
        document_preprocessor=model.document_preprocessor,
        batch_size=stage.batch_size,
        seed=seed,
        group_ids=group_ids(pairs, stage),
        start_step=start_step,
        packing=None if training.packing == "none" else training.packing,
        # Each replica and each micro-batch gets whole rows of its own.
        packing_groups=stage.batch_size // micro if micro else replicas,
        last_batch=training.last_batch,
        unique_texts=stage.unique_texts,
    )
