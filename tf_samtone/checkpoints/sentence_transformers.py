"""Dual encoders from sentence-transformers folders."""

import functools
import os
import pathlib
from collections.abc import Sequence

import keras
import numpy as np

from tf_samtone.checkpoints._assign import assign_streamed
from tf_samtone.checkpoints._sbert_model import (
    OWN_FILE,
    check_alike,
    check_dense_tensors,
    own_lengths,
    read_size,
    stored_architecture,
)
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
)
from tf_samtone.errors import MismatchError
from tf_samtone.models.architectures import check_vocabulary
from tf_samtone.models.dual_encoder import DualEncoder
from tf_samtone.models.load_options import LoadOptions
from tf_samtone.models.tower import projection_layer
from tf_samtone.text import load_tokenizer

__all__ = ["is_sentence_transformers_folder", "load_sentence_transformers"]

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
    sizes = [read_size(tower) for tower in towers]
    stored = {
        "projection_dim": towers[0].dense.out_features if towers[0].dense else 0
    }
    options.refuse_others(root, **stored)
    tokenizer = load_tokenizer(towers[0].folder)
    check_vocabulary(tokenizer, sizes[0])
    architecture = stored_architecture(towers, own)
    if architecture is not None:
        options.refuse_others(root, architecture=architecture)
    resolved = options.resolved(
        **stored,
        **read_prefixes(root, towers),
        **(read_lengths(towers) | own_lengths(own)),
        normalize=towers[0].normalize,
        architecture=architecture,
    )
    if len(towers) == 2:
        check_alike(root, towers, sizes)
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
    for name in check_dense_tensors(dense, folder):
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
