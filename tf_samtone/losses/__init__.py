"""Contrastive losses for dual encoders."""

from tf_samtone.losses.contrastive_loss import ContrastiveLoss
from tf_samtone.losses.in_batch_softmax_loss import InBatchSoftmaxLoss
from tf_samtone.losses.samtone_loss import SamToNeLoss

__all__ = ["ContrastiveLoss", "InBatchSoftmaxLoss", "SamToNeLoss"]
