"""Training by recipes; installed as `tf_samtone.trainers`."""

from typing import TYPE_CHECKING

from tf_samtone._lazy import lazy_members

# Imported when first used, because the command lines import this package and
# should answer --help before TensorFlow has loaded.
if TYPE_CHECKING:
    from tf_samtone.trainers.collapse_guard import CollapseGuard
    from tf_samtone.trainers.paper_recipe import paper_recipe
    from tf_samtone.trainers.progress_lines import ProgressLines
    from tf_samtone.trainers.recipe import (
        DataRecipe,
        EvaluationRecipe,
        LossRecipe,
        ModelRecipe,
        OptimizerRecipe,
        Recipe,
        StageRecipe,
        TrainingRecipe,
    )
    from tf_samtone.trainers.recipe_file import read_recipe
    from tf_samtone.trainers.training import train

__all__ = [
    "CollapseGuard",
    "DataRecipe",
    "EvaluationRecipe",
    "LossRecipe",
    "ModelRecipe",
    "OptimizerRecipe",
    "ProgressLines",
    "Recipe",
    "StageRecipe",
    "TrainingRecipe",
    "paper_recipe",
    "read_recipe",
    "train",
]

__getattr__, __dir__ = lazy_members(
    __name__,
    {
        "CollapseGuard": "collapse_guard",
        "DataRecipe": "recipe",
        "EvaluationRecipe": "recipe",
        "LossRecipe": "recipe",
        "ModelRecipe": "recipe",
        "OptimizerRecipe": "recipe",
        "ProgressLines": "progress_lines",
        "Recipe": "recipe",
        "StageRecipe": "recipe",
        "TrainingRecipe": "recipe",
        "paper_recipe": "paper_recipe",
        "read_recipe": "recipe_file",
        "train": "training",
    },
)
