"""Contrastive losses for dual encoders."""

from tf_samtone.losses.contrastive_loss import ContrastiveLoss
from tf_samtone.losses.diagnostics import contrastive_diagnostics
from tf_samtone.losses.gte_loss import GTELoss
from tf_samtone.losses.in_batch_softmax_loss import InBatchSoftmaxLoss
from tf_samtone.losses.learned_temperature import LearnedTemperature
from tf_samtone.losses.pair_loss import PairLoss
from tf_samtone.losses.samtone_loss import SamToNeLoss
from tf_samtone.losses.triplet_loss import TripletLoss

__all__ = [
    "ContrastiveLoss",
    "GTELoss",
    "InBatchSoftmaxLoss",
    "LearnedTemperature",
    "PairLoss",
    "SamToNeLoss",
    "TripletLoss",
    "contrastive_diagnostics",
]
