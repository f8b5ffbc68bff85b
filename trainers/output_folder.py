"""The folder of a run: new, replaced, or resumed."""

import json
import shutil
from pathlib import Path
from typing import Any

from tf_samtone._files import atomic_write_text, recover_leftovers
from tf_samtone.errors import (
    CorruptFileError,
    InvalidInputError,
    OutputExistsError,
)
from tf_samtone.trainers.recipe import Recipe

__all__ = [
    "CHECKPOINTS",
    "prepare_output",
    "read_results",
    "recipe_differences",
    "resume_output",
    "start_output",
    "write_results",
]

CHECKPOINTS = "checkpoints"
_RECIPE = "recipe.json"
_RESULTS = "results.json"
# They decide on what, in which pieces and how watched a run is made; its
# batches stay the same, and what is learned from them up to rounding and to the
# dropout of other replicas and micro-batches.
_MAY_DIFFER = frozenset(
    {
        "description",
        "data.how_to_get",
        "model.how_to_get",
        "training.strategy",
        "training.devices",
        "training.tpu",
        "training.gradient_cache_batch_size",
        "training.rematerialize",
        "training.max_bad_steps",
        "training.checkpoint_every",
        "training.keep_checkpoints",
        "training.tensorboard",
    }
)


def prepare_output(output: Path, *, overwrite: bool) -> None:
    """Makes the output folder, or refuses one that holds results.

    Raises:
        OutputExistsError: if the folder is not empty and `overwrite` is false.
    """
    _check_is_folder(output)
    if output.is_dir() and any(output.iterdir()) and not overwrite:
        raise OutputExistsError(
            "Expected an output folder that does not exist or is empty. "
            f"Received: {output}, which holds results. Choose another folder, "
            "or pass overwrite (--overwrite) to replace them, or resume "
            "(--resume) to go on with the run."
        )
    output.mkdir(parents=True, exist_ok=True)


def start_output(output: Path, recipe: Recipe) -> None:
    """Writes the recipe, and removes what a resumed run would go on from."""
    _recover(output)
    # In this order: a kill in between must not leave old results beside the
    # new recipe.
    (output / _RESULTS).unlink(missing_ok=True)
    if (output / CHECKPOINTS).is_dir():
        shutil.rmtree(output / CHECKPOINTS)
    text = json.dumps(recipe.to_dict(), indent=2)
    atomic_write_text(output / _RECIPE, text + "\n")


def resume_output(output: Path, recipe: Recipe) -> bool:
    """Checks that the folder is of a run of this recipe.

    Keys that only say how to run it may differ: strategy and devices, gradient
    cache, rematerialisation, number of bad steps, checkpoints, TensorBoard,
    and texts for people.

    Args:
        output: folder of the run.
        recipe: `Recipe`.

    Returns:
        Whether there is a run to resume; an empty folder has none.

    Raises:
        InvalidInputError: if the recipe differs; every key is listed.
        OutputExistsError: if the folder holds something else.
        CorruptFileError: if its recipe cannot be read.
    """
    _check_is_folder(output)
    _recover(output)
    output.mkdir(parents=True, exist_ok=True)
    path = output / _RECIPE
    if not path.exists():
        if any(output.iterdir()):
            raise OutputExistsError(
                "Expected the folder of a run, or an empty one. Received: "
                f"{output} with files but no {_RECIPE}. Choose another folder."
            )
        return False
    found = recipe_differences(_read_json(path), recipe.to_dict())
    differences = [text for key, text in found if key not in _MAY_DIFFER]
    if differences:
        raise InvalidInputError(
            f"Expected the recipe with which the run in {output} was started. "
            f"Received: other values of {'; '.join(differences)}. Resume with "
            f"the values of {path}, or choose another folder."
        )
    return True


def read_results(output: Path) -> dict[str, Any] | None:
    """Returns what is known of a run so far, or `None`."""
    path = output / _RESULTS
    return _read_json(path) if path.exists() else None


def write_results(output: Path, results: dict[str, Any]) -> None:
    """Writes what is known of a run so far."""
    text = json.dumps(results, indent=2)
    atomic_write_text(output / _RESULTS, text + "\n")


def recipe_differences(old: Any, new: Any) -> list[tuple[str, str]]:
    """Compares two recipes as nested dicts and lists.

    Args:
        old: dict of JSON values.
        new: dict; tuples count as lists.

    Returns:
        list of `(key, "key=old (now new)")`, keys with dots and numbers.
    """
    before, after = _flat(old), _flat(new)

    def shown(values: dict[str, Any], key: str) -> str:
        return json.dumps(values[key]) if key in values else "none"

    return [
        (key, f"{key}={shown(before, key)} (now {shown(after, key)})")
        for key in {**before, **after}
        if (key in before, before.get(key)) != (key in after, after.get(key))
    ]


def _recover(output: Path) -> None:
    """Cleans up after a killed process, also one level down."""
    recover_leftovers(output)
    if output.is_dir():
        for path in output.iterdir():
            recover_leftovers(path)


def _flat(value: Any, prefix: str = "") -> dict[str, Any]:
    items: Any = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list | tuple) and any(
        isinstance(item, dict) for item in value
    ):
        items = enumerate(value)
    if not items:
        value = list(value) if isinstance(value, tuple) else value
        return {prefix.removesuffix("."): value}
    flat: dict[str, Any] = {}
    for key, item in items:
        flat.update(_flat(item, f"{prefix}{key}."))
    return flat


def _read_json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise CorruptFileError(
            f"Expected JSON in {path}. Received: {error}. Restore the file, or "
            "choose another folder."
        ) from error
    return dict(value)


def _check_is_folder(output: Path) -> None:
    if output.exists() and not output.is_dir():
        raise OutputExistsError(
            f"Expected an output folder. Received: {output}, which is a file. "
            "Choose another name."
        )
