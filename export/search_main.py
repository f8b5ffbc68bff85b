"""Command line: queries to documents."""

import sys
from collections.abc import Iterator, Sequence

from absl import flags

from tf_samtone._command_line import run_command
from tf_samtone.errors import InvalidInputError
from tf_samtone.export._inputs import open_index, read_corpus

USAGE = """
Answers queries from an index. Prints rank, score, document id and, with
--corpus, the start of the text. Without --query it reads one query per line
from standard input.

Example:
  samtone-search --model=runs/medquad/model --index=medquad_index \\
      --query="what causes chest pain" --corpus=medquad
"""
_SNIPPET_CHARACTERS = 80


def define_flags(values: flags.FlagValues) -> None:
    """Defines the flags of this command line."""
    flags.DEFINE_string(
        "model",
        None,
        "Folder of the model that made the index. Required unless the index "
        "was made with --kind=bm25.",
        flag_values=values,
    )
    flags.DEFINE_string(
        "index",
        None,
        "Folder written by samtone-index. Required.",
        required=True,
        flag_values=values,
    )
    flags.DEFINE_multi_string(
        "query", [], "A query; may be repeated.", flag_values=values
    )
    flags.DEFINE_integer(
        "k", 10, "Documents per query.", lower_bound=1, flag_values=values
    )
    flags.DEFINE_string(
        "corpus",
        None,
        "BEIR folder or JSON lines, to show the texts that were found.",
        flag_values=values,
    )


def command(values: flags.FlagValues) -> None:
    """Prints the best documents of every query."""
    queries = values.query or [line.rstrip("\n") for line in sys.stdin]
    if not queries:
        raise InvalidInputError(
            "Expected at least one query. Received: none. Pass --query=TEXT "
            "or one query per line on standard input."
        )
    corpus = read_corpus(values.corpus) if values.corpus else {}
    _, search = open_index(values.index, values.model)
    scores, ids = search(queries, values.k)
    for query, row_scores, row_ids in zip(queries, scores, ids, strict=True):
        print(f"\n{query}")
        for line in _lines(row_scores, row_ids, corpus):
            print(line)


def _lines(
    scores: Sequence[float], ids: Sequence[str], corpus: dict[str, str]
) -> Iterator[str]:
    pairs = zip(scores, ids, strict=True)
    for rank, (score, document_id) in enumerate(pairs, start=1):
        text = " ".join(corpus.get(document_id, "").split())
        if len(text) > _SNIPPET_CHARACTERS:
            text = text[: _SNIPPET_CHARACTERS - 3] + "..."
        yield f"{rank:4d}  {score:8.4f}  {document_id}  {text}".rstrip()


def main(argv: Sequence[str] | None = None) -> int:
    """Runs `samtone-search` and returns its exit code."""
    return run_command(USAGE, define_flags, command, argv)


if __name__ == "__main__":
    sys.exit(main())
