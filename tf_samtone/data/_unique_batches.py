"""Full batches in which no query and no document comes twice."""

import numpy as np

from tf_samtone.data._batch_repair import BatchRepair
from tf_samtone.errors import InvalidInputError


class UniqueBatches:
    """Cuts an order of pairs into batches without repeated texts.

    Pairs are edges between their query and their document; a batch is a set
    of edges that share no end, a colour of an edge colouring. By the theorem
    of Koenig as many colours are enough as the commonest text has copies, and
    the colours can be made equally large. So if no text has more copies than
    there are batches, only `pairs % batch_size` pairs are left out, as in
    any order. Where a text has more, its first copies in the order are used
    and the others wait for another epoch.

    Args:
        query_ids: int64 `[pairs]`, equal where the texts are.
        document_ids: int64 `[pairs]`.
        batch_size: int, at most the number of pairs.

    Attributes:
        num_batches: int, full batches per epoch, whatever the order.

    Raises:
        InvalidInputError: if not even one batch can be promised.
    """

    def __init__(
        self, query_ids: np.ndarray, document_ids: np.ndarray, batch_size: int
    ) -> None:
        queries = np.unique(query_ids, return_inverse=True)[1]
        documents = np.unique(document_ids, return_inverse=True)[1]
        # One numbering for the texts of both sides.
        self._ends = np.stack([queries, documents + queries.max() + 1])
        self._counts = np.bincount(self._ends.ravel())
        self._batch_size = batch_size
        self.num_batches = self._most_batches()

    def cut(self, order: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Cuts one order.

        Rows stay in the batch where plain cutting puts them unless a text is
        there already; then they move to the next batch with room.

        Args:
            order: int64 `[pairs]`, a permutation.

        Returns:
            int64 `[num_batches, batch_size]`, and int64 `[rest]`, the rows
            left out, both in the order given.
        """
        size = self.num_batches * self._batch_size
        usable = self._at_most_one_per_batch(order)
        used = np.flatnonzero(usable)[:size]
        is_used = np.zeros(len(order), bool)
        is_used[used] = True
        rows = order[used]
        repair = BatchRepair(
            self._ends[:, rows], self.num_batches, self._batch_size
        )
        by_batch = np.argsort(repair.batches(), kind="stable")
        shape = (self.num_batches, self._batch_size)
        return rows[by_batch].reshape(shape), order[~is_used]

    def without_copies(self, rows: np.ndarray) -> np.ndarray:
        """Returns those rows that repeat no text of an earlier kept row."""
        return rows[self._capped(rows, 1)]

    def _at_most_one_per_batch(self, order: np.ndarray) -> np.ndarray:
        return self._capped(order, self.num_batches)

    def _capped(self, order: np.ndarray, most: int) -> np.ndarray:
        """Marks a row unless one of its texts has been kept `most` times."""
        keep = np.ones(len(order), bool)
        ends = self._ends[:, order]
        touched = np.flatnonzero((self._counts[ends] > most).any(axis=0))
        kept: dict[int, int] = {}
        for place in touched.tolist():
            pair = ends[:, place].tolist()
            if any(kept.get(end, 0) >= most for end in pair):
                keep[place] = False
                continue
            for end in pair:
                kept[end] = kept.get(end, 0) + 1
        return keep

    def _most_batches(self) -> int:
        """Finds how many full batches every order can give."""
        bound = _KeptBound(self._ends, self._counts)
        for count in range(self._ends.shape[1] // self._batch_size, 0, -1):
            if bound(count) >= count * self._batch_size:
                return count
        raise InvalidInputError(self._refusal())

    def _refusal(self) -> str:
        queries, documents = self._ends
        commonest = int(self._counts.argmax())
        row = int(np.flatnonzero((self._ends == commonest).any(axis=0))[0])
        side = "queries" if commonest <= queries.max() else "documents"
        return (
            f"Expected batches of batch_size={self._batch_size} pairs without "
            f"repeated texts. Received: {len(queries)} pairs of "
            f"{len(np.unique(queries))} distinct queries and "
            f"{len(np.unique(documents))} distinct documents; the commonest "
            f"text, {side}[{row}], makes up {self._counts[commonest]} pairs, "
            "of which a batch may hold one. Lower batch_size, drop copies, or "
            "pass unique_texts=False: the losses mask copies."
        )


class _KeptBound:
    """The least number of pairs kept when a text is used `most` times.

    Of equal pairs beyond `most`, all are lost. Of the others, a text loses at
    most its copies beyond `most`, whatever the order. A pair that both of its
    texts lose is counted twice, so the truth may be better.
    """

    def __init__(self, ends: np.ndarray, counts: np.ndarray) -> None:
        self._num_pairs = ends.shape[1]
        by_count = np.argsort(-counts, kind="stable")
        self._minus_counts = -counts[by_count]
        rank = np.empty(len(counts), np.int64)
        rank[by_count] = np.arange(len(counts))
        keys, copies = np.unique(
            ends[0] * len(counts) + ends[1], return_counts=True
        )
        by_copies = np.argsort(-copies, kind="stable")
        self._minus_copies = -copies[by_copies]
        pairs = np.divmod(keys[by_copies], len(counts))
        self._pair_ranks = rank[np.stack(pairs)]

    def __call__(self, most: int) -> int:
        # Only the few texts and pairs with more copies matter.
        num_texts, num_pairs = (
            int(np.searchsorted(minus, -most))
            for minus in (self._minus_counts, self._minus_copies)
        )
        excess = -self._minus_counts[:num_texts] - most
        lost = -self._minus_copies[:num_pairs] - most
        for ranks in self._pair_ranks[:, :num_pairs]:
            np.subtract.at(excess, ranks, lost)
        return int(self._num_pairs - lost.sum() - np.maximum(excess, 0).sum())
