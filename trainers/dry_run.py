"""What a recipe would do, without doing it."""

import math
import time
from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from tf_samtone.data import Collection, Pair
from tf_samtone.errors import InvalidInputError
from tf_samtone.models import DualEncoder
from tf_samtone.models.encoder_size import EncoderSize
from tf_samtone.trainers.builders import (
    build_dataset,
    build_model,
    build_strategy,
    check_inputs,
    compile_model,
    read_collection,
)
from tf_samtone.trainers.memory_estimate import MemoryEstimate
from tf_samtone.trainers.memory_table import format_gib
from tf_samtone.trainers.progress_lines import format_duration
from tf_samtone.trainers.recipe import Recipe, StageRecipe
from tf_samtone.trainers.token_statistics import TokenStatistics
from tf_samtone.trainers.training_load import TrainingLoad

__all__ = ["dry_run"]

# The first step of each shape is traced; the fastest of the others counts.
_STEPS = 3


def dry_run(recipe: Recipe) -> str:
    """Reads, builds and times what a recipe asks for; writes no file.

    Three training steps are made per stage, on a model that is then thrown
    away. The memory is an estimate by the formula of `MemoryEstimate`.

    Args:
        recipe: `Recipe`.

    Returns:
        str, lines for a person: pairs, steps and epochs per stage; lengths of
        the texts and how many are cut; the share of the batches that is
        tokens; parameters by part; memory; time of a step and of all steps.

    Raises:
        InvalidInputError: if the recipe could not be run.
    """
    check_inputs(recipe)
    if not recipe.model.preset:
        raise InvalidInputError(
            "Expected `model.preset`. Received: an empty preset, which means "
            "random weights and a vocabulary of their own; a dry run trains "
            "none. Name a preset."
        )
    strategy = build_strategy(recipe.training)
    collection = read_collection(recipe.data)
    with strategy.scope():
        model = build_model(recipe)
    lines = [
        f"dry run of {recipe.name!r}: nothing is written",
        _data_line(collection),
        *_model_lines(model),
        f"devices: {strategy.num_replicas_in_sync} "
        f"(strategy {recipe.training.strategy!r})",
    ]
    losses = {recipe.loss.name, *recipe.evaluation.compare_losses}
    seconds = 0.0
    for stage in recipe.stages:
        report = _Stage(model, recipe, stage, collection.pairs(stage.pairs))
        lines += ["", *report.lines()]
        seconds += stage.steps * report.step_s
    lines += [
        "",
        f"all steps of {' and '.join(sorted(losses))}: "
        f"{format_duration(seconds * len(losses))}, without evaluation, "
        "validation and checkpoints",
    ]
    return "\n".join(lines)


class _Stage:
    """Measures one stage.

    Args:
        model: `DualEncoder`; trained for some steps.
        recipe: `Recipe`.
        stage: `StageRecipe`.
        pairs: list of `Pair`.
    """

    def __init__(
        self,
        model: DualEncoder,
        recipe: Recipe,
        stage: StageRecipe,
        pairs: Sequence[Pair],
    ) -> None:
        self._model = model
        self._recipe = recipe
        self._stage = stage
        self._pairs = pairs
        dataset = build_dataset(
            model, pairs, stage, recipe.seed, training=recipe.training
        )
        self._batches = list(dataset.take(_STEPS))
        self.step_s = self._seconds_of_a_step(dataset)

    def lines(self) -> list[str]:
        """Returns the report."""
        stage, pairs = self._stage, self._pairs
        epochs = stage.steps * stage.batch_size / len(pairs)
        queries = TokenStatistics.of_texts(
            [pair.query for pair in pairs], self._model.query_preprocessor
        )
        documents = TokenStatistics.of_texts(
            [pair.document for pair in pairs], self._model.document_preprocessor
        )
        rate = stage.batch_size / self.step_s
        tokens = rate * (queries.mean_kept + documents.mean_kept)
        shares = ", ".join(
            f"{side} {_share_of_tokens(self._batches, side):.0%}"
            for side in ("queries", "documents")
        )
        return [
            f"stage {stage.name!r}: {len(pairs):,} pairs of {stage.pairs!r}, "
            f"{stage.steps:,} steps of {stage.batch_size}, "
            f"{epochs:.2f} epochs",
            _length_line("queries", queries, self._recipe.model.query_length),
            _length_line(
                "documents", documents, self._recipe.model.document_length
            ),
            f"  places of the batches that hold tokens: {shares}",
            self._memory_line(),
            f"  step: {self.step_s:.3f} s, {rate:,.0f} pairs/s, "
            f"{tokens:,.0f} tokens/s; all {stage.steps:,}: "
            f"{format_duration(stage.steps * self.step_s)}",
        ]

    def _seconds_of_a_step(self, dataset: tf.data.Dataset) -> float:
        compile_model(self._model, self._recipe, self._stage)
        times = _StepTimes()
        self._model.fit(
            dataset, steps_per_epoch=_STEPS, verbose=0, callbacks=[times]
        )
        return min(times.seconds[1:])

    def _memory_line(self) -> str:
        training, model = self._recipe.training, self._recipe.model
        estimate = MemoryEstimate.of(
            EncoderSize.of_encoder(self._model.query_tower.encoder),
            TrainingLoad(
                batch_size=self._stage.batch_size,
                devices=self._model.distribute_strategy.num_replicas_in_sync,
                projection_dim=model.projection_dim,
                architecture=model.architecture,
                dtype=model.dtype,
                dropout=model.dropout > 0,
                optimizer=self._recipe.optimizer.name,
                clips=self._recipe.optimizer.global_clipnorm > 0,
                rematerialize=training.rematerialize,
                gradient_cache_batch_size=training.gradient_cache_batch_size,
                **_rows(self._batches, self._stage.batch_size),
            ),
        )
        terms = ", ".join(
            f"{name} {format_gib(getattr(estimate, name))}"
            for name in ("weights", "gradients", "optimizer", "activations")
        )
        return (
            "  memory per device, by the formula: "
            f"{format_gib(estimate.total)} GiB ({terms})"
        )


