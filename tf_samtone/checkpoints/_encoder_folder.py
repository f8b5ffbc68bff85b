"""The parts of a dual encoder in the files of Hugging Face's libraries."""

import functools
import pathlib
from collections.abc import Iterator
from typing import Any

import keras
import numpy as np

from tf_samtone.checkpoints._encoder_tensors import encoder_tensors
from tf_samtone.checkpoints._foreign_tokenizer import (
    check_foreign_tokenizer,
    write_foreign_tokenizer,
)
from tf_samtone.checkpoints._hugging_face_config import (
    CONFIG_FILE,
    FEED_FORWARD,
    POSITION_BIAS,
    SIZES,
)
from tf_samtone.checkpoints._json_file import write_json
from tf_samtone.checkpoints._tensor_files import (
    MAX_SHARD_BYTES,
    StoredTensor,
    write_tensor_folder,
    write_tensors,
)
from tf_samtone.errors import InvalidInputError
from tf_samtone.models.check_finite import check_finite
from tf_samtone.models.dual_encoder import DualEncoder
from tf_samtone.models.encoder_size import EncoderSize
from tf_samtone.models.t5_encoder import T5Encoder
from tf_samtone.models.tower import Tower

__all__ = [
    "TORCH_ACTIVATIONS",
    "activation_name",
    "check_exportable",
    "sides",
    "write_encoder",
    "write_projection",
]

# Keras' name to torch's class.
TORCH_ACTIVATIONS = {
    "linear": "torch.nn.modules.linear.Identity",
    "relu": "torch.nn.modules.activation.ReLU",
    "tanh": "torch.nn.modules.activation.Tanh",
}


def check_exportable(model: DualEncoder) -> None:
    """Raise unless Hugging Face's libraries have a place for every part.

    Args:
        model: `DualEncoder`.

    Raises:
        InvalidInputError: if a weight is not finite, an encoder is no
            `T5Encoder`, the vocabulary is not one of T5, or the activation of
            a projection is unknown there.
    """
    check_finite(model)
    for _, tower, preprocessor in sides(model):
        if not isinstance(tower.encoder, T5Encoder):
            raise InvalidInputError(
                "Expected towers around a `T5Encoder`. Received: "
                f"{type(tower.encoder).__name__}. Export a SavedModel, which "
                "holds any encoder."
            )
        check_foreign_tokenizer(preprocessor.tokenizer)
        name = activation_name(tower.projection)
        if name not in TORCH_ACTIVATIONS:
            raise InvalidInputError(
                "Expected a projection whose activation is one of "
                f"{list(TORCH_ACTIVATIONS)}. Received: activation={name!r}. "
                "Export a SavedModel, which holds any activation."
            )


def sides(model: DualEncoder) -> Iterator[tuple[str, Tower, Any]]:
    """Yield `"query"` and `"document"`, each with tower and preprocessor."""
    yield "query", model.query_tower, model.query_preprocessor
    yield "document", model.document_tower, model.document_preprocessor


def activation_name(projection: keras.layers.Dense | None) -> str:
    """Return Keras' name of a projection's activation, or a repr."""
    if projection is None:
        return "linear"
    name = keras.activations.serialize(projection.activation)
    return name if isinstance(name, str) else repr(name)


def write_encoder(
    directory: pathlib.Path,
    encoder: T5Encoder,
    tokenizer: Any,
    *,
    max_length: int,
    max_shard_bytes: int = MAX_SHARD_BYTES,
) -> None:
    """Write config, weights and tokenizer of a `T5EncoderModel`.

    Args:
        directory: folder to write to; created when absent.
        encoder: `T5Encoder`.
        tokenizer: `keras_hub.models.T5Tokenizer`.
        max_length: int. Tokens of a text.
        max_shard_bytes: int. See `write_tensor_folder`.
    """
    directory.mkdir(exist_ok=True)
    write_json(directory / CONFIG_FILE, _config(encoder))
    tensors = [
        StoredTensor(
            tensor.hugging_face,
            tensor.torch_shape,
            functools.partial(
                _values, tensor.variable_of(encoder), tensor.is_kernel
            ),
        )
        for tensor in encoder_tensors(EncoderSize.of_encoder(encoder))
    ]
    write_tensor_folder(directory, tensors, max_shard_bytes=max_shard_bytes)
    write_foreign_tokenizer(directory, tokenizer, max_length)


def write_projection(
    path: pathlib.Path, projection: keras.layers.Dense
) -> None:
    """Write the weights of a projection as those of torch's `Linear`.

    Args:
        path: safetensors file, with `linear.weight` float32 `[out, in]` and,
            if there is a bias, `linear.bias` float32 `[out]`.
        projection: `keras.layers.Dense`, built.
    """
    kernel = projection.kernel
    tensors = [
        StoredTensor(
            "linear.weight",
            tuple(kernel.shape)[::-1],
            functools.partial(_values, kernel, True),
        )
    ]
    if projection.use_bias:
        bias = projection.bias
        tensors.append(
            StoredTensor(
                "linear.bias",
                tuple(bias.shape),
                functools.partial(_values, bias, False),
            )
        )
    write_tensors(path, tensors)


def _values(variable: Any, transposed: bool) -> np.ndarray:
    values = keras.ops.convert_to_numpy(variable.value)
    return np.asarray(values.T if transposed else values, np.float32)


def _config(encoder: T5Encoder) -> dict[str, Any]:
    config = encoder.get_config()
    kind = {key: config[key] for key in ("activation", "use_gated_activation")}
    gated = config["use_gated_activation"]
    return {
        "architectures": ["T5EncoderModel"],
        "model_type": "t5",
        **{theirs: config[ours] for ours, theirs in SIZES.items()},
        **POSITION_BIAS,
        "feed_forward_proj": next(
            name for name, value in FEED_FORWARD.items() if value == kind
        ),
        "is_gated_act": gated,
        "dense_act_fn": "relu"
        if config["activation"] == "relu"
        else "gelu_new",
        "dropout_rate": config["dropout"],
        "layer_norm_epsilon": config["layer_norm_epsilon"],
        "pad_token_id": 0,
        "eos_token_id": 1,
        "is_encoder_decoder": False,
        "use_cache": False,
        # There as in published checkpoints: T5 1.0 ties, T5 1.1 does not.
        "tie_word_embeddings": not gated,
        "torch_dtype": "float32",
    }
