"""Encoders and dual encoders from checkpoints of t5x and t5x_retrieval."""

import dataclasses
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from tf_samtone.checkpoints._assign import assign_streamed
from tf_samtone.checkpoints._t5x_arrays import T5xArrays
from tf_samtone.checkpoints._t5x_layout import (
    T5xTower,
    array_names,
    check_arrays,
    common_size,
    projection_width,
    read_t5x_size,
    read_t5x_towers,
)
from tf_samtone.errors import InvalidInputError, MismatchError
from tf_samtone.models.architectures import check_vocabulary
from tf_samtone.models.dual_encoder import DualEncoder
from tf_samtone.models.encoder_size import EncoderSize
from tf_samtone.models.load_options import LoadOptions
from tf_samtone.models.t5_encoder import T5Encoder
from tf_samtone.models.tower import projection_layer

__all__ = ["load_t5x", "load_t5x_encoder"]


def load_t5x(
    directory: str | os.PathLike[str],
    tokenizer: Any,
    options: LoadOptions | None = None,
    *,
    activation: str | None = None,
    model_class: type[DualEncoder] = DualEncoder,
) -> DualEncoder:
    """Load a t5x checkpoint as a dual encoder.

    A dual encoder of t5x_retrieval keeps its projection. A plain T5 gets a
    new one; its decoder is left alone. An asymmetric dual encoder, with a left
    tower for queries and a right one for documents, becomes `"ade"`, or
    `"ade-ste"` if its towers share their token embeddings. Arrays are copied a
    few rows at a time, so that memory stays near that of the model.

    Args:
        directory: folder `checkpoint_<step>` of t5x.
        tokenizer: `keras_hub.models.T5Tokenizer`, see
            `tf_samtone.text.load_tokenizer`. t5x checkpoints have none.
        options: `LoadOptions`, e.g. with `architecture="ade"` for weights of
            one tower. Defaults to its defaults.
        activation: str. `"gelu"` (tanh approximation) or `"relu"`; the
            checkpoint does not say. Defaults to `None`: `"gelu"` if the
            feed-forward part is gated, `"relu"` if not.
        model_class: `DualEncoder` or a subclass.

    Returns:
        The dual encoder with its weights.

    Raises:
        CorruptFileError: if a file is missing or malformed, or a weight is
            not finite.
        InvalidInputError: if there is no tokenizer, it has more pieces than
            there are embedding rows, or an option is out of range.
        MismatchError: if the weights are not those of T5 encoders, or an
            option contradicts them.
        MissingDependencyError: if msgpack or tensorstore is not installed.
    """
    options = options or LoadOptions()
    if tokenizer is None:
        raise InvalidInputError(
            "Expected the tokenizer of the weights. Received: tokenizer=None; "
            "t5x checkpoints have none. Get the SentencePiece model that the "
            "gin config names (T5's is cc_all.32000.100extra), and pass "
            "tf_samtone.text.load_tokenizer(path)."
        )
    arrays = T5xArrays(directory)
    towers = read_t5x_towers(arrays)
    size = common_size(arrays, towers, activation)
    width = projection_width(arrays, towers)
    check_arrays(arrays, towers, size, width)
    check_vocabulary(tokenizer, size)
    fixed: dict[str, Any] = {"projection_dim": width} if width else {}
    if len(towers) == 2:
        shared = towers[0].embedding == towers[1].embedding
        fixed["architecture"] = "ade-ste" if shared else "ade"
    options.refuse_others(directory, **fixed)
    encoder = _new_encoder(size, options.dtype, options.dropout)
    _fill_encoder(encoder, arrays, towers[0], size)
    projection = None
    if width:
        projection = projection_layer(width)
        projection.build((None, size.hidden_dim))
        _fill_projection(projection, arrays, towers[0])
    model = model_class.from_encoder(
        encoder, tokenizer, projection=projection, **options.resolved(**fixed)
    )
    if len(towers) == 2:
        # So far it has the weights of the left tower.
        right = model.document_tower
        _fill_encoder(right.encoder, arrays, towers[1], size)
        _fill_projection(right.projection, arrays, towers[1])
    return model


def load_t5x_encoder(
    directory: str | os.PathLike[str],
    dtype: Any = None,
    *,
    activation: str | None = None,
    dropout: float | None = None,
) -> T5Encoder:
    """Load the encoder of a t5x checkpoint.

    Args:
        directory: folder `checkpoint_<step>` of t5x. A decoder and a
            projection are left alone.
        dtype: str or dtype policy of the encoder. Defaults to `None`, the
            global policy.
        activation: str. See `load_t5x`.
        dropout: float or `None`. Defaults to `0.1`.

    Returns:
        The encoder with its weights.

    Raises:
        CorruptFileError: if a file is missing or malformed, or a weight is
            not finite.
        MismatchError: if the weights are not those of one T5 encoder.
        MissingDependencyError: if msgpack or tensorstore is not installed.
    """
    arrays = T5xArrays(directory)
    towers = read_t5x_towers(arrays)
    if len(towers) != 1:
        raise MismatchError(
            f"Expected one encoder in {directory}. Received: "
            f"{[tower.encoder for tower in towers]}. Load them with "
            "`load_t5x`, as a dual encoder."
        )
    size = read_t5x_size(arrays, towers[0], activation)
    check_arrays(arrays, towers, size, projection_width(arrays, towers))
    encoder = _new_encoder(size, dtype, dropout)
    _fill_encoder(encoder, arrays, towers[0], size)
    return encoder


def _new_encoder(
    size: EncoderSize, dtype: Any, dropout: float | None
) -> T5Encoder:
    chosen = {} if dropout is None else {"dropout": dropout}
    return T5Encoder(**dataclasses.asdict(size), **chosen, dtype=dtype)


def _fill_encoder(
    encoder: T5Encoder, arrays: T5xArrays, tower: T5xTower, size: EncoderSize
) -> None:
    for tensor, name in array_names(size, tower):
        variable = tensor.variable_of(encoder)
        # The table of position biases is [heads, buckets] there.
        transposed = name.endswith(".rel_embedding")
        assign_streamed(
            variable,
            _row_reader(arrays, name, tensor.shape),
            transposed=transposed,
        )


def _fill_projection(
    projection: Any, arrays: T5xArrays, tower: T5xTower
) -> None:
    if tower.projection is not None:
        name = tower.projection
        assign_streamed(
            projection.kernel, _row_reader(arrays, name, arrays.shapes[name])
        )


def _row_reader(
    arrays: T5xArrays, name: str, shape: tuple[int, ...]
) -> Callable[[int, int], np.ndarray]:
    """Make a reader of rows that joins the axes of heads, if there are any."""
    stored = arrays.shapes[name]
    if len(stored) == len(shape):
        return lambda start, stop: arrays.read_rows(name, start, stop)
    # 1 for [hidden, heads, width], and `width` for [heads, width, hidden].
    rows = shape[0] // stored[0]

    def read(start: int, stop: int) -> np.ndarray:
        first, last = start // rows, -(-stop // rows)
        block = arrays.read_rows(name, first, last).reshape(-1, shape[1])
        return block[start - first * rows : stop - first * rows]

    return read
