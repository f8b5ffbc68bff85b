"""Exact inner-product search over a matrix of embeddings."""

import os
import pathlib
from collections.abc import Sequence

import numpy as np

from tf_samtone.errors import CorruptFileError
from tf_samtone.retrieval import _storage
from tf_samtone.retrieval._top_k import top_k_positions
from tf_samtone.retrieval._validation import (
    check_document_embeddings,
    check_ids,
    check_k,
    check_positive,
    check_query_embeddings,
)

__all__ = ["ExactIndex"]

_EMBEDDINGS_NAME = "embeddings.npy"
# Rows that are scored in float64 at once: 64 MB at dim 768.
_RESCORE_ROWS = 8192


class ExactIndex:
    """Inner-product search that compares a query with every document.

    With unit vectors the scores are cosine similarities. Every returned
    score is a float64 inner product rounded to float32, so neither scores
    nor order depend on the batch size, and equal documents score equally.
    Ties are ordered by insertion.

    >>> import numpy as np
    >>> index = ExactIndex.build(np.eye(2, dtype="float32"), ["x", "y"])
    >>> scores, ids = index.search(np.array([[0.6, 0.8]]), 2)
    >>> ids[0].tolist()
    ['y', 'x']

    Use `build` or `load` to create one.

    Attributes:
        kind: str. Name of this kind of index in a manifest.
        ids: list of str `[num_docs]`, in insertion order.
        dim: int. Width of the embeddings.
        model_fingerprint: str. The model that made the embeddings, or `""`.
        is_exact: bool. Always `True`.
    """

    kind = "exact_index"
    is_exact = True

    def __init__(
        self, embeddings: np.ndarray, ids: list[str], model_fingerprint: str
    ) -> None:
        """Store checked values; use `build` to have them checked."""
        self._embeddings = embeddings
        self.ids = ids
        self._id_array = np.array(ids, dtype=object)
        self.dim = int(embeddings.shape[1])
        self.model_fingerprint = model_fingerprint
        squares = np.einsum("ij,ij->i", embeddings, embeddings)
        # 1.01 covers the rounding of the float32 sum.
        self._largest_norm = 1.01 * float(np.sqrt(squares.max()))

    @classmethod
    def build(
        cls,
        embeddings: np.ndarray,
        ids: Sequence[str],
        *,
        model_fingerprint: str = "",
    ) -> "ExactIndex":
        """Make an index of document embeddings.

        Args:
            embeddings: floating point `[num_docs, dim]`. C-contiguous
                float32 is not copied and must not be changed afterwards.
            ids: distinct, non-empty str, one per row.
            model_fingerprint: str. `DualEncoder.fingerprint()` of the model
                that made the embeddings. Defaults to `""` (unknown).

        Raises:
            InvalidInputError: for NaN, Inf, rows of zeros, an empty corpus,
                wrong shapes or duplicate ids.
        """
        matrix = check_document_embeddings(embeddings)
        names = check_ids(ids, len(matrix))
        return cls(matrix, names, model_fingerprint)

    def __len__(self) -> int:
        """Return the number of documents."""
        return len(self.ids)

    def search(
        self, queries: np.ndarray, k: int, *, batch_size: int = 64
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the `k` best documents of every query, best first.

        Args:
            queries: floating point `[num_queries, dim]`; may have no rows.
            k: int, from 1 to the number of documents.
            batch_size: int. Queries scored at once; memory is
                `batch_size * num_docs * 4` bytes. Defaults to `64`.

        Returns:
            `(scores, ids)`: float32 and object (str) `[num_queries, k]`.

        Raises:
            InvalidInputError: for NaN, a wrong width, or k out of range.
        """
        matrix = check_query_embeddings(queries, self.dim)
        k = check_k(k, len(self))
        check_positive("batch_size", batch_size)
        scores = np.empty((len(matrix), k), dtype=np.float32)
        positions = np.empty((len(matrix), k), dtype=np.int64)
        for start in range(0, len(matrix), batch_size):
            batch = matrix[start : start + batch_size]
            rough = batch @ self._embeddings.T
            for row, query in enumerate(batch):
                best, found = self._refine(query, rough[row], k)
                scores[start + row] = best
                positions[start + row] = found
        return scores, self._id_array[positions]

    def save(
        self, directory: str | os.PathLike[str], *, overwrite: bool = False
    ) -> None:
        """Write the index to a folder, complete or not at all.

        Args:
            directory: new or empty folder.
            overwrite: bool. Replace a saved index. Defaults to `False`.

        Raises:
            OutputExistsError: if the folder holds files.
        """
        with _storage.save_index_folder(
            directory,
            kind=self.kind,
            ids=self.ids,
            fields={
                "dim": self.dim,
                "metric": "dot_product",
                "model_fingerprint": self.model_fingerprint,
            },
            overwrite=overwrite,
        ) as folder:
            np.save(
                folder / _EMBEDDINGS_NAME, self._embeddings, allow_pickle=False
            )

    @classmethod
    def load(
        cls,
        directory: str | os.PathLike[str],
        *,
        model_fingerprint: str | None = None,
        dim: int | None = None,
    ) -> "ExactIndex":
        """Read an index written by `save`, after checking every file.

        Args:
            directory: folder of the index.
            model_fingerprint: str. Refuse an index made by another model.
                Defaults to `None` (not checked).
            dim: int. Refuse another width. Defaults to `None`.

        Raises:
            CorruptFileError: if a file is missing or damaged.
            MismatchError: if kind, version, model or width differ.
        """
        fields, ids = _storage.load_index_folder(directory, kind=cls.kind)
        _storage.check_model(
            directory, fields, model_fingerprint=model_fingerprint, dim=dim
        )
        path = pathlib.Path(directory) / _EMBEDDINGS_NAME
        embeddings = np.load(path, allow_pickle=False)
        expected = (fields["count"], fields["dim"])
        if embeddings.shape != expected or embeddings.dtype != np.float32:
            raise CorruptFileError(
                f"Expected float32 {expected} in {path}. Received: "
                f"{embeddings.dtype} {embeddings.shape}. Rebuild the index."
            )
        return cls(embeddings, ids, fields["model_fingerprint"])

    def _refine(
        self, query: np.ndarray, rough: np.ndarray, k: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Choose the best `k` by float64 scores of the plausible documents.

        A float32 matmul rounds equal rows differently, depending on their
        place and on the batch. The slack below exceeds that rounding error,
        so that every document that may belong to the best `k` is rescored.
        """
        wide = query.astype(np.float64)
        threshold = np.partition(rough, len(rough) - k)[len(rough) - k]
        slack = (
            self.dim
            * float(np.finfo(np.float32).eps)
            * float(np.linalg.norm(wide))
            * self._largest_norm
        )
        candidates = np.flatnonzero(rough >= threshold - slack)
        exact = np.empty(len(candidates), dtype=np.float32)
        for start in range(0, len(candidates), _RESCORE_ROWS):
            rows = candidates[start : start + _RESCORE_ROWS]
            exact[start : start + _RESCORE_ROWS] = (
                self._embeddings[rows].astype(np.float64) @ wide
            )
        best = top_k_positions(exact, k)
        return exact[best], candidates[best]
