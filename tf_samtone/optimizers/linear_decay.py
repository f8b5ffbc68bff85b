"""The learning-rate schedule of the GTR and SamToNe papers."""

from typing import Any

import keras
from keras import ops

from tf_samtone.errors import InvalidInputError


@keras.saving.register_keras_serializable(package="tf_samtone")
class LinearDecay(keras.optimizers.schedules.LearningRateSchedule):
    r"""Straight line from a peak to an end value, with optional warm-up.

    For update number `s` (0 for the first), `w` warm-up steps and `n` total
    steps:

        s <  w:  learning_rate * (s + 1) / (w + 1)
        s >= w:  learning_rate
                 + (end - learning_rate) * min(1, (s - w) / (n - w))

    The first update never has a rate of zero, the peak is reached at `s = w`,
    and the rate stays at the end value from `s = n` on.

    >>> schedule = LinearDecay(total_steps=4)
    >>> [round(float(schedule(step)), 6) for step in (0, 1, 4)]
    [0.001, 0.00075, 0.0]

    Args:
        total_steps: int. Number of updates after which the end value holds;
            > `warmup_steps`.
        learning_rate: float. The peak, >= 0. Defaults to `1e-3`, the papers'
            value for Adafactor.
        warmup_steps: int. Updates before the peak, >= 0. Defaults to `0`.
        end_learning_rate: float. The last value, >= 0. Defaults to `0.0`.

    Call arguments:
        step: int scalar, number of updates done so far.

    Returns:
        float32 scalar, the learning rate of the next update.

    Raises:
        InvalidInputError: if a step count or a rate is out of range.

    Reference:
        Ni et al., 2021, Large Dual Encoders Are Generalizable Retrievers,
        https://arxiv.org/abs/2112.07899
    """

    def __init__(
        self,
        *,
        total_steps: int,
        learning_rate: float = 1e-3,
        warmup_steps: int = 0,
        end_learning_rate: float = 0.0,
    ) -> None:
        super().__init__()
        if warmup_steps < 0:
            raise InvalidInputError(
                "Expected `warmup_steps` >= 0. Received: "
                f"warmup_steps={warmup_steps}. Pass 0 for no warm-up."
            )
        if total_steps <= warmup_steps:
            raise InvalidInputError(
                "Expected `total_steps` > `warmup_steps`. Received: "
                f"total_steps={total_steps}, warmup_steps={warmup_steps}. "
                "Train longer or warm up for fewer steps."
            )
        # Written as "not >= 0" so that NaN is refused too.
        if not (learning_rate >= 0.0 and end_learning_rate >= 0.0):
            raise InvalidInputError(
                "Expected `learning_rate` and `end_learning_rate` >= 0. "
                f"Received: learning_rate={learning_rate}, "
                f"end_learning_rate={end_learning_rate}. Pass non-negative "
                "floats."
            )
        self.total_steps = int(total_steps)
        self.learning_rate = float(learning_rate)
        self.warmup_steps = int(warmup_steps)
        self.end_learning_rate = float(end_learning_rate)

    def __call__(self, step: Any) -> Any:
        step = ops.cast(step, "float32")
        warmup = float(self.warmup_steps)
        progress = (step - warmup) / (self.total_steps - warmup)
        progress = ops.clip(progress, 0.0, 1.0)
        decayed = (
            self.learning_rate * (1.0 - progress)
            + self.end_learning_rate * progress
        )
        rising = self.learning_rate * (step + 1.0) / (warmup + 1.0)
        return ops.where(step < warmup, rising, decayed)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return {
            "total_steps": self.total_steps,
            "learning_rate": self.learning_rate,
            "warmup_steps": self.warmup_steps,
            "end_learning_rate": self.end_learning_rate,
        }
