"""Command line: an index or a run to retrieval metrics."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from absl import flags

from tf_samtone._command_line import resolved_flags, run_command
from tf_samtone._files import atomic_directory, atomic_write_text
from tf_samtone.errors import InvalidInputError
from tf_samtone.export._inputs import (
    dense_search,
    open_index,
    read_model,
)

if TYPE_CHECKING:
    from tf_samtone.data import Collection

USAGE = """
Measures retrieval on one split of a BEIR folder. What is measured is an index
(--model and --index; without --model if the index was made with --kind=bm25),
a model over the whole corpus with exact search (--model alone), or a TREC run
file (--run alone).

Example:
  samtone-evaluate --model=runs/medquad/model --index=medquad_index \\
      --data=medquad --split=test --output=results
"""
_METRICS = "P@1,MRR@10,nDCG@10,R@100"

Run = dict[str, dict[str, float]]


def define_flags(values: flags.FlagValues) -> None:
    """Defines the flags of this command line."""
    _define_sources(values)
    flags.DEFINE_string(
        "data",
        None,
        "BEIR folder. Required.",
        required=True,
        flag_values=values,
    )
    flags.DEFINE_string(
        "split", "test", "Name of the qrels file.", flag_values=values
    )
    flags.DEFINE_list(
        "metrics",
        _METRICS,
        "Comma-separated P, MRR, nDCG and R at a depth.",
        flag_values=values,
    )
    flags.DEFINE_integer(
        "k",
        100,
        "Documents retrieved per query; at most the whole corpus.",
        lower_bound=1,
        flag_values=values,
    )
    flags.DEFINE_string(
        "output",
        None,
        "Folder for metrics.json, run.trec and flags.json. Without it the "
        "table is only printed.",
        flag_values=values,
    )
    flags.DEFINE_bool(
        "overwrite",
        False,
        "Replace an output folder that holds files.",
        flag_values=values,
    )


def _define_sources(values: flags.FlagValues) -> None:
    flags.DEFINE_string(
        "model",
        None,
        "Folder written by save_to_preset or samtone-train.",
        flag_values=values,
    )
    flags.DEFINE_string(
        "index", None, "Folder written by samtone-index.", flag_values=values
    )
    flags.DEFINE_string("run", None, "TREC run file.", flag_values=values)


def command(values: flags.FlagValues) -> None:
    """Evaluates, prints a table and writes the results."""
    _check_sources(values)
    if not values.output:
        _evaluate(values)
        return
    with atomic_directory(values.output, overwrite=values.overwrite) as folder:
        run, report = _evaluate(values)
        _write_results(folder, run, report, resolved_flags(values))
    print(f"Wrote {values.output}.")


def _check_sources(values: flags.FlagValues) -> None:
    if bool(values.model or values.index) == bool(values.run):
        raise InvalidInputError(
            "Expected either --run, or --model and/or --index. Received: "
            f"--model={values.model or ''} --index={values.index or ''} "
            f"--run={values.run or ''}. Pass one of the two."
        )


def _evaluate(values: flags.FlagValues) -> tuple[Run, dict[str, float]]:
    """Makes or reads the run, and prints its metrics."""
    from tf_samtone.data import read_beir_folder
    from tf_samtone.evaluation import evaluate, read_run

    collection = read_beir_folder(values.data, splits=(values.split,))
    if values.run:
        run = read_run(values.run)
    else:
        run = _search(values, collection)
    qrels = collection.qrels[values.split]
    report = evaluate(run, qrels, values.metrics)
    print(f"{values.data}, {values.split}: {len(qrels)} judged queries")
    for name, value in report.items():
        print(f"  {name:<10s}{value:.4f}")
    return run, report


def _search(values: flags.FlagValues, collection: "Collection") -> Run:
    from tf_samtone.retrieval import ExactIndex, to_run

    if values.index:
        index, search = open_index(values.index, values.model)
    else:
        model = read_model(values.model)
        index = ExactIndex.build(
            model.encode_documents(
                list(collection.corpus.values()), show_progress=True
            ),
            list(collection.corpus),
        )
        search = dense_search(model, index)
    query_ids, texts = collection.evaluation_queries(values.split)
    scores, ids = search(texts, min(values.k, len(index)))
    return to_run(query_ids, scores, ids)


def _write_results(
    folder: Path,
    run: Run,
    report: dict[str, float],
    settings: dict[str, Any],
) -> None:
    from tf_samtone.evaluation import write_run

    write_run(run, folder / "run.trec")
    for name, content in (("metrics", report), ("flags", settings)):
        text = json.dumps(content, indent=2, sort_keys=True)
        atomic_write_text(folder / f"{name}.json", text + "\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs `samtone-evaluate` and returns its exit code."""
    return run_command(USAGE, define_flags, command, argv)


if __name__ == "__main__":
    sys.exit(main())
