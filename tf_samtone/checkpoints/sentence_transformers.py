"""Dual encoders from sentence-transformers folders."""

import functools
import os
import pathlib
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from tf_samtone.checkpoints._assign import assign_streamed
from tf_samtone.checkpoints._sbert_modules import (
    SbertTower,
    is_sentence_transformers_folder,
    read_towers,
)
from tf_samtone.checkpoints._sbert_settings import SbertDense, read_optional
from tf_samtone.checkpoints._sbert_texts import read_lengths, read_prefixes
from tf_samtone.checkpoints._tensor_folder import TensorFolder
from tf_samtone.checkpoints.hugging_face_t5 import (
    assign_hugging_face_t5,
    load_hugging_face_t5,
    read_hugging_face_config,
)
from tf_samtone.errors import MismatchError
from tf_samtone.models.architectures import check_vocabulary
from tf_samtone.models.dual_encoder import DualEncoder
from tf_samtone.models.encoder_size import EncoderSize
from tf_samtone.models.load_options import LoadOptions
from tf_samtone.models.tower import projection_layer
from tf_samtone.text import load_tokenizer

__all__ = ["is_sentence_transformers_folder", "load_sentence_transformers"]

# What `save_sentence_transformers` knows and the format has no place for.
OWN_FILE = "tf_samtone.json"
_SHARED_TABLES = ("ade-ste", "ade-fte")


def load_sentence_transformers(
    directory: str | os.PathLike[str],
    options: LoadOptions | None = None,
    *,
    pickled_files: Sequence[str] = (),
    model_class: type[DualEncoder] = DualEncoder,
) -> DualEncoder:
    """Load a T5 of sentence-transformers, e.g. `gtr-t5-*`, `sentence-t5-*`.

    Modules of either generation of names: Transformer, Pooling (mean), at
    most one Dense, at most one Normalize; or a Router with one such list for
    queries and one for documents. Prompts become prefixes. A folder with one
    list becomes one tower unless `options` ask for two, which then start
    equal.

    transformers takes a literal `</s>` or `<extra_id_0>` in a text for the
    special token; here it is text. Other texts get the same embeddings.

    Args:
        directory: folder with `modules.json`.
        options: `LoadOptions`. Defaults to what the folder says.
        pickled_files: names of pickled weight files, relative to the folder,
            that may be read if there are no others, e.g.
            `("pytorch_model.bin", "2_Dense/pytorch_model.bin")`. Needs torch.
            Defaults to none.
        model_class: `DualEncoder` or a subclass.

    Returns:
        `DualEncoder`.

    Raises:
        CorruptFileError: if a file is missing or malformed, or a weight is
            not finite.
        InvalidInputError: if weights are pickled, or there is no
            `spiece.model`.
        MismatchError: if the modules are others than these, the weights do
            not fit them, or an option contradicts the weights.
    """
    root = pathlib.Path(directory)
    options = options or LoadOptions()
    towers = read_towers(root)
    own = read_optional(root / OWN_FILE)
    sizes = [_read_size(tower) for tower in towers]
    stored = {
        "projection_dim": towers[0].dense.out_features if towers[0].dense else 0
    }
    options.refuse_others(root, **stored)
    tokenizer = load_tokenizer(towers[0].folder)
    check_vocabulary(tokenizer, sizes[0])
    resolved = options.resolved(
        **stored,
        **read_prefixes(root, towers),
        **(read_lengths(towers) | _own_lengths(own)),
        normalize=towers[0].normalize,
        architecture=_stored_architecture(root, towers, own, options),
    )
    if len(towers) == 2:
        _check_alike(root, towers, sizes, tokenizer)
    model = model_class.from_encoder(
        load_hugging_face_t5(
            towers[0].folder,
            dtype=options.dtype,
            dropout=options.dropout,
            pickled_files=_below(root, towers[0].folder, pickled_files),
        ),
        tokenizer,
        projection=_load_dense(root, towers[0].dense, pickled_files),
        **resolved,
    )
    if len(towers) == 2:
        _load_documents(root, model, towers[1], pickled_files)
    return model


def _read_size(tower: SbertTower) -> EncoderSize:
    config = read_hugging_face_config(tower.folder)
    size = EncoderSize(
        **{k: config[k] for k in EncoderSize.__dataclass_fields__}
    )
    # The pooling's own width is wrong in published folders; this one is not.
    if tower.dense and tower.dense.in_features != size.hidden_dim:
        raise MismatchError(
            f"Expected in_features={size.hidden_dim}, the encoder's width, in "
            f"{tower.dense.folder}. Received: "
            f"in_features={tower.dense.in_features}. Use the Dense module "
            "that belongs to the encoder."
        )
    return size


