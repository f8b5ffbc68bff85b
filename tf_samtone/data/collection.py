"""A retrieval collection in memory."""

import dataclasses

from tf_samtone.data.pair import Pair
from tf_samtone.errors import DataError, InvalidInputError

Qrels = dict[str, dict[str, int]]


@dataclasses.dataclass(frozen=True)
class Collection:
    """Documents, queries and judgments, as a reader returns them.

    Attributes:
        corpus: document id → text, in file order.
        queries: query id → text, in file order; texts may be empty.
        qrels: split → query id → document id → grade; a grade above 0 marks
            a relevant document.

    Raises:
        DataError: if a judgment names an unknown query or document.
    """

    corpus: dict[str, str]
    queries: dict[str, str]
    qrels: dict[str, Qrels]

    def __post_init__(self) -> None:
        for split, judgments in self.qrels.items():
            for query_id, grades in judgments.items():
                self._check_known(split, "query", query_id, self.queries)
                for document_id in grades:
                    self._check_known(
                        split, "document", document_id, self.corpus
                    )

    def pairs(self, split: str) -> list[Pair]:
        """Lists the positive judgments of a split as training pairs.

        Args:
            split: name of the split.

        Returns:
            one `Pair` per judgment with a grade above 0, in file order.

        Raises:
            InvalidInputError: if there is no such split.
        """
        return [
            Pair(
                self.queries[query_id],
                self.corpus[document_id],
                query_id,
                document_id,
            )
            for query_id, grades in self._split(split).items()
            for document_id, grade in grades.items()
            if grade > 0
        ]

    def evaluation_queries(self, split: str) -> tuple[list[str], list[str]]:
        """Lists the judged queries of a split.

        Args:
            split: name of the split.

        Returns:
            `(ids, texts)`, one entry per query, in the order in which the
            split's file first names them.

        Raises:
            InvalidInputError: if there is no such split.
        """
        ids = list(self._split(split))
        return ids, [self.queries[query_id] for query_id in ids]

    def _split(self, split: str) -> Qrels:
        if split not in self.qrels:
            raise InvalidInputError(
                f"Expected `split` to be one of {sorted(self.qrels)}. "
                f"Received: split={split!r}. Read that split as well, or "
                "choose one of these."
            )
        return self.qrels[split]

    @staticmethod
    def _check_known(
        split: str, kind: str, identifier: str, known: dict[str, str]
    ) -> None:
        if identifier not in known:
            raise DataError(
                f"Expected qrels[{split!r}] to name known ids only. "
                f"Received: {kind} id {identifier!r}, absent from the "
                f"{len(known)} texts. Add the text or drop the judgment."
            )
