"""Weights of T5 encoders from the formats of other libraries."""

from tf_samtone.checkpoints.hugging_face_t5 import (
    is_hugging_face_folder,
    load_hugging_face_t5,
    read_hugging_face_config,
)
from tf_samtone.checkpoints.keras_hub_t5 import load_keras_hub_t5

__all__ = [
    "is_hugging_face_folder",
    "load_hugging_face_t5",
    "load_keras_hub_t5",
    "read_hugging_face_config",
]
