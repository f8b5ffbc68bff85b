"""The whole job on the Python packages of this machine."""

import json
import logging
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from tf_samtone._files import atomic_write_text
from tf_samtone._version import __version__
from tf_samtone.errors import InvalidInputError
from tf_samtone.evaluation import tune_weight, write_run
from tf_samtone.models import DualEncoder
from tf_samtone.retrieval import ExactIndex, ScannIndex, weighted_fusion
from tf_samtone.text import train_tokenizer
from tf_samtone.trainers.builders import build_model
from tf_samtone.trainers.fit_stages import fit_stages
from tf_samtone.trainers.layer_growth import with_num_layers
from tf_samtone.trainers.output_folder import prepare_output
from tf_samtone.trainers.python_words import PythonWords, python_words
from tf_samtone.trainers.recipe import Recipe
from tf_samtone.trainers.runs import Runs, bm25_runs, dense_runs, figures

__all__ = ["QUESTIONS", "quickstart"]

_LOGGER = logging.getLogger("tf_samtone")

QUESTIONS = (
    "remove a directory tree",
    "compute the inverse of a matrix",
    "parse a date from a string",
)
# Deeper than what is measured: fusion lifts what one side ranks low.
_DEPTH = 300
# Rewards the first ranks as well as recall, unlike MRR@10.
_FUSION_METRIC = "nDCG@100"
_RECALL_K = 10
_ANSWERS = 5
_VOCABULARY_TEXTS = 50_000

Results = dict[str, Any]


