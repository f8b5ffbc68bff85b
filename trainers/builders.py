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
from tf_samtone.errors import InvalidInputError
from tf_samtone.losses import ContrastiveLoss, InBatchSoftmaxLoss, SamToNeLoss
from tf_samtone.models import DualEncoder, T5Encoder
from tf_samtone.optimizers import Adafactor, LinearDecay
from tf_samtone.trainers.recipe import (
    DataRecipe,
    LossRecipe,
    OptimizerRecipe,
    Recipe,
    StageRecipe,
)

__all__ = [
    "build_dataset",
    "build_loss",
    "build_model",
    "build_optimizer",
    "check_inputs",
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
        return DualEncoder.from_preset(
            model.preset, dropout=model.dropout, dtype=model.dtype, **shape
        )
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
    return DualEncoder.from_encoder(encoder, tokenizer, **shape)


def build_loss(loss: LossRecipe) -> ContrastiveLoss:
    """Builds the loss of a `LossRecipe`."""
    options = {
        "temperature": loss.temperature,
        "bidirectional": loss.bidirectional,
        "direction_reduction": loss.direction_reduction,
        "mask_duplicates": loss.mask_duplicates,
    }
    if loss.name == "samtone":
        return SamToNeLoss(same_tower=loss.same_tower, **options)
    return InBatchSoftmaxLoss(**options)


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


def build_dataset(
    model: DualEncoder, pairs: Sequence[Pair], stage: StageRecipe, seed: int
) -> tf.data.Dataset:
    """Builds the endless stream of batches of one stage."""
    groups = None
    if stage.group_size > 1:
        groups = [i // stage.group_size for i in range(len(pairs))]
    return training_dataset(
        [pair.query for pair in pairs],
        [pair.document for pair in pairs],
        query_preprocessor=model.query_preprocessor,
        document_preprocessor=model.document_preprocessor,
        batch_size=stage.batch_size,
        seed=seed,
        group_ids=groups,
    )
