"""Approximate inner-product search with ScaNN."""

import importlib
import importlib.metadata
import logging
import os
import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from tf_samtone.errors import (
    CorruptFileError,
    InvalidInputError,
    MismatchError,
    MissingDependencyError,
)
from tf_samtone.retrieval import _storage
from tf_samtone.retrieval._scann_settings import ScannSettings
from tf_samtone.retrieval._validation import (
    check_document_embeddings,
    check_ids,
    check_k,
    check_query_embeddings,
)
from tf_samtone.retrieval.exact_index import ExactIndex

__all__ = ["ScannIndex"]

_LOGGER = logging.getLogger("tf_samtone")
_SCANN_FOLDER = "scann"


class ScannIndex:
    """Inner-product search with ScaNN: a tree, quantisation and reordering.

    Returned scores are exact float32 inner products, because candidates are
    rescored; only the choice of candidates is approximate. Two builds of
    the same data give the same index. Ties are ordered by insertion among
    the documents found.

    Use `build` or `load` to create one. ScaNN runs on Linux, x86-64 with
    AVX or ARM.

    Attributes:
        kind: str. Name of this kind of index in a manifest.
        ids: list of str `[num_docs]`, in insertion order.
        dim: int. Width of the embeddings.
        model_fingerprint: str. The model that made the embeddings, or `""`.
        settings: ScannSettings. What the index was built with.
        is_exact: bool. Whether every document is compared.

    Reference:
        Guo et al., 2020, Accelerating Large-Scale Inference with
        Anisotropic Vector Quantization, https://arxiv.org/abs/1908.10396
    """

    kind = "scann_index"

    def __init__(
        self,
        searcher: Any,
        ids: list[str],
        settings: ScannSettings,
        *,
        dim: int,
        model_fingerprint: str,
    ) -> None:
        """Store checked values; use `build` to have them checked."""
        self._searcher = searcher
        self._id_array = np.array(ids, dtype=object)
        self.ids = ids
        self.settings = settings
        self.dim = dim
        self.model_fingerprint = model_fingerprint
        self.is_exact = settings.method == "brute_force"

    @classmethod
    def build(
        cls,
        embeddings: np.ndarray,
        ids: Sequence[str],
        *,
        model_fingerprint: str = "",
        method: str | None = None,
        num_leaves: int | None = None,
        num_leaves_to_search: int | None = None,
        reordering_num_neighbors: int | None = None,
    ) -> "ScannIndex":
        """Train ScaNN on document embeddings and make an index.

        Args:
            embeddings: floating point `[num_docs, dim]`.
            ids: distinct, non-empty str, one per row.
            model_fingerprint: str. `DualEncoder.fingerprint()` of the model
                that made the embeddings. Defaults to `""` (unknown).
            method: `"brute_force"`, `"hash"` (quantised scores, then
                reordering) or `"tree"` (the same inside of partitions).
                Defaults to `None`: `"tree"` if `num_leaves` is given, else
                brute force below 20,000 documents, hash below 100,000, and
                tree from there on.
            num_leaves: int. Partitions of the tree. Defaults to about
                `sqrt(num_docs)`.
            num_leaves_to_search: int. Partitions visited per query.
                Defaults to a tenth of `num_leaves`, rounded up.
            reordering_num_neighbors: int. Candidates rescored exactly; at
                least `10 * k` are used. Defaults to `200`.

        Raises:
            InvalidInputError: for NaN, Inf, rows of zeros, an empty corpus,
                wrong shapes, duplicate ids or impossible settings.
            MissingDependencyError: if ScaNN cannot be imported.
        """
        matrix = check_document_embeddings(embeddings)
        names = check_ids(ids, len(matrix))
        settings = ScannSettings.resolve(
            len(matrix),
            method=method,
            num_leaves=num_leaves,
            num_leaves_to_search=num_leaves_to_search,
            reordering_num_neighbors=reordering_num_neighbors,
        )
        if len(matrix) > 1 and (matrix == matrix[0]).all():
            _LOGGER.warning(
                "All %d document embeddings are equal; the encoder has "
                "collapsed and search results carry no information.",
                len(matrix),
            )
        searcher = settings.build_searcher(_scann_module(), matrix)
        return cls(
            searcher,
            names,
            settings,
            dim=matrix.shape[1],
            model_fingerprint=model_fingerprint,
        )

    def __len__(self) -> int:
        """Return the number of documents."""
        return len(self.ids)

    def search(
        self,
        queries: np.ndarray,
        k: int,
        *,
        num_leaves_to_search: int | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return `k` good documents of every query, best first.

        If the visited partitions hold fewer than `k` documents, that query
        is searched again in all partitions, so `k` real results come back.

        Args:
            queries: floating point `[num_queries, dim]`; may have no rows.
            k: int, from 1 to the number of documents.
            num_leaves_to_search: int. Replaces the setting of the build;
                only for the tree. Defaults to `None`.

        Returns:
            `(scores, ids)`: float32 and object (str) `[num_queries, k]`.

        Raises:
            InvalidInputError: for NaN, a wrong width, or k out of range.
        """
        matrix = check_query_embeddings(queries, self.dim)
        k = check_k(k, len(self))
        leaves = self.settings.check_leaves(num_leaves_to_search)
        if not len(matrix):
            return np.empty((0, k), np.float32), np.empty((0, k), object)
        reorder = max(self.settings.reordering_num_neighbors, 10 * k)
        positions, scores = self._search(matrix, k, leaves, reorder)
        short = np.flatnonzero(np.isnan(scores).any(axis=1))
        if short.size:
            # ScaNN pads short results with position 0 and a NaN distance.
            positions[short], scores[short] = self._search(
                matrix[short], k, self.settings.num_leaves, len(self)
            )
        order = np.lexsort((positions, -scores), axis=1)
        positions = np.take_along_axis(positions, order, axis=1)
        scores = np.take_along_axis(scores, order, axis=1)
        return scores, self._id_array[positions]

    def recall_against(
        self, exact: ExactIndex, queries: np.ndarray, k: int
    ) -> float:
        """Return the share of the exact top `k` that this index finds.

        A document that scores as much as the exact number `k` counts as
        found, so the order of ties does not matter.

        Args:
            exact: ExactIndex of the same documents.
            queries: floating point `[num_queries, dim]`, at least one.
            k: int, from 1 to the number of documents.

        Returns:
            float from 0 to 1, the mean over queries.

        Raises:
            InvalidInputError: for no queries, NaN, or k out of range.
            MismatchError: if the two indexes hold other documents.
        """
        if exact.ids != self.ids or exact.dim != self.dim:
            raise MismatchError(
                "Expected an exact index of the same documents. Received: "
                f"{len(exact)} documents of dim={exact.dim}, this index has "
                f"{len(self)} of dim={self.dim}. Build both from the same "
                "embeddings and ids."
            )
        if not len(queries):
            raise InvalidInputError(
                "Expected at least one query to measure recall. Received: "
                "no queries. Pass the embeddings of held-out queries."
            )
        found, _ = self.search(queries, k)
        best, _ = exact.search(queries, k)
        # Both are inner products of the same vectors, rounded differently.
        tolerance = 1e-5 * np.abs(best).max(axis=1, keepdims=True)
        return float((found >= best[:, -1:] - tolerance).mean())

    def save(
        self, directory: str | os.PathLike[str], *, overwrite: bool = False
    ) -> None:
        """Write the index to a folder, complete or not at all.

        The folder may be moved or copied. Ids are stored as JSON lines,
        never by ScaNN, which would pickle them.

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
                "scann_version": importlib.metadata.version("scann"),
                "settings": self.settings.to_dict(),
            },
            overwrite=overwrite,
        ) as folder:
            (folder / _SCANN_FOLDER).mkdir()
            self._searcher.serialize(
                str(folder / _SCANN_FOLDER), relative_path=True
            )

    @classmethod
    def load(
        cls,
        directory: str | os.PathLike[str],
        *,
        model_fingerprint: str | None = None,
        dim: int | None = None,
    ) -> "ScannIndex":
        """Read an index written by `save`, after checking every file.

        Args:
            directory: folder of the index.
            model_fingerprint: str. Refuse an index made by another model.
                Defaults to `None` (not checked).
            dim: int. Refuse another width. Defaults to `None`.

        Raises:
            CorruptFileError: if a file is missing or damaged, or a pickle
                file was added.
            MismatchError: if kind, version, model or width differ.
            MissingDependencyError: if ScaNN cannot be imported.
        """
        fields, ids = _storage.load_index_folder(directory, kind=cls.kind)
        _storage.check_model(
            directory, fields, model_fingerprint=model_fingerprint, dim=dim
        )
        module = _scann_module()
        folder = pathlib.Path(directory) / _SCANN_FOLDER
        try:
            searcher = module.load_searcher(str(folder))
        except (OSError, RuntimeError, ValueError) as error:
            raise CorruptFileError(
                f"Expected files of ScaNN {fields['scann_version']} in "
                f"{folder}. Received: {error}. Build the index again with "
                "the installed ScaNN."
            ) from error
        return cls(
            searcher,
            ids,
            ScannSettings(**fields["settings"]),
            dim=fields["dim"],
            model_fingerprint=fields["model_fingerprint"],
        )

    def _search(
        self, queries: np.ndarray, k: int, leaves: int, reorder: int
    ) -> tuple[np.ndarray, np.ndarray]:
        arguments: dict[str, int] = {"final_num_neighbors": k}
        if self.settings.method != "brute_force":
            arguments["pre_reorder_num_neighbors"] = min(reorder, len(self))
        if self.settings.method == "tree":
            arguments["leaves_to_search"] = leaves
        positions, scores = self._searcher.search_batched_parallel(
            queries, **arguments
        )
        return positions.astype(np.int64), np.array(scores, np.float32)


def _scann_module() -> Any:
    try:
        return importlib.import_module("scann.scann_ops.py.scann_ops_pybind")
    except ImportError as error:
        raise MissingDependencyError(
            "Expected ScaNN to be installed. Received: "
            f"{error}. Run `pip install scann[tf]==1.4.2` (Linux only), or "
            "use ExactIndex, which needs nothing else."
        ) from error
