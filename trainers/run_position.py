"""How far a run through the stages of a recipe has come."""

import dataclasses
from typing import Any

from tf_samtone.trainers.recipe import Recipe


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunPosition:
    """A boundary between two steps.

    Attributes:
        stage: int. Stages that are finished.
        step: int. Steps done in the next one.
        history: list of dicts, one per finished stage; see `fit_stages`.
        seconds: float. Time spent in the next one.
        pairs: str. Digest of the pairs of the stage; empty at its start.
    """

    stage: int = 0
    step: int = 0
    history: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    seconds: float = 0.0
    pairs: str = ""

    def steps_before(self, recipe: Recipe) -> int:
        """Returns the steps of the finished stages.

        One that ended early counts with all its steps, so that the numbers of
        checkpoints and validations always rise.
        """
        return sum(stage.steps for stage in recipe.stages[: self.stage])

    def after_stage(self, record: dict[str, Any]) -> "RunPosition":
        """Returns the start of the next stage.

        Args:
            record: dict, what the history says of this one.
        """
        return RunPosition(
            stage=self.stage + 1, history=[*self.history, record]
        )
