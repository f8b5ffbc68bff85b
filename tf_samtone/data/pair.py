"""One positive example."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Pair:
    """A query and a document that answers it.

    Attributes:
        query: str, the text of the query; may be empty.
        document: str, the text of the document.
        query_id: id in its collection. Defaults to `None`.
        document_id: id in its collection. Defaults to `None`.
    """

    query: str
    document: str
    query_id: str | None = None
    document_id: str | None = None