@dataclass
class _Job:
    """What the phases hand on to each other."""

    recipe: Recipe
    output: Path
    overwrite: bool
    results: Results
    words: PythonWords = field(init=False)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Announces a phase and keeps its time."""
        _LOGGER.info("--- %s", name)
        started = time.monotonic()
        yield
        seconds = round(time.monotonic() - started, 1)
        self.results["seconds"][name] = seconds
        _LOGGER.info("--- %s: %.0f s", name, seconds)

    def record(self, name: str, runs: Runs) -> None:
        """Keeps runs and figures as soon as they are known."""
        collection = self.words.collection
        metrics = self.recipe.evaluation.metrics
        self.results["figures"][name] = figures(runs, collection, metrics)
        (self.output / "runs").mkdir(exist_ok=True)
        for split, run in runs.items():
            path = self.output / "runs" / f"{name}-{split}.trec"
            write_run(run, path, tag=name, overwrite=True)
        self.write()

    def write(self) -> None:
        text = json.dumps(self.results, indent=2)
        atomic_write_text(self.output / "results.json", text + "\n")


def quickstart(
    recipe: Recipe,
    output_dir: str | os.PathLike[str] = "quickstart_output",
    *,
    overwrite: bool = False,
    questions: Sequence[str] = QUESTIONS,
    export: Callable[[DualEncoder, Path], None] | None = None,
) -> Results:
    """Mines, trains, evaluates, indexes and answers questions.

    Writes to the output folder: `recipe.json`, `vocabulary.spm`, `runs/`,
    `model/` (for `DualEncoder.from_preset`), `index/` (ScaNN) and
    `results.json`; and `saved_model/`, if `export` is given.

    Args:
        recipe: `Recipe` with the reader `"python_docs"` and no preset.
        output_dir: folder. Defaults to `"quickstart_output"`.
        overwrite: bool. Allows a folder that already holds results. Defaults
            to `False`.
        questions: texts to answer at the end.
        export: function that writes a model to a folder as a SavedModel.
            Defaults to `None`.

    Returns:
        dict as in `results.json`; `figures` is `{row: {split: {metric:
        float}}}`.

    Raises:
        InvalidInputError: if the recipe is for another job.
        OutputExistsError: if the folder already holds results.
        CollapseError: if training collapses.
    """
    _check_recipe(recipe)
    output = Path(output_dir)
    prepare_output(output, overwrite=overwrite)
    recipe_text = json.dumps(recipe.to_dict(), indent=2)
    atomic_write_text(output / "recipe.json", recipe_text + "\n")
    results: Results = {
        "recipe": recipe.name,
        "tf_samtone_version": __version__,
        "seconds": {},
        "figures": {},
    }
    job = _Job(recipe, output, overwrite, results)
    with job.phase("mine"):
        job.words = python_words(recipe.data.packages)
        results["texts"] = job.words.counts()
    splits = recipe.evaluation.splits
    results["figures"]["chance"] = _chance(job)
    with job.phase("BM25"):
        lexical = bm25_runs(job.words.collection, splits, _DEPTH)
        job.record("bm25", lexical)
    model = _trained(job)
    with job.phase("encode and evaluate"):
        corpus = job.words.collection.corpus
        embeddings = model.encode_documents(list(corpus.values()))
        dense = dense_runs(
            model, job.words.collection, splits, _DEPTH, embeddings
        )
        job.record("trained", dense)
        job.record("hybrid", _hybrid(job, dense, lexical))
    with job.phase("save and index"):
        model.save_to_preset(output / "model", overwrite=overwrite)
        if export is not None:
            export(model, output / "saved_model")
        index = _index(job, model, embeddings)
    results["answers"] = _answers(model, index, questions)
    job.write()
    return results


def _check_recipe(recipe: Recipe) -> None:
    if recipe.data.reader != "python_docs" or recipe.model.preset:
        raise InvalidInputError(
            "Expected a recipe that starts from random weights on mined text "
            "(data.reader='python_docs', no model.preset). Received: "
            f"reader={recipe.data.reader!r}, preset={recipe.model.preset!r}. "
            "Use samtone-train for this one."
        )
    training = recipe.training
    if training.strategy != "none":
        unused = f"strategy={training.strategy!r}"
    elif training.validate_every:
        unused = f"validate_every={training.validate_every}"
    elif training.tensorboard:
        unused = "tensorboard=True"
    else:
        unused = ""
    if unused:
        raise InvalidInputError(
            "Expected a recipe for one device, without validation and "
            f"TensorBoard: the quickstart takes minutes. Received: {unused}. "
            "Leave it out, or use samtone-train."
        )
    if not {"dev", "test"} <= set(recipe.evaluation.splits):
        raise InvalidInputError(
            "Expected evaluation.splits to hold 'dev' (the weight of the "
            "fusion is chosen there) and 'test'. Received: "
            f"splits={recipe.evaluation.splits!r}. Add them."
        )


def _chance(job: _Job) -> dict[str, dict[str, float]]:
    """Returns the expected figures of a random order, by formula."""
    size = len(job.words.collection.corpus)

    def expected(metric: str) -> float:
        name, _, depth = metric.partition("@")
        ranks = min(int(depth), size)
        # Each query has one relevant document, at each rank equally often.
        if name == "P":
            return 1 / size
        if name in ("MRR", "nDCG"):
            rank = np.arange(1, ranks + 1)
            gains = 1 / (rank if name == "MRR" else np.log2(rank + 1))
            return float(gains.sum() / size)
        return ranks / size

    row = {m: expected(m) for m in job.recipe.evaluation.metrics}
    return {split: row for split in job.recipe.evaluation.splits}


def _trained(job: _Job) -> DualEncoder:
    """Trains vocabulary and model, and measures the untrained model."""
    recipe, words = job.recipe, job.words
    with job.phase("train the vocabulary"):
        tokenizer = train_tokenizer(
            words.training_texts(),
            job.output / "vocabulary.spm",
            vocabulary_size=recipe.model.vocabulary_size,
            max_sentences=_VOCABULARY_TEXTS,
            # The words are lower case; a user's question need not be.
            lowercase=True,
            seed=recipe.seed,
        )
    model = build_model(recipe, tokenizer)
    model = _with_layers_of(model, recipe, 0)
    with job.phase("evaluate the untrained model"):
        splits = recipe.evaluation.splits
        runs = dense_runs(model, words.collection, splits, _DEPTH)
        job.record("untrained", runs)
    history = job.results["training"] = []
    for position, stage in enumerate(recipe.stages):
        with job.phase(f"train on {stage.name}"):
            model = _with_layers_of(model, recipe, position)
            history += fit_stages(
                model, replace(recipe, stages=(stage,)), words.pairs
            )
    return model


def _with_layers_of(
    model: DualEncoder, recipe: Recipe, stage: int
) -> DualEncoder:
    num_layers = recipe.stages[stage].num_layers
    if num_layers < 0:
        num_layers = recipe.model.num_layers
    return with_num_layers(
        model,
        num_layers,
        residual_init_scale=recipe.model.residual_init_scale,
    )


def _hybrid(job: _Job, dense: Runs, lexical: Runs) -> Runs:
    """Fuses both runs with the weight that is best on dev."""
    weight = tune_weight(
        dense["dev"],
        lexical["dev"],
        job.words.collection.qrels["dev"],
        metric=_FUSION_METRIC,
        weights=[step / 10 for step in range(1, 10)],
    )
    job.results["fusion"] = {"weight": weight, "tuned_for": _FUSION_METRIC}
    return {
        split: weighted_fusion(dense[split], lexical[split], weight)
        for split in dense
    }


def _index(job: _Job, model: DualEncoder, embeddings: np.ndarray) -> ScannIndex:
    collection = job.words.collection
    ids = list(collection.corpus)
    fingerprint = model.fingerprint()
    index = ScannIndex.build(embeddings, ids, model_fingerprint=fingerprint)
    index.save(job.output / "index", overwrite=job.overwrite)
    queries = model.encode_queries(collection.evaluation_queries("test")[1])
    recall = index.recall_against(
        ExactIndex.build(embeddings, ids), queries, min(_RECALL_K, len(ids))
    )
    job.results["scann_recall"] = {f"recall@{_RECALL_K}": recall}
    return index


def _answers(
    model: DualEncoder, index: ScannIndex, questions: Sequence[str]
) -> dict[str, list[str]]:
    texts = [PythonWords.normalise(question) for question in questions]
    k = min(_ANSWERS, len(index))
    _, ids = index.search(model.encode_queries(texts), k)
    return {
        q: list(map(str, row)) for q, row in zip(questions, ids, strict=True)
    }
