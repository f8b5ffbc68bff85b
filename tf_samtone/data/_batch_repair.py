"""Moving rows between batches until no batch holds a text twice."""

import bisect
from collections.abc import Iterator

import numpy as np

_TRIES = 32


class BatchRepair:
    """Batch numbers for rows, such that batches are full and texts differ.

    Starts from rows cut in order. Rows whose text is in their batch already
    are taken out and put into the next batch with room where both of their
    texts are new. Where no batch fits, two batches exchange a chain of rows:
    with batch `a` lacking the row's query and `b` lacking its document, the
    rows of `a` and `b` linked to that document by shared texts change places,
    which makes the document new in `a` too (the alternating path of Koenig's
    proof). Chains also even out the sizes in the end.

    Args:
        ends: int64 `[2, num_batches * batch_size]`, the texts of each row. No
            text in more than `num_batches` rows.
        num_batches: int.
        batch_size: int.

    Reference:
        Koenig, 1916, Ueber Graphen und ihre Anwendung auf Determinantentheorie
        und Mengenlehre, https://doi.org/10.1007/BF01456961
    """

    def __init__(
        self, ends: np.ndarray, num_batches: int, batch_size: int
    ) -> None:
        self._num_batches = num_batches
        self._batch_size = batch_size
        self._batch_of = np.repeat(np.arange(num_batches), batch_size)
        pending = self._take_out_copies(ends)
        if not len(pending):
            return
        self._ends: list[list[int]] = ends.T.tolist()
        counts = np.bincount(ends.ravel())
        is_common = counts > 1
        # (text, batch) -> row, for texts that can meet a copy at all.
        self._row_at: dict[int, int] = {}
        for side in ends:
            rows = np.flatnonzero(is_common[side] & (self._batch_of >= 0))
            keys = side[rows] * num_batches + self._batch_of[rows]
            self._row_at.update(zip(keys.tolist(), rows.tolist(), strict=True))
        self._common = is_common
        in_place = self._batch_of[self._batch_of >= 0]
        sizes = np.bincount(in_place, minlength=num_batches)
        self._room: list[int] = (batch_size - sizes).tolist()
        # The batches with room, ascending.
        self._open = [batch for batch, room in enumerate(self._room) if room]
        # The commonest texts first, while many batches have room.
        weights = counts[ends[:, pending]].max(axis=0)
        for row in pending[np.argsort(-weights, kind="stable")].tolist():
            self._put_back(row)
        self._even_out()

    def batches(self) -> np.ndarray:
        """Returns int64 `[rows]`, the batch of each row."""
        return self._batch_of

    def _take_out_copies(self, ends: np.ndarray) -> np.ndarray:
        """Marks all but the first copy in each batch; returns them."""
        for side in ends:
            rows = np.flatnonzero(self._batch_of >= 0)
            keys = side[rows] * self._num_batches + self._batch_of[rows]
            is_copy = np.ones(len(rows), bool)
            is_copy[np.unique(keys, return_index=True)[1]] = False
            self._batch_of[rows[is_copy]] = -1
        return np.flatnonzero(self._batch_of < 0)

    def _put_back(self, row: int) -> None:
        query, document = self._ends[row]
        without_query = without_document = None
        for tries, batch in enumerate(self._with_room(row)):
            query_is_new = self._is_new(query, batch)
            document_is_new = self._is_new(document, batch)
            if query_is_new and document_is_new:
                self._place(row, batch)
                return
            if query_is_new and without_query is None:
                without_query = batch
            if document_is_new and without_document is None:
                without_document = batch
            found = without_query is not None and without_document is not None
            if found and tries >= _TRIES:
                break
        # Both exist: a text has no more rows than there are batches.
        if without_query is None:
            without_query = self._first_without(query)
        if without_document is None:
            without_document = self._first_without(document)
        if not self._is_new(document, without_query):
            start = self._row_at[self._key(document, without_query)]
            chain = self._chain(start, document, without_document)
            self._exchange(chain, without_query, without_document)
        self._place(row, without_query)

    def _even_out(self) -> None:
        """Moves rows from overfull batches to those with room."""
        for over in np.flatnonzero(np.array(self._room) < 0).tolist():
            while self._room[over] < 0:
                under = self._open[0]
                self._exchange(self._odd_chain(over, under), over, under)

    def _odd_chain(self, over: int, under: int) -> list[int]:
        """Finds a chain with one more row of `over`, the larger batch."""
        rows = np.flatnonzero(self._batch_of == over).tolist()
        chains = (self._whole_chain(row, under) for row in rows)
        # The larger of two batches always has one: in any other chain, and
        # in a circle, the batches have equally many rows or `under` has more.
        return next(
            chain
            for chain in chains
            if np.count_nonzero(self._batch_of[chain] == over) * 2 > len(chain)
        )

    def _whole_chain(self, row: int, other: int) -> list[int]:
        query, document = self._ends[row]
        one_way = self._chain(row, query, other)
        if len(one_way) > 1 and one_way[-1] == row:
            return one_way[1:]
        other_way = self._chain(row, document, other)
        return one_way[::-1] + other_way[1:]

    def _chain(self, row: int, end: int, other: int) -> list[int]:
        """Follows shared texts from a row, away from one of its ends.

        Args:
            row: the first row.
            end: the text of that row which is not followed.
            other: the batch that takes turns with the row's own.
        """
        turns = (int(self._batch_of[row]), other)
        chain = [row]
        while True:
            query, document = self._ends[chain[-1]]
            end = document if end == query else query
            batch = turns[len(chain) % 2]
            following = self._row_at.get(self._key(end, batch))
            if following is None:
                return chain
            chain.append(following)
            if following == row:
                return chain

    def _exchange(self, chain: list[int], first: int, second: int) -> None:
        before = self._batch_of[chain].tolist()
        for row in chain:
            self._forget(row)
        for row, batch in zip(chain, before, strict=True):
            self._place(row, second if batch == first else first)

    def _place(self, row: int, batch: int) -> None:
        for end in self._ends[row]:
            if self._common[end]:
                self._row_at[self._key(end, batch)] = row
        self._batch_of[row] = batch
        self._room[batch] -= 1
        if self._room[batch] == 0:
            self._open.remove(batch)

    def _forget(self, row: int) -> None:
        batch = int(self._batch_of[row])
        for end in self._ends[row]:
            if self._common[end]:
                del self._row_at[self._key(end, batch)]
        self._room[batch] += 1
        if self._room[batch] == 1:
            bisect.insort(self._open, batch)

    def _with_room(self, row: int) -> Iterator[int]:
        home = bisect.bisect_left(self._open, row // self._batch_size)
        for place in range(home, home + len(self._open)):
            yield self._open[place % len(self._open)]

    def _first_without(self, end: int) -> int:
        return next(
            batch
            for batch in range(self._num_batches)
            if self._is_new(end, batch)
        )

    def _is_new(self, end: int, batch: int) -> bool:
        return self._key(end, batch) not in self._row_at

    def _key(self, end: int, batch: int) -> int:
        return end * self._num_batches + batch
