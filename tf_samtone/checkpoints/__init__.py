"""Weights of T5 encoders from the formats of other libraries, and to them."""

from typing import TYPE_CHECKING

from tf_samtone._lazy import lazy_members

# Imported when first used: folders are also inspected by programs that have
# no need of TensorFlow.
if TYPE_CHECKING:
    from tf_samtone.checkpoints._hugging_face_config import (
        is_hugging_face_folder,
        read_hugging_face_config,
    )
    from tf_samtone.checkpoints._sbert_modules import (
        is_sentence_transformers_folder,
    )
    from tf_samtone.checkpoints._t5x_arrays import is_t5x_checkpoint
    from tf_samtone.checkpoints.dual_encoder_preset import load_dual_encoder
    from tf_samtone.checkpoints.folder_report import FolderReport
    from tf_samtone.checkpoints.hugging_face_t5 import load_hugging_face_t5
    from tf_samtone.checkpoints.inspect_folder import (
        FOLDER_KINDS,
        inspect_folder,
    )
    from tf_samtone.checkpoints.keras_hub_folder import (
        is_our_keras_hub_preset,
    )
    from tf_samtone.checkpoints.keras_hub_preset import (
        load_keras_hub_dual_encoder,
    )
    from tf_samtone.checkpoints.keras_hub_t5 import load_keras_hub_t5
    from tf_samtone.checkpoints.model_card import ModelCard
    from tf_samtone.checkpoints.save_hugging_face_t5 import (
        save_hugging_face_t5,
    )
    from tf_samtone.checkpoints.save_keras_hub_preset import (
        save_keras_hub_preset,
    )
    from tf_samtone.checkpoints.save_sentence_transformers import (
        save_sentence_transformers,
    )
    from tf_samtone.checkpoints.sentence_transformers import (
        load_sentence_transformers,
    )
    from tf_samtone.checkpoints.t5x import load_t5x, load_t5x_encoder

__all__ = [
    "FOLDER_KINDS",
    "FolderReport",
    "ModelCard",
    "inspect_folder",
    "is_hugging_face_folder",
    "is_our_keras_hub_preset",
    "is_sentence_transformers_folder",
    "is_t5x_checkpoint",
    "load_dual_encoder",
    "load_hugging_face_t5",
    "load_keras_hub_dual_encoder",
    "load_keras_hub_t5",
    "load_sentence_transformers",
    "load_t5x",
    "load_t5x_encoder",
    "read_hugging_face_config",
    "save_hugging_face_t5",
    "save_keras_hub_preset",
    "save_sentence_transformers",
]

__getattr__, __dir__ = lazy_members(
    __name__,
    {
        "FOLDER_KINDS": "inspect_folder",
        "FolderReport": "folder_report",
        "ModelCard": "model_card",
        "inspect_folder": "inspect_folder",
        "is_hugging_face_folder": "_hugging_face_config",
        "is_our_keras_hub_preset": "keras_hub_folder",
        "is_sentence_transformers_folder": "_sbert_modules",
        "is_t5x_checkpoint": "_t5x_arrays",
        "load_dual_encoder": "dual_encoder_preset",
        "load_hugging_face_t5": "hugging_face_t5",
        "load_keras_hub_dual_encoder": "keras_hub_preset",
        "load_keras_hub_t5": "keras_hub_t5",
        "load_sentence_transformers": "sentence_transformers",
        "load_t5x": "t5x",
        "load_t5x_encoder": "t5x",
        "read_hugging_face_config": "_hugging_face_config",
        "save_hugging_face_t5": "save_hugging_face_t5",
        "save_keras_hub_preset": "save_keras_hub_preset",
        "save_sentence_transformers": "save_sentence_transformers",
    },
)