class _StepTimes(keras.callbacks.Callback):
    """Seconds of each step with its input."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: list[float] = []
        self._started = 0.0

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        self._started = time.monotonic()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.seconds.append(time.monotonic() - self._started)


def _data_line(collection: Collection) -> str:
    splits = ", ".join(
        f"{split} {len(judgments):,}"
        for split, judgments in collection.qrels.items()
    )
    return (
        f"data: {len(collection.corpus):,} documents; queries with judgments: "
        f"{splits}"
    )


def _model_lines(model: DualEncoder) -> list[str]:
    """Returns parameters in all and by part; shared ones count once."""
    towers = (model.query_tower, model.document_tower)
    parts = {
        "token embeddings": [t.encoder.token_embedding.weights for t in towers],
        "projections": [
            t.projection.weights for t in towers if t.projection is not None
        ],
        "encoder layers": [model.weights],
    }
    seen: set[int] = set()
    counts = {}
    for name, groups in parts.items():
        new = {id(w): w for ws in groups for w in ws if id(w) not in seen}
        seen |= set(new)
        counts[name] = sum(math.prod(w.shape) for w in new.values())
    trainable = sum(math.prod(w.shape) for w in model.trainable_weights)
    detail = ", ".join(f"{name} {n:,}" for name, n in counts.items())
    return [
        f"model: {sum(counts.values()):,} parameters ({detail}), of which "
        f"{trainable:,} are trained",
    ]


def _length_line(name: str, lengths: TokenStatistics, limit: int) -> str:
    return (
        f"  {name}: {lengths.mean:.1f} tokens on average, 95 % have up to "
        f"{lengths.percentile_95:.0f}; {lengths.share_cut:.1%} are cut at "
        f"{limit}"
    )


def _share_of_tokens(batches: Sequence[dict[str, Any]], side: str) -> float:
    """Returns the share of places without padding, padded or packed."""
    masks = [
        batch[side].get("padding_mask", batch[side].get("segment_ids"))
        for batch in batches
    ]
    filled = sum(int(tf.math.count_nonzero(mask)) for mask in masks)
    return filled / sum(int(tf.size(mask)) for mask in masks)


def _rows(batches: Sequence[dict[str, Any]], batch_size: int) -> dict[str, Any]:
    """Returns the widest row, and rows per text, for `TrainingLoad`."""
    values: dict[str, Any] = {}
    for name in ("query", "document"):
        side = "queries" if name == "query" else "documents"
        shapes = [batch[side]["token_ids"].shape for batch in batches]
        values[f"{name}_length"] = max(shape[1] for shape in shapes)
        values[f"{name}_rows"] = max(shape[0] for shape in shapes) / batch_size
    return values
