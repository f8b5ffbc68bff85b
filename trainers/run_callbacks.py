"""The callbacks that live through all stages of a run."""

import os
from collections.abc import Sequence
from pathlib import Path

import keras

from tf_samtone.data import Collection
from tf_samtone.models import DualEncoder
from tf_samtone.trainers.best_model import BestModel
from tf_samtone.trainers.profile_steps import ProfileSteps
from tf_samtone.trainers.recipe import Recipe
from tf_samtone.trainers.retrieval_validation import RetrievalValidation
from tf_samtone.trainers.tensorboard_scalars import TensorBoardScalars

__all__ = ["best_model", "run_callbacks"]

_METRICS = ("MRR@10", "nDCG@10", "R@100")


def run_callbacks(
    recipe: Recipe,
    collection: Collection,
    output: Path,
    name: str,
    profile_dir: str | os.PathLike[str] | None = None,
) -> list[keras.callbacks.Callback]:
    """Makes the callbacks that a recipe asks for, in their order.

    Args:
        recipe: `Recipe`.
        collection: `Collection` to validate on.
        output: folder of the run.
        name: str. Loss that is trained; names folders.
        profile_dir: folder for a profile of some steps. Defaults to `None`.
    """
    training = recipe.training
    callbacks: list[keras.callbacks.Callback] = []
    if training.validate_every:
        validation = RetrievalValidation(
            collection,
            training.validation_split,
            every_steps=training.validate_every,
            num_documents=training.validation_documents,
            metrics=tuple(dict.fromkeys((training.best_metric, *_METRICS))),
            seed=recipe.seed,
        )
        # What is there is of the run that is resumed or replaced.
        best = BestModel(
            validation,
            output / "best" / name,
            training.best_metric,
            overwrite=True,
        )
        callbacks += [validation, best]
    if training.tensorboard:
        callbacks.append(TensorBoardScalars(output / "tensorboard" / name))
    if profile_dir is not None:
        callbacks.append(ProfileSteps(profile_dir))
    return callbacks


def best_model(
    callbacks: Sequence[keras.callbacks.Callback],
    model: DualEncoder,
    recipe: Recipe,
) -> DualEncoder:
    """Returns the best model of the validations.

    Args:
        callbacks: from `run_callbacks`, after training.
        model: `DualEncoder` as trained to the end; returned if there was no
            validation.
        recipe: `Recipe`.
    """
    for callback in callbacks:
        if isinstance(callback, BestModel) and callback.best_step is not None:
            return DualEncoder.from_preset(
                str(callback.directory / "model"), dtype=recipe.model.dtype
            )
    return model
