"""One metric of a validation, watched for a new best value."""

from typing import Any

from tf_samtone.errors import InvalidInputError
from tf_samtone.trainers.retrieval_validation import RetrievalValidation

__all__ = ["WatchedMetric"]


class WatchedMetric:
    """Remembers the best value of a metric and the step that had it.

    Args:
        validation: `RetrievalValidation`.
        metric: str. One of its metrics; higher is better.
        min_delta: float >= 0. A value must exceed the best by more than this.

    Attributes:
        best: float or `None`.
        best_step: int or `None`.

    Raises:
        InvalidInputError: if the validation does not measure the metric.
    """

    def __init__(
        self,
        validation: RetrievalValidation,
        metric: str,
        min_delta: float = 0.0,
    ) -> None:
        if metric not in validation.metrics:
            raise InvalidInputError(
                "Expected `metric` to be one that the validation measures: "
                f"{list(validation.metrics)}. Received: metric={metric!r}. "
                "Choose one of these, or add it to the validation."
            )
        if not min_delta >= 0:
            raise InvalidInputError(
                f"Expected `min_delta` >= 0. Received: min_delta={min_delta}. "
                "Pass 0 to count every improvement."
            )
        self.metric = metric
        self.min_delta = min_delta
        self.best: float | None = None
        self.best_step: int | None = None
        self._validation = validation
        self.begin()

    def begin(self) -> None:
        """Leaves out the validations there are; call at the start of a fit."""
        self._seen = len(self._validation.history)

    def new_value(
        self, logs: dict[str, float] | None
    ) -> tuple[int, float] | None:
        """Returns `(step, value)` of a validation of this very step.

        Args:
            logs: what Keras gave to the callback.

        Raises:
            InvalidInputError: if the validation ran after this callback, whose
                weights are then those of a later step.
        """
        history = self._validation.history
        if len(history) == self._seen:
            return None
        self._seen = len(history)
        step, values = history[-1]
        if f"val_{self.metric}" not in (logs or {}):
            raise InvalidInputError(
                "Expected the RetrievalValidation before the callbacks that "
                f"watch it. Received: a validation of step {step} that was "
                "seen one step late. Change their order in `callbacks`."
            )
        return step, values[self.metric]

    def improves(self, step: int, value: float) -> bool:
        """Whether a value is a new best one, which is then remembered."""
        if self.best is not None and not value > self.best + self.min_delta:
            return False
        self.best, self.best_step = value, step
        return True

    def state(self) -> dict[str, Any]:
        """Returns metric, best value and its step, for JSON."""
        return {
            "metric": self.metric,
            "best": self.best,
            "best_step": self.best_step,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Takes back what `state` returned.

        Raises:
            InvalidInputError: if the state is of another metric.
        """
        if state["metric"] != self.metric:
            raise InvalidInputError(
                f"Expected a state of metric={self.metric!r}. Received: "
                f"metric={state['metric']!r}. Watch the metric with which the "
                "run was started."
            )
        self.best, self.best_step = state["best"], state["best_step"]
