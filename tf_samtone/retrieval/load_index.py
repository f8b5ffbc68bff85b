"""Reading of a saved index of any kind."""

import os

from tf_samtone import _files
from tf_samtone.errors import MismatchError
from tf_samtone.retrieval.bm25_index import BM25Index
from tf_samtone.retrieval.exact_index import ExactIndex
from tf_samtone.retrieval.scann_index import ScannIndex

__all__ = ["load_index"]


def load_index(
    directory: str | os.PathLike[str],
    *,
    model_fingerprint: str | None = None,
    dim: int | None = None,
) -> ExactIndex | ScannIndex | BM25Index:
    """Read a saved index with the class that its manifest names.

    Args:
        directory: folder written by the `save` of an index.
        model_fingerprint: str. `DualEncoder.fingerprint()` of the model that
            will encode the queries; an index of another model, or of no
            model, is refused. Defaults to `None` (not checked).
        dim: int. Width of the query embeddings; another one is refused.
            Defaults to `None` (not checked).

    Returns:
        An `ExactIndex`, `ScannIndex` or `BM25Index`.

    Raises:
        CorruptFileError: if a file is missing or damaged.
        MismatchError: if the folder is no index, or model or width differ.
    """
    kind = _files.manifest_kind(directory)
    if kind == BM25Index.kind:
        if model_fingerprint is not None or dim is not None:
            raise MismatchError(
                f"Expected an index of embeddings in {directory}, made by "
                f"the model {model_fingerprint!r}. Received: a "
                f"{kind!r}, which takes texts. Load it without "
                "model_fingerprint and dim."
            )
        return BM25Index.load(directory)
    if kind == ExactIndex.kind:
        return ExactIndex.load(
            directory, model_fingerprint=model_fingerprint, dim=dim
        )
    if kind == ScannIndex.kind:
        return ScannIndex.load(
            directory, model_fingerprint=model_fingerprint, dim=dim
        )
    kinds = sorted([BM25Index.kind, ExactIndex.kind, ScannIndex.kind])
    raise MismatchError(
        f"Expected {directory} to be one of {kinds}. Received: {kind!r}. "
        "Pass the folder of an index."
    )
