"""Training by a recipe: data, model, stages, evaluation, results."""

import dataclasses
import logging
import os
import time
from pathlib import Path
from typing import Any

import tensorflow as tf

from tf_samtone._version import __version__
from tf_samtone.data import Collection
from tf_samtone.errors import InvalidInputError
from tf_samtone.evaluation import write_run
from tf_samtone.trainers.builders import (
    build_loss,
    build_model,
    build_strategy,
    check_inputs,
    read_collection,
)
from tf_samtone.trainers.checkpointing import RunCheckpoints
from tf_samtone.trainers.fit_stages import fit_stages
from tf_samtone.trainers.output_folder import (
    CHECKPOINTS,
    prepare_output,
    read_results,
    resume_output,
    start_output,
    write_results,
)
from tf_samtone.trainers.recipe import LossRecipe, Recipe
from tf_samtone.trainers.run_callbacks import best_model, run_callbacks
from tf_samtone.trainers.runs import (
    Runs,
    bm25_runs,
    dense_runs,
    figures,
    format_table,
)

__all__ = ["summary", "train"]

_LOGGER = logging.getLogger("tf_samtone")
_DEPTH = 100


def train(
    recipe: Recipe,
    output_dir: str | os.PathLike[str] | None = None,
    *,
    overwrite: bool = False,
    resume: bool = False,
    profile_dir: str | os.PathLike[str] | None = None,
) -> dict[str, Any]:
    """Trains and evaluates a dual encoder as a recipe says.

    Writes to the output folder: `recipe.json` (every value, also the
    defaults), `checkpoints/`, `model/` (for `DualEncoder.from_preset`),
    `runs/*.trec` and `results.json`; with validation also `best/`, whose model
    is then the one that is evaluated and in `model/`; and `tensorboard/`, if
    the recipe asks for it.

    SIGTERM and SIGINT (Ctrl-C) during training save a checkpoint after the
    step and end the run. It, or one that was killed, goes on with `resume`:
    with the same recipe, devices and threads it ends with the same weights,
    optimizer state and figures, bit for bit, as a run without a break. The
    recipe may differ in how it is run; see `resume_output`.

    Args:
        recipe: `Recipe`; see `read_recipe`.
        output_dir: folder. Defaults to `runs/<name of the recipe>`.
        overwrite: bool. Allows a folder that already holds results. Defaults
            to `False`.
        resume: bool. Goes on with the run in the folder; starts one if the
            folder is empty. Defaults to `False`.
        profile_dir: folder for a profile of some steps. Defaults to `None`.

    Returns:
        dict as in `results.json`: `figures` is `{row: {split: {metric:
        float}}}`, where a row is `"bm25"`, or the name of a loss.

    Raises:
        InvalidInputError: if inputs are missing or malformed, or the run to
            resume has another recipe; before any work.
        OutputExistsError: if the folder already holds results.
        CollapseError: if training collapses.
        TrainingInterrupted: if a signal came; resume to go on.
    """
    if overwrite and resume:
        raise InvalidInputError(
            "Expected overwrite or resume. Received: overwrite=True, "
            "resume=True. Resume to keep what the folder holds, overwrite to "
            "replace it."
        )
    _check_recipe(recipe)
    output = Path(output_dir or Path("runs") / recipe.name)
    resume = resume and resume_output(output, recipe)
    if not resume:
        prepare_output(output, overwrite=overwrite)
    strategy = build_strategy(recipe.training)
    for stage in recipe.stages:
        recipe.training.check_batch(
            stage.batch_size, strategy.num_replicas_in_sync
        )
    collection = read_collection(recipe.data)
    _check_splits(recipe, collection)
    if not resume:
        start_output(output, recipe)
    job = _Job(recipe, output, collection, strategy, resume, profile_dir)
    splits = recipe.evaluation.splits
    if recipe.evaluation.bm25 and job.is_missing("bm25"):
        job.record("bm25", bm25_runs(collection, splits, _DEPTH))
    for loss in _losses(recipe):
        if job.is_missing(loss.name):
            job.train(loss)
    return job.results


