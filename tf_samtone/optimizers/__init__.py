"""Optimizers and learning-rate schedules of the papers."""

from tf_samtone.optimizers.adafactor import Adafactor
from tf_samtone.optimizers.linear_decay import LinearDecay

__all__ = ["Adafactor", "LinearDecay"]
