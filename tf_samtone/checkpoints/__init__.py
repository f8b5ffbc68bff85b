"""Weights of T5 encoders from the formats of other libraries, and to them."""

from typing import TYPE_CHECKING

from tf_samtone._lazy import lazy_members

# Imported when first used: folders are also inspected by programs that have
# no need of TensorFlow.
if TYPE_CHECKING:
    from tf_samtone.checkpoints.dual_encoder_preset import load_dual_encoder
    from tf_samtone.checkpoints.hugging_face_t5 import (
        is_hugging_face_folder,
        load_hugging_face_t5,
        read_hugging_face_config,
    )
    from tf_samtone.checkpoints.keras_hub_t5 import load_keras_hub_t5

__all__ = [
    "is_hugging_face_folder",
    "load_dual_encoder",
    "load_hugging_face_t5",
    "load_keras_hub_t5",
    "read_hugging_face_config",
]

__getattr__, __dir__ = lazy_members(
    __name__,
    {
        "is_hugging_face_folder": "hugging_face_t5",
        "load_dual_encoder": "dual_encoder_preset",
        "load_hugging_face_t5": "hugging_face_t5",
        "load_keras_hub_t5": "keras_hub_t5",
        "read_hugging_face_config": "hugging_face_t5",
    },
)
