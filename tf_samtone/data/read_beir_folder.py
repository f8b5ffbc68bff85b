"""Reader of the BEIR folder layout."""

import logging
import os
from collections.abc import Sequence
from pathlib import Path

from tf_samtone.data._json_texts import read_documents, read_queries
from tf_samtone.data._qrels_table import read_qrels_table
from tf_samtone.data.collection import Collection
from tf_samtone.errors import DataError, InvalidInputError

_logger = logging.getLogger("tf_samtone")


def read_beir_folder(
    path: str | os.PathLike[str],
    splits: Sequence[str] | None = ("train", "dev", "test"),
) -> Collection:
    """Reads a folder with `corpus.jsonl`, `queries.jsonl` and `qrels/*.tsv`.

    Nothing is guessed or dropped: whatever is malformed is an error that
    names the file and line. Byte order marks, CRLF line ends, blank lines,
    empty texts and qrels without header are accepted; lone surrogates in a
    text become U+FFFD.

    Args:
        path: the folder.
        splits: names of the qrels files to read, without `.tsv`; `None`
            reads every file there. Defaults to `("train", "dev", "test")`.

    Returns:
        `Collection`; the text of a document is its title, a space and its
        text, stripped.

    Raises:
        DataError: if a file is missing or empty, a split is absent (the
            message lists those that exist), a line cannot be used, an `_id`
            occurs twice, or a judgment names an unknown id.
        InvalidInputError: if `splits` is not a sequence of names.

    Reference:
        Thakur et al., 2021, BEIR, https://arxiv.org/abs/2104.08663
    """
    folder = Path(path)
    files = _qrels_files(folder, splits)
    corpus = read_documents(folder / "corpus.jsonl")
    queries = read_queries(folder / "queries.jsonl")
    qrels = {
        split: read_qrels_table(file, queries, corpus)
        for split, file in files.items()
    }
    _logger.info(
        "read %s: %d documents, %d queries, judged queries %s",
        folder,
        len(corpus),
        len(queries),
        {split: len(judgments) for split, judgments in qrels.items()},
    )
    return Collection(corpus, queries, qrels)


def _qrels_files(folder: Path, splits: Sequence[str] | None) -> dict[str, Path]:
    """Finds the files of the splits before anything large is read."""
    if not folder.is_dir():
        raise DataError(
            "Expected `path` to be a BEIR folder. Received: "
            f"path={str(folder)!r}, which is not a folder. Check the path."
        )
    if isinstance(splits, str):
        raise InvalidInputError(
            "Expected `splits` to be a sequence of names. Received: "
            f"splits={splits!r}. Write ({splits!r},)."
        )
    present = sorted(file.stem for file in (folder / "qrels").glob("*.tsv"))
    wanted = present if splits is None else list(splits)
    absent = [split for split in wanted if split not in present]
    if absent or not wanted:
        raise DataError(
            f"Expected qrels files of the splits {wanted}. Received: "
            f"{folder / 'qrels'} with {present}. Pass `splits` with names "
            "from that list."
        )
    return {split: folder / "qrels" / f"{split}.tsv" for split in wanted}