def _own_lengths(own: dict[str, Any]) -> dict[str, Any]:
    """Return the lengths of both sides, of which the format has but one."""
    names = ("query_length", "document_length")
    return {name: own[name] for name in names if name in own}


def _stored_architecture(
    root: pathlib.Path,
    towers: list[SbertTower],
    own: dict[str, Any],
    options: LoadOptions,
) -> str | None:
    if len(towers) == 1:
        return None
    # One folder that both have is behind the Router.
    shares_dense = towers[0].dense and towers[0].dense == towers[1].dense
    architecture = own.get("architecture", "ade-spl" if shares_dense else "ade")
    options.refuse_others(root, architecture=architecture)
    return architecture


def _check_alike(
    root: pathlib.Path,
    towers: list[SbertTower],
    sizes: list[EncoderSize],
    tokenizer: Any,
) -> None:
    """Refuse two towers that differ in more than their weights."""
    shapes = [(tower.dense, tower.normalize) for tower in towers]
    denses = [
        dense and (dense.out_features, dense.use_bias, dense.activation)
        for dense, _ in shapes
    ]
    is_alike = {
        "sizes": sizes[0] == sizes[1],
        "Dense modules": denses[0] == denses[1],
        "normalisation": shapes[0][1] == shapes[1][1],
        "vocabulary": load_tokenizer(towers[1].folder).proto == tokenizer.proto,
    }
    different = [name for name, alike in is_alike.items() if not alike]
    if different:
        raise MismatchError(
            f"Expected two towers in {root} that differ in weights only. "
            f"Received: other {', '.join(different)}. Such a model cannot be "
            "loaded."
        )


def _load_dense(
    root: pathlib.Path, dense: SbertDense | None, pickled_files: Sequence[str]
) -> keras.layers.Dense | None:
    if dense is None:
        return None
    layer = projection_layer(
        dense.out_features,
        use_bias=dense.use_bias,
        activation=dense.activation,
    )
    layer.build((None, dense.in_features))
    _assign_dense(root, dense, layer, pickled_files)
    return layer


def _assign_dense(
    root: pathlib.Path,
    dense: SbertDense,
    layer: keras.layers.Dense,
    pickled_files: Sequence[str],
) -> None:
    folder = TensorFolder(
        dense.folder, pickled_files=_below(root, dense.folder, pickled_files)
    )
    expected: dict[str, tuple[int, ...]] = {
        "linear.weight": (dense.out_features, dense.in_features)
    }
    if dense.use_bias:
        expected["linear.bias"] = (dense.out_features,)
    if folder.shapes != expected:
        raise MismatchError(
            f"Expected in {dense.folder} tensors of the shapes {expected}. "
            f"Received: {folder.shapes}. Use the config that belongs to the "
            "weights."
        )
    for name in expected:
        is_kernel = name == "linear.weight"
        assign_streamed(
            layer.kernel if is_kernel else layer.bias,
            functools.partial(folder.read_rows, name),
            transposed=is_kernel,
        )


def _load_documents(
    root: pathlib.Path,
    model: DualEncoder,
    stored: SbertTower,
    pickled_files: Sequence[str],
) -> None:
    """Give the document tower, so far a copy, its own weights."""
    tower = model.document_tower
    table = tower.encoder.token_embedding.embeddings
    is_shared = model.architecture in _SHARED_TABLES
    before = table.numpy() if is_shared else None
    assign_hugging_face_t5(
        stored.folder,
        tower.encoder,
        pickled_files=_below(root, stored.folder, pickled_files),
    )
    if before is not None and not np.array_equal(before, table.numpy()):
        raise MismatchError(
            f"Expected one token embedder in both towers of {root}, as "
            f"architecture={model.architecture!r} says. Received: two "
            "different ones. Correct the architecture in "
            f"{OWN_FILE} to 'ade'."
        )
    if stored.dense and tower.projection is not model.query_tower.projection:
        _assign_dense(root, stored.dense, tower.projection, pickled_files)


def _below(
    root: pathlib.Path, folder: pathlib.Path, pickled_files: Sequence[str]
) -> list[str]:
    """Return those of the named files that lie in a folder, without it."""
    paths = [root / name for name in pickled_files]
    return [path.name for path in paths if path.parent == folder]
