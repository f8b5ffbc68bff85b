"""Training by a recipe: data, model, stages, evaluation, results."""

import dataclasses
import json
import logging
import os
import time
from pathlib import Path
from typing import Any

from tf_samtone._files import atomic_write_text
from tf_samtone._version import __version__
from tf_samtone.data import Collection
from tf_samtone.errors import InvalidInputError, OutputExistsError
from tf_samtone.evaluation import write_run
from tf_samtone.trainers.builders import (
    build_model,
    check_inputs,
    read_collection,
)
from tf_samtone.trainers.fit_stages import fit_stages
from tf_samtone.trainers.recipe import LossRecipe, Recipe
from tf_samtone.trainers.runs import (
    Runs,
    bm25_runs,
    dense_runs,
    figures,
    format_table,
)

__all__ = ["prepare_output", "summary", "train"]

_LOGGER = logging.getLogger("tf_samtone")
_DEPTH = 100


def train(
    recipe: Recipe,
    output_dir: str | os.PathLike[str] | None = None,
    *,
    overwrite: bool = False,
) -> dict[str, Any]:
    """Trains and evaluates a dual encoder as a recipe says.

    Writes to the output folder: `recipe.json` (every value, also the
    defaults), `model/` (for `DualEncoder.from_preset`), `runs/*.trec` and
    `results.json`.

    Args:
        recipe: `Recipe`; see `read_recipe`.
        output_dir: folder. Defaults to `runs/<name of the recipe>`.
        overwrite: bool. Allows a folder that already holds results. Defaults
            to `False`.

    Returns:
        dict as in `results.json`: `figures` is `{row: {split: {metric:
        float}}}`, where a row is `"bm25"`, or the name of a loss.

    Raises:
        InvalidInputError: if inputs are missing or malformed; before any work.
        OutputExistsError: if the folder already holds results.
        CollapseError: if training collapses.
    """
    _check_recipe(recipe)
    output = Path(output_dir or Path("runs") / recipe.name)
    prepare_output(output, overwrite=overwrite)
    collection = read_collection(recipe.data)
    _check_splits(recipe, collection)
    atomic_write_text(output / "recipe.json", _json(recipe.to_dict()) + "\n")
    results: dict[str, Any] = {
        "recipe": recipe.name,
        "tf_samtone_version": __version__,
        "figures": {},
        "training": {},
        "seconds": {},
    }
    splits = recipe.evaluation.splits
    if recipe.evaluation.bm25:
        runs = bm25_runs(collection, splits, _DEPTH)
        _record(results, "bm25", runs, collection, recipe, output)
    for loss in _losses(recipe):
        started = time.monotonic()
        model = build_model(recipe)
        results["training"][loss.name] = fit_stages(
            model, recipe, collection.pairs, loss=loss
        )
        if loss is recipe.loss:
            model.save_to_preset(output / "model", overwrite=overwrite)
        runs = dense_runs(model, collection, splits, _DEPTH)
        seconds = round(time.monotonic() - started, 1)
        results["seconds"][loss.name] = seconds
        _LOGGER.info("%s: %.0f s in all", loss.name, seconds)
        _record(results, loss.name, runs, collection, recipe, output)
    return results


def prepare_output(output: Path, *, overwrite: bool) -> None:
    """Makes the output folder, or refuses one that holds results.

    Raises:
        OutputExistsError: if the folder is not empty and `overwrite` is false.
    """
    if output.exists() and not output.is_dir():
        raise OutputExistsError(
            f"Expected an output folder. Received: {output}, which is a file."
        )
    if output.is_dir() and any(output.iterdir()) and not overwrite:
        raise OutputExistsError(
            "Expected an output folder that does not exist or is empty. "
            f"Received: {output}, which holds results. Choose another folder, "
            "or pass overwrite (--overwrite) to replace them."
        )
    output.mkdir(parents=True, exist_ok=True)


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
    if not recipe.model.preset:
        raise InvalidInputError(
            "Expected `model.preset`. Received: an empty preset, which means "
            "random weights and a vocabulary of their own; only the quickstart "
            "trains one. Name a preset."
        )


def _check_splits(recipe: Recipe, collection: Collection) -> None:
    known = list(collection.qrels)
    for split in ("train", *recipe.evaluation.splits):
        if split not in known:
            raise InvalidInputError(
                f"Expected the splits {known} of the collection. Received: "
                f"split={split!r}. Correct evaluation.splits, or add "
                f"qrels/{split}.tsv."
            )


def _record(
    results: dict[str, Any],
    name: str,
    runs: Runs,
    collection: Collection,
    recipe: Recipe,
    output: Path,
) -> None:
    """Keeps figures and runs as soon as they are known."""
    row = figures(runs, collection, recipe.evaluation.metrics)
    results["figures"][name] = row
    (output / "runs").mkdir(exist_ok=True)
    for split, run in runs.items():
        path = output / "runs" / f"{name}-{split}.trec"
        write_run(run, path, tag=name, overwrite=True)
    atomic_write_text(output / "results.json", _json(results) + "\n")
    for split, values in row.items():
        _LOGGER.info(
            "%s on %s: %s",
            name,
            split,
            ", ".join(f"{k} {v:.4f}" for k, v in values.items()),
        )


def _json(value: object) -> str:
    return json.dumps(value, indent=2)
