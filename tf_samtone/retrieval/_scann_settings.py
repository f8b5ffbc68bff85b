"""The settings of a ScaNN index and the rules that choose them."""

import dataclasses
import math
from typing import Any

import numpy as np

from tf_samtone.errors import InvalidInputError
from tf_samtone.retrieval._validation import check_positive

__all__ = ["ScannSettings"]

_METHODS = ("brute_force", "hash", "tree")
# Below these sizes a simpler method is both faster and exact or nearly so
# (google-research/scann, docs/algorithms.md).
_HASH_FROM = 20_000
_TREE_FROM = 100_000
# The quantiser of a tree trains 16 centres and fails on fewer documents.
_SMALLEST_TREE = 16
_REORDER = 200
_DIMENSIONS_PER_BLOCK = 2
_ANISOTROPIC_THRESHOLD = 0.2


@dataclasses.dataclass(frozen=True, kw_only=True)
class ScannSettings:
    """How a ScaNN index was built.

    Attributes:
        method: `"brute_force"`, `"hash"` or `"tree"`.
        num_leaves: int. Partitions; 1 without a tree.
        num_leaves_to_search: int. Partitions visited; 1 without a tree.
        reordering_num_neighbors: int. Candidates rescored exactly.
    """

    method: str
    num_leaves: int = 1
    num_leaves_to_search: int = 1
    reordering_num_neighbors: int = _REORDER

    @classmethod
    def resolve(
        cls,
        num_docs: int,
        *,
        method: str | None,
        num_leaves: int | None,
        num_leaves_to_search: int | None,
        reordering_num_neighbors: int | None,
    ) -> "ScannSettings":
        """Check what was given and choose the rest by corpus size."""
        if method is None:
            method = _default_method(num_docs, num_leaves)
        if method not in _METHODS:
            raise InvalidInputError(
                f"Expected `method` to be one of {_METHODS}. Received: "
                f"method={method!r}. Omit it to choose by corpus size."
            )
        reorder = _REORDER
        if reordering_num_neighbors is not None:
            reorder = check_positive(
                "reordering_num_neighbors", reordering_num_neighbors
            )
        if method != "tree":
            _refuse_tree_arguments(method, num_leaves, num_leaves_to_search)
            return cls(method=method, reordering_num_neighbors=reorder)
        if num_leaves is None:
            num_leaves = round(math.sqrt(num_docs))
        leaves = check_positive("num_leaves", num_leaves)
        if num_docs < max(leaves, _SMALLEST_TREE):
            raise InvalidInputError(
                f"Expected at least {max(leaves, _SMALLEST_TREE)} documents "
                f"for a tree of num_leaves={leaves}. Received: {num_docs} "
                "documents. Use fewer leaves or method='brute_force'."
            )
        settings = cls(
            method=method,
            num_leaves=leaves,
            num_leaves_to_search=math.ceil(leaves / 10),
            reordering_num_neighbors=reorder,
        )
        return dataclasses.replace(
            settings,
            num_leaves_to_search=settings.check_leaves(num_leaves_to_search),
        )

    def check_leaves(self, num_leaves_to_search: int | None) -> int:
        """Return the partitions to visit, the stored number for `None`."""
        if num_leaves_to_search is None:
            return self.num_leaves_to_search
        _refuse_tree_arguments(self.method, None, num_leaves_to_search)
        leaves = check_positive("num_leaves_to_search", num_leaves_to_search)
        if leaves > self.num_leaves:
            raise InvalidInputError(
                "Expected `num_leaves_to_search` to be at most num_leaves="
                f"{self.num_leaves}. Received: num_leaves_to_search="
                f"{leaves}. Pass num_leaves to search everything."
            )
        return leaves

    def build_searcher(self, module: Any, embeddings: np.ndarray) -> Any:
        """Train a searcher on checked float32 `[num_docs, dim]`."""
        builder = module.builder(
            embeddings, min(10, len(embeddings)), "dot_product"
        )
        if self.method == "tree":
            # The default random_init=True gives another tree every time.
            builder = builder.tree(
                self.num_leaves,
                self.num_leaves_to_search,
                training_sample_size=min(len(embeddings), 250_000),
                random_init=False,
            )
        if self.method == "brute_force":
            builder = builder.score_brute_force()
        else:
            builder = builder.score_ah(
                min(_DIMENSIONS_PER_BLOCK, embeddings.shape[1]),
                anisotropic_quantization_threshold=_ANISOTROPIC_THRESHOLD,
            ).reorder(min(self.reordering_num_neighbors, len(embeddings)))
        return builder.build()

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as JSON values."""
        return dataclasses.asdict(self)


def _default_method(num_docs: int, num_leaves: int | None) -> str:
    if num_leaves is not None or num_docs >= _TREE_FROM:
        return "tree"
    return "hash" if num_docs >= _HASH_FROM else "brute_force"


def _refuse_tree_arguments(
    method: str, num_leaves: int | None, num_leaves_to_search: int | None
) -> None:
    if method != "tree" and (num_leaves or num_leaves_to_search):
        raise InvalidInputError(
            "Expected `num_leaves` and `num_leaves_to_search` only with "
            f"method='tree'. Received: method={method!r}, num_leaves="
            f"{num_leaves}, num_leaves_to_search={num_leaves_to_search}. "
            "Remove them or use method='tree'."
        )
