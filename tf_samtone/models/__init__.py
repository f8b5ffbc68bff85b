"""T5 encoders, towers and dual encoders."""

from typing import TYPE_CHECKING

from tf_samtone._lazy import lazy_members

# Imported when first used: the sizes are also read by programs that have no
# need of TensorFlow.
if TYPE_CHECKING:
    from tf_samtone.models.architectures import ARCHITECTURES, build_towers
    from tf_samtone.models.dual_encoder import DualEncoder
    from tf_samtone.models.encoder_size import EncoderSize
    from tf_samtone.models.l2_normalization import L2Normalization
    from tf_samtone.models.load_options import LoadOptions
    from tf_samtone.models.masked_mean_pooling import MaskedMeanPooling
    from tf_samtone.models.model_size import ModelSize
    from tf_samtone.models.model_sizes import find_model_size
    from tf_samtone.models.paper_defaults import PaperDefaults
    from tf_samtone.models.t5_encoder import T5Encoder
    from tf_samtone.models.t5_text_embedder import T5TextEmbedder
    from tf_samtone.models.t5_text_embedder_preprocessor import (
        T5TextEmbedderPreprocessor,
    )
    from tf_samtone.models.tower import Tower, projection_layer

__all__ = [
    "ARCHITECTURES",
    "DualEncoder",
    "EncoderSize",
    "L2Normalization",
    "LoadOptions",
    "MaskedMeanPooling",
    "ModelSize",
    "PaperDefaults",
    "T5Encoder",
    "T5TextEmbedder",
    "T5TextEmbedderPreprocessor",
    "Tower",
    "build_towers",
    "find_model_size",
    "projection_layer",
]

__getattr__, __dir__ = lazy_members(
    __name__,
    {
        "ARCHITECTURES": "architectures",
        "DualEncoder": "dual_encoder",
        "EncoderSize": "encoder_size",
        "L2Normalization": "l2_normalization",
        "LoadOptions": "load_options",
        "MaskedMeanPooling": "masked_mean_pooling",
        "ModelSize": "model_size",
        "PaperDefaults": "paper_defaults",
        "T5Encoder": "t5_encoder",
        "T5TextEmbedder": "t5_text_embedder",
        "T5TextEmbedderPreprocessor": "t5_text_embedder_preprocessor",
        "Tower": "tower",
        "build_towers": "architectures",
        "find_model_size": "model_sizes",
        "projection_layer": "tower",
    },
)
