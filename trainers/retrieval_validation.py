"""Retrieval metrics on a held-out split, while training goes on."""

import logging
import time
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from tf_samtone.data import Collection
from tf_samtone.errors import InvalidInputError
from tf_samtone.evaluation import evaluate
from tf_samtone.evaluation._metric_names import parse_metric
from tf_samtone.retrieval import ExactIndex, to_run

_LOGGER = logging.getLogger("tf_samtone")


class RetrievalValidation(keras.callbacks.Callback):
    """Retrieves the queries of a split every so many steps.

    Encodes the split's queries and a sample of the corpus, searches exactly,
    evaluates, and adds `val_<metric>` to the logs of that step, where every
    later callback of the list finds them (Keras hands one dict to all).

    The sample holds every relevant document of the split and, up to
    `num_documents`, others drawn without replacement by `seed`; it is the same
    each time. Fewer distractors make retrieval easier: figures over a sample
    are higher than over the whole corpus, and compare only with each other.

    Give it to `fit` before `BestModel`, `EarlyStopping` and whatever writes
    logs or checkpoints.

    Args:
        collection: `Collection`.
        split: str. Name of the split.
        every_steps: int, at least 1.
        num_documents: int, at least 1. Defaults to `10000`.
        metrics: names for `tf_samtone.evaluation.evaluate`. Defaults to
            MRR@10, nDCG@10 and R@100.
        seed: int. Decides the sample. Defaults to `0`.
        first_step: int. Steps done before this fit. Defaults to `0`.

    Attributes:
        document_ids: list of str. The sample, in the order of the corpus.
        history: list of `(step, {metric: float})`, oldest first.

    Raises:
        InvalidInputError: if the split is unknown or empty, or an option
            cannot be used.
    """

    def __init__(
        self,
        collection: Collection,
        split: str,
        *,
        every_steps: int,
        num_documents: int = 10000,
        metrics: Sequence[str] = ("MRR@10", "nDCG@10", "R@100"),
        seed: int = 0,
        first_step: int = 0,
    ) -> None:
        super().__init__()
        for name, value in (
            ("every_steps", every_steps),
            ("num_documents", num_documents),
        ):
            if value < 1:
                raise InvalidInputError(
                    f"Expected `{name}` to be at least 1. Received: "
                    f"{name}={value}. Leave the callback out for none."
                )
        self.every_steps = every_steps
        self.metrics = tuple(metrics)
        self.split = split
        self.first_step = first_step
        self.history: list[tuple[int, dict[str, float]]] = []
        self._depth = max(parse_metric(name).cutoff for name in self.metrics)
        self._query_ids, self._queries = collection.evaluation_queries(split)
        if not self._query_ids:
            raise InvalidInputError(
                "Expected a split with judged queries. Received: "
                f"split={split!r}, which is empty. Choose another one."
            )
        self._qrels = collection.qrels[split]
        self.document_ids = _sample(collection, split, num_documents, seed)
        self._documents = [collection.corpus[i] for i in self.document_ids]
        self._last_step = first_step

    @property
    def latest(self) -> tuple[int, dict[str, float]] | None:
        """The newest `(step, {metric: float})`, or `None` before the first."""
        return self.history[-1] if self.history else None

    def state(self) -> dict[str, Any]:
        """Returns what a checkpoint must hold, for JSON."""
        return {"history": [[step, dict(row)] for step, row in self.history]}

    def restore(self, state: dict[str, Any]) -> None:
        """Takes back what `state` returned."""
        self.history = [
            (int(step), dict(row)) for step, row in state["history"]
        ]

    def on_train_begin(self, logs: dict[str, float] | None = None) -> None:
        self._last_step = self.first_step

    def on_train_batch_end(
        self, batch: int, logs: dict[str, float] | None = None
    ) -> None:
        step = self.first_step + batch + 1
        # Not `step % every_steps`: with several steps per execution Keras
        # calls this for the last of them only.
        is_due = step // self.every_steps > self._last_step // self.every_steps
        self._last_step = step
        if is_due:
            values = self.validate(step)
            if logs is not None:
                logs.update({f"val_{k}": v for k, v in values.items()})

    def validate(self, step: int) -> dict[str, float]:
        """Retrieves and evaluates now; appends to `history`.

        Args:
            step: int. Step to file the figures under.

        Returns:
            `{metric: float}`.
        """
        started = time.monotonic()
        index = ExactIndex.build(
            self.model.encode_documents(self._documents), self.document_ids
        )
        found = index.search(
            self.model.encode_queries(self._queries),
            min(self._depth, len(self.document_ids)),
        )
        run = to_run(self._query_ids, *found)
        values = evaluate(run, self._qrels, self.metrics)
        self.history.append((step, values))
        _LOGGER.info(
            "%s after step %d: %s (%d queries, %d documents, %.1f s)",
            self.split,
            step,
            ", ".join(f"{k} {v:.4f}" for k, v in values.items()),
            len(self._query_ids),
            len(self.document_ids),
            time.monotonic() - started,
        )
        return values


def _sample(
    collection: Collection, split: str, num_documents: int, seed: int
) -> list[str]:
    """Returns ids of a sample with all relevant documents of the split."""
    relevant = {
        document_id
        for grades in collection.qrels[split].values()
        for document_id, grade in grades.items()
        if grade > 0
    }
    if len(relevant) > num_documents:
        _LOGGER.warning(
            "Validation on %s keeps all of its %d relevant documents, more "
            "than the %d asked for.",
            split,
            len(relevant),
            num_documents,
        )
    others = [i for i in collection.corpus if i not in relevant]
    wanted = min(len(others), max(0, num_documents - len(relevant)))
    rows = np.random.default_rng(seed).choice(
        len(others), size=wanted, replace=False
    )
    kept = relevant | {others[row] for row in rows}
    return [i for i in collection.corpus if i in kept]
