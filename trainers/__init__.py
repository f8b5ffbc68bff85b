"""Training by recipes; installed as `tf_samtone.trainers`."""

from tf_samtone.trainers.collapse_guard import CollapseGuard
from tf_samtone.trainers.progress_lines import ProgressLines
from tf_samtone.trainers.recipe import (
    DataRecipe,
    EvaluationRecipe,
    LossRecipe,
    ModelRecipe,
    OptimizerRecipe,
    Recipe,
    StageRecipe,
)
from tf_samtone.trainers.recipe_file import read_recipe
from tf_samtone.trainers.train import train

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
    "read_recipe",
    "train",
]
