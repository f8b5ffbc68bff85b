"""The training of the papers, as a recipe."""

import os

from tf_samtone.errors import InvalidInputError
from tf_samtone.models.model_sizes import MODEL_SIZES, find_model_size
from tf_samtone.trainers.recipe import (
    DataRecipe,
    LossRecipe,
    ModelRecipe,
    Recipe,
    StageRecipe,
)

__all__ = ["paper_recipe"]


def paper_recipe(
    size: str,
    *,
    preset: str | os.PathLike[str],
    path: str | os.PathLike[str],
    stage: str = "fine-tuning",
) -> Recipe:
    """Returns one stage of training as the paper of a size states it.

    Lengths, batch, steps, learning rate, temperature and loss are those of the
    paper; change others with `dataclasses.replace`. A stage is a recipe of its
    own because each has data of its own: the second one starts from the model
    that the first one saved.

    GTR's fine-tuning also has mined hard negatives, which recipes do not read
    yet: without them, expect lower figures than the paper's.

    Args:
        size: str. A size of `tf_samtone.models.find_model_size` that a paper
            on dual encoders trained: `"t5_1.1_small"` to `"t5_1.1_xxl"`
            (SamToNe), `"gtr_base"` to `"gtr_xxl"`.
        preset: what `DualEncoder.from_preset` takes; the weights at the start.
        path: folder of the collection, in BEIR's format.
        stage: str. `"fine-tuning"`, or `"pre-training"` for GTR. Defaults to
            `"fine-tuning"`.

    Returns:
        `Recipe`. The batch is the paper's (512 pairs, or 2048 for GTR);
        `training.gradient_cache_batch_size` fits it into less memory.

    Raises:
        InvalidInputError: if there is no such size or stage, or no paper
            trained the size.

    Reference:
        Moiseev et al., 2023, https://arxiv.org/abs/2306.02516; Ni et al.,
        2021, https://arxiv.org/abs/2112.07899
    """
    known = find_model_size(size)
    paper = known.paper
    if paper is None:
        trained = [name for name, s in MODEL_SIZES.items() if s.paper]
        raise InvalidInputError(
            f"Expected a size that a paper on dual encoders trained, one of "
            f"{trained}. Received: size={size!r}. Choose one of these, or "
            "write a Recipe."
        )
    if stage not in paper.stages:
        raise InvalidInputError(
            f"Expected a stage of {size!r}, one of {list(paper.stages)}. "
            f"Received: stage={stage!r}. Choose one of these."
        )
    return Recipe(
        name=f"{size}_{stage}".replace("-", "_"),
        description=f"{stage} of {paper.reference}",
        data=DataRecipe(path=os.fspath(path)),
        model=ModelRecipe(
            preset=os.fspath(preset),
            projection_dim=known.projection_dim,
            query_length=paper.query_length,
            document_length=paper.document_length,
        ),
        loss=LossRecipe(name=paper.loss, temperature=paper.temperature),
        stages=(
            StageRecipe(
                name=stage,
                steps=paper.stages[stage],
                batch_size=paper.batch_size,
                learning_rate=paper.learning_rate,
            ),
        ),
    )