class _Job:
    """What the losses of a recipe share while they are trained."""

    def __init__(
        self,
        recipe: Recipe,
        output: Path,
        collection: Collection,
        strategy: tf.distribute.Strategy,
        resume: bool,
        profile_dir: str | os.PathLike[str] | None,
    ) -> None:
        self.recipe = recipe
        self.output = output
        self.collection = collection
        self.strategy = strategy
        self.resume = resume
        self.profile_dir = profile_dir
        self.results: dict[str, Any] = (
            read_results(output) if resume else None
        ) or {
            "recipe": recipe.name,
            "tf_samtone_version": __version__,
            "figures": {},
            "training": {},
            "seconds": {},
        }

    def is_missing(self, row: str) -> bool:
        """Whether a row of the results is still to be made."""
        return row not in self.results["figures"]

    def train(self, loss: LossRecipe) -> None:
        """Trains one loss and records its results."""
        recipe, output = self.recipe, self.output
        started = time.monotonic()
        with self.strategy.scope():
            model = build_model(recipe)
        callbacks = run_callbacks(
            recipe, self.collection, output, loss.name, self.profile_dir
        )
        self.results["training"][loss.name] = fit_stages(
            model,
            recipe,
            self.collection.pairs,
            loss,
            callbacks,
            checkpoints=self._checkpoints(loss),
            report_dir=output,
        )
        model = best_model(callbacks, model, recipe)
        if loss is recipe.loss:
            # A run that was killed may have left one.
            model.save_to_preset(output / "model", overwrite=True)
        splits = recipe.evaluation.splits
        runs = dense_runs(model, self.collection, splits, _DEPTH)
        seconds = round(time.monotonic() - started, 1)
        self.results["seconds"][loss.name] = seconds
        _LOGGER.info("%s: %.0f s in all", loss.name, seconds)
        self.record(loss.name, runs)

    def _checkpoints(self, loss: LossRecipe) -> RunCheckpoints | None:
        if not self.recipe.training.checkpoint_every:
            return None
        return RunCheckpoints(
            self.output / CHECKPOINTS / loss.name,
            self.recipe,
            loss,
            resume=self.resume,
        )

    def record(self, name: str, runs: Runs) -> None:
        """Keeps figures and runs as soon as they are known."""
        row = figures(runs, self.collection, self.recipe.evaluation.metrics)
        self.results["figures"][name] = row
        (self.output / "runs").mkdir(exist_ok=True)
        for split, run in runs.items():
            path = self.output / "runs" / f"{name}-{split}.trec"
            write_run(run, path, tag=name, overwrite=True)
        write_results(self.output, self.results)
        for split, values in row.items():
            _LOGGER.info(
                "%s on %s: %s",
                name,
                split,
                ", ".join(f"{k} {v:.4f}" for k, v in values.items()),
            )


def summary(results: dict[str, Any]) -> str:
    """Formats results as one Markdown table per split."""
    rows = results["figures"]
    splits = {split: None for row in rows.values() for split in row}
    parts = []
    for split in splits:
        part = {name: row[split] for name, row in rows.items()}
        metrics = list(next(iter(part.values())))
        parts.append(f"{split}:\n\n{format_table(part, metrics)}")
    return "\n\n".join(parts)


def _losses(recipe: Recipe) -> list[LossRecipe]:
    """Returns the recipe's loss, then those to compare it with."""
    others = [
        dataclasses.replace(recipe.loss, name=name)
        for name in recipe.evaluation.compare_losses
        if name != recipe.loss.name
    ]
    return [recipe.loss, *others]


def _check_recipe(recipe: Recipe) -> None:
    check_inputs(recipe)
    for loss in _losses(recipe):
        build_loss(loss)
    if not recipe.model.preset:
        raise InvalidInputError(
            "Expected `model.preset`. Received: an empty preset, which means "
            "random weights and a vocabulary of their own; only the quickstart "
            "trains one. Name a preset."
        )


def _check_splits(recipe: Recipe, collection: Collection) -> None:
    known = list(collection.qrels)
    wanted = ["train", *recipe.evaluation.splits]
    if recipe.training.validate_every:
        wanted.append(recipe.training.validation_split)
    for split in wanted:
        if split not in known:
            raise InvalidInputError(
                f"Expected the splits {known} of the collection. Received: "
                f"split={split!r}. Correct evaluation.splits or "
                f"training.validation_split, or add qrels/{split}.tsv."
            )
