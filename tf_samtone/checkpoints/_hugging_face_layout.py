"""Names and shapes of the encoder in a Hugging Face T5 folder."""

import os

from tf_samtone.checkpoints._encoder_tensors import (
    EncoderTensor,
    encoder_tensors,
)
from tf_samtone.checkpoints._hugging_face_config import CONFIG_FILE
from tf_samtone.checkpoints._tensor_folder import TensorFolder
from tf_samtone.errors import MismatchError
from tf_samtone.models.encoder_size import EncoderSize

__all__ = ["stored_tensors"]

_EMBEDDING_NAMES = ("shared.weight", "encoder.embed_tokens.weight")
# The rest of a full encoder-decoder checkpoint.
_IGNORED_PREFIXES = ("decoder.", "lm_head.")


def stored_tensors(
    directory: str | os.PathLike[str],
    folder: TensorFolder,
    size: EncoderSize,
) -> list[tuple[str, EncoderTensor]]:
    """Pair the encoder's tensors with their names in the folder.

    Args:
        directory: the folder, for messages.
        folder: `TensorFolder` of it.
        size: `EncoderSize` that its config implies.

    Returns:
        list of (name, `EncoderTensor`), in the order of `encoder_tensors`.

    Raises:
        MismatchError: names missing, surplus and misshapen tensors.
    """
    embedding, *others = encoder_tensors(size)
    stored_embedding = next(
        (name for name in _EMBEDDING_NAMES if name in folder.shapes),
        embedding.hugging_face,
    )
    tensors = [
        (stored_embedding, embedding),
        *[(tensor.hugging_face, tensor) for tensor in others],
    ]
    expected = {name for name, _ in tensors}
    missing = sorted(expected - folder.shapes.keys())
    surplus = sorted(
        name
        for name in folder.shapes.keys() - expected
        if not name.startswith(_IGNORED_PREFIXES)
        and name not in _EMBEDDING_NAMES
    )
    if missing or surplus:
        raise MismatchError(
            f"Expected in {directory} the tensors of the encoder that its "
            f"{CONFIG_FILE} describes. Received: missing={missing}, "
            f"surplus={surplus}. Use the config that belongs to the weights."
        )
    for name, tensor in tensors:
        if folder.shapes[name] != tensor.torch_shape:
            raise MismatchError(
                f"Expected {name} of shape {tensor.torch_shape}, as "
                f"{CONFIG_FILE} in {directory} implies. Received: "
                f"shape={folder.shapes[name]}. Use the config that belongs "
                "to the weights."
            )
    return tensors
