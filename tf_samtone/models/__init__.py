"""T5 encoders, towers and dual encoders."""

from tf_samtone.models.architectures import ARCHITECTURES, build_towers
from tf_samtone.models.dual_encoder import DualEncoder
from tf_samtone.models.l2_normalization import L2Normalization
from tf_samtone.models.masked_mean_pooling import MaskedMeanPooling
from tf_samtone.models.t5_encoder import T5Encoder
from tf_samtone.models.tower import Tower, projection_layer

__all__ = [
    "ARCHITECTURES",
    "DualEncoder",
    "L2Normalization",
    "MaskedMeanPooling",
    "T5Encoder",
    "Tower",
    "build_towers",
    "projection_layer",
]
