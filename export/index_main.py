"""Command line: a corpus to an index."""

import sys
from collections.abc import Sequence

from absl import flags

from tf_samtone._command_line import run_command
from tf_samtone._files import atomic_directory
from tf_samtone.export._inputs import Index, read_corpus, read_model
from tf_samtone.retrieval import BM25Index, ExactIndex, ScannIndex

USAGE = """
Encodes a corpus and writes an index of it.

Example:
  samtone-index --model=runs/medquad/model --corpus=medquad \\
      --output=medquad_index
"""


def define_flags(values: flags.FlagValues) -> None:
    """Defines the flags of this command line."""
    flags.DEFINE_string(
        "model",
        None,
        "Folder written by save_to_preset or samtone-train. Required unless "
        "--kind=bm25.",
        flag_values=values,
    )
    flags.DEFINE_string(
        "corpus",
        None,
        "BEIR folder, or a file of JSON lines with _id, text and optionally "
        "title. Required.",
        required=True,
        flag_values=values,
    )
    flags.DEFINE_string(
        "output",
        None,
        "Folder to write. Required.",
        required=True,
        flag_values=values,
    )
    flags.DEFINE_enum(
        "kind",
        "scann",
        ["scann", "exact", "bm25"],
        "Approximate, exact, or keyword search.",
        flag_values=values,
    )
    flags.DEFINE_bool(
        "overwrite",
        False,
        "Replace an output folder that holds files.",
        flag_values=values,
    )


def command(values: flags.FlagValues) -> None:
    """Builds and saves the index."""
    # Encoding can take hours, so an output in use is refused before it.
    with atomic_directory(values.output, overwrite=values.overwrite) as folder:
        corpus = read_corpus(values.corpus)
        index = _build(values.kind, values.model, corpus)
        index.save(folder)
    print(f"Wrote {values.output} ({values.kind}, {len(index)} documents).")


def _build(kind: str, model_path: str | None, corpus: dict[str, str]) -> Index:
    ids, texts = list(corpus), list(corpus.values())
    if kind == "bm25":
        return BM25Index.build(texts, ids)
    model = read_model(model_path)
    build = ScannIndex.build if kind == "scann" else ExactIndex.build
    return build(
        model.encode_documents(texts, show_progress=True),
        ids,
        model_fingerprint=model.fingerprint(),
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Runs `samtone-index` and returns its exit code."""
    return run_command(USAGE, define_flags, command, argv)


if __name__ == "__main__":
    sys.exit(main())
