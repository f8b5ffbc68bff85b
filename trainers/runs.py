"""Runs of a model and of BM25 over a collection, and their figures."""

import logging
import time
from collections.abc import Callable, Sequence

import numpy as np

from tf_samtone.data import Collection
from tf_samtone.evaluation import evaluate
from tf_samtone.models import DualEncoder
from tf_samtone.retrieval import BM25Index, ExactIndex, to_run

__all__ = ["bm25_runs", "dense_runs", "figures", "format_table"]

Runs = dict[str, dict[str, dict[str, float]]]

_LOGGER = logging.getLogger("tf_samtone")


def dense_runs(
    model: DualEncoder,
    collection: Collection,
    splits: Sequence[str],
    depth: int,
    embeddings: np.ndarray | None = None,
) -> Runs:
    """Retrieves the queries of some splits from the whole corpus, exactly.

    Args:
        model: `DualEncoder`.
        collection: `Collection`.
        splits: names of splits.
        depth: int. Documents per query.
        embeddings: float32 `[num_docs, dim]` of the corpus in its order, if
            already computed.

    Returns:
        `{split: run}`.
    """
    started = time.monotonic()
    if embeddings is None:
        embeddings = model.encode_documents(list(collection.corpus.values()))
    index = ExactIndex.build(embeddings, list(collection.corpus))
    runs = {}
    for split in splits:
        ids, texts = collection.evaluation_queries(split)
        depth_here = min(depth, len(collection.corpus))
        runs[split] = to_run(
            ids, *index.search(model.encode_queries(texts), depth_here)
        )
    _LOGGER.info(
        "encoded and searched %d documents in %.0f s",
        len(collection.corpus),
        time.monotonic() - started,
    )
    return runs


def bm25_runs(
    collection: Collection,
    splits: Sequence[str],
    depth: int,
    normalise: Callable[[str], str] = str,
) -> Runs:
    """Retrieves with BM25; see `dense_runs`.

    Args:
        collection: `Collection`.
        splits: names of splits.
        depth: int.
        normalise: function from text to text, applied to documents and queries
            alike. Defaults to none.

    Returns:
        `{split: run}`.
    """
    texts = [normalise(text) for text in collection.corpus.values()]
    index = BM25Index.build(texts, list(collection.corpus))
    runs = {}
    for split in splits:
        ids, queries = collection.evaluation_queries(split)
        depth_here = min(depth, len(collection.corpus))
        found = index.search([normalise(q) for q in queries], depth_here)
        runs[split] = to_run(ids, *found)
    return runs


def figures(
    runs: Runs, collection: Collection, metrics: Sequence[str]
) -> dict[str, dict[str, float]]:
    """Returns `{split: {metric: float}}`."""
    return {
        split: evaluate(run, collection.qrels[split], metrics)
        for split, run in runs.items()
    }


def format_table(
    rows: dict[str, dict[str, float]], metrics: Sequence[str]
) -> str:
    """Formats `{name: {metric: float}}` as a Markdown table."""
    lines = [
        "| | " + " | ".join(metrics) + " |",
        "|---|" + "---|" * len(metrics),
    ]
    for name, row in rows.items():
        cells = " | ".join(f"{row[metric]:.3f}" for metric in metrics)
        lines.append(f"| {name} | {cells} |")
    return "\n".join(lines)
