"""Tests of the validation by retrieval."""

import logging

import numpy as np
import pytest

from tf_samtone.data import Collection, read_beir_folder
from tf_samtone.errors import InvalidInputError
from tf_samtone.evaluation import evaluate
from tf_samtone.retrieval import ExactIndex, to_run
from tf_samtone.trainers.builders import (
    build_dataset,
    build_loss,
    build_model,
    build_optimizer,
)
from tf_samtone.trainers.retrieval_validation import RetrievalValidation


class _Encoder:
    """Texts are numbers; the embedding of one is that row of a matrix."""

    def __init__(self, rows):
        self.rows = np.asarray(rows, np.float32)

    def _encode(self, texts):
        return self.rows[[int(text) for text in texts]]

    encode_queries = encode_documents = _encode


@pytest.fixture
def collection():
    """Twenty documents; two dev queries with one relevant document each."""
    return Collection(
        corpus={f"d{i}": str(i) for i in range(20)},
        queries={"q0": "20", "q1": "21"},
        qrels={"dev": {"q0": {"d3": 1, "d5": 0}, "q1": {"d7": 1}}},
    )


def _validation(collection, rows=None, **options):
    options = {"every_steps": 2, "metrics": ("MRR@10",), **options}
    validation = RetrievalValidation(collection, "dev", **options)
    if rows is not None:
        validation.set_model(_Encoder(rows))
    return validation


def _rows(first_query, second_query):
    """Twenty documents at right angles; a query is near what it names."""
    queries = np.zeros((2, 20))
    for query, weights in zip(
        queries, (first_query, second_query), strict=True
    ):
        for document, weight in weights.items():
            query[document] = weight
    return np.concatenate([np.eye(20), queries])


RIGHT = _rows({3: 1.0}, {7: 1.0})


def test_figures_are_those_of_an_exact_search(collection):
    validation = _validation(collection, _rows({3: 1.0}, {8: 0.8, 7: 0.6}))
    # q0 finds d3 first; q1 finds d8, and its own d7 second.
    assert validation.validate(5) == {"MRR@10": 0.75}
    assert validation.latest == (5, {"MRR@10": 0.75})


def test_it_runs_at_every_nth_step_and_adds_to_the_logs(collection):
    validation = _validation(collection, RIGHT, first_step=3)
    validation.on_train_begin()
    steps = {}
    for batch in range(4):
        logs = {"loss": 1.0}
        validation.on_train_batch_end(batch, logs)
        steps[4 + batch] = logs.get("val_MRR@10")
    assert steps == {4: 1.0, 5: None, 6: 1.0, 7: None}
    assert [step for step, _ in validation.history] == [4, 6]


def test_a_step_that_is_jumped_over_is_made_up_for(collection):
    validation = _validation(collection, RIGHT, every_steps=5)
    validation.on_train_begin()
    validation.on_train_batch_end(3)
    # Keras reports the last of several steps per execution: 4, then 8.
    validation.on_train_batch_end(7)
    assert [step for step, _ in validation.history] == [8]


def test_the_sample_has_all_relevant_documents_and_keeps_the_order(collection):
    sample = _validation(collection, num_documents=6).document_ids
    assert len(sample) == len(set(sample)) == 6
    assert {"d3", "d7"} <= set(sample)
    assert sample == sorted(sample, key=list(collection.corpus).index)


def test_the_sample_is_a_function_of_the_seed(collection):
    samples = [
        _validation(collection, num_documents=6, seed=seed).document_ids
        for seed in (1, 1, 2)
    ]
    assert samples[0] == samples[1] != samples[2]


def test_relevant_documents_beyond_the_number_are_kept_and_told(
    collection, caplog
):
    with caplog.at_level(logging.WARNING, logger="tf_samtone"):
        validation = _validation(collection, num_documents=1)
    assert validation.document_ids == ["d3", "d7"]
    assert "all of its 2 relevant documents" in caplog.text


def test_a_small_corpus_is_taken_whole(collection):
    validation = _validation(collection, num_documents=1000)
    assert validation.document_ids == list(collection.corpus)


def test_state_comes_back(collection):
    validation = _validation(collection, RIGHT)
    validation.validate(5)
    other = _validation(collection)
    other.restore(validation.state())
    assert other.history == validation.history


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"every_steps": 0}, "every_steps=0"),
        ({"num_documents": 0}, "num_documents=0"),
        ({"metrics": ("MRR",)}, "metric='MRR'"),
    ],
    ids=["interval", "documents", "metric"],
)
def test_bad_options_are_refused(collection, options, message):
    with pytest.raises(InvalidInputError, match=message):
        _validation(collection, **options)


def test_an_unknown_split_is_refused(collection):
    with pytest.raises(InvalidInputError, match="split='valid'"):
        RetrievalValidation(collection, "valid", every_steps=1)


def test_in_a_fit_it_measures_the_weights_of_its_step(make_recipe, beir_folder):
    recipe = make_recipe()
    collection = read_beir_folder(beir_folder)
    model = build_model(recipe)
    stage = recipe.stages[0]
    model.compile(
        optimizer=build_optimizer(recipe.optimizer, stage),
        loss=build_loss(recipe.loss),
    )
    validation = RetrievalValidation(
        collection, "train", every_steps=3, metrics=("nDCG@10",)
    )
    model.fit(
        build_dataset(model, collection.pairs("train"), stage, recipe.seed),
        steps_per_epoch=stage.steps,
        verbose=0,
        callbacks=[validation],
    )
    ids, texts = collection.evaluation_queries("train")
    index = ExactIndex.build(
        model.encode_documents(list(collection.corpus.values())),
        list(collection.corpus),
    )
    run = to_run(ids, *index.search(model.encode_queries(texts), 6))
    expected = evaluate(run, collection.qrels["train"], ["nDCG@10"])
    assert validation.history == [(3, expected)]
