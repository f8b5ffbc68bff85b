"""The BM25 baseline of a real collection, if it is there."""

import json
import pathlib

import pytest

from tf_samtone.evaluation import evaluate
from tf_samtone.retrieval import BM25Index, to_run

MEDQUAD = pathlib.Path(__file__).parents[3] / "shared" / "data" / "medquad"


def json_lines(name):
    with open(MEDQUAD / name, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


@pytest.mark.skipif(not MEDQUAD.is_dir(), reason="needs ../shared/data/medquad")
def test_bm25_has_the_known_figures_on_medquad():
    corpus = json_lines("corpus.jsonl")
    texts = {row["_id"]: row["text"] for row in json_lines("queries.jsonl")}
    lines = (MEDQUAD / "qrels" / "test.tsv").read_text("utf-8").splitlines()
    qrels = {}
    for query_id, document_id, score in (
        line.split("\t") for line in lines[1:]
    ):
        qrels.setdefault(query_id, {})[document_id] = int(score)
    index = BM25Index.build(
        [f"{row.get('title', '')} {row['text']}".strip() for row in corpus],
        [row["_id"] for row in corpus],
    )

    scores, ids = index.search([texts[query_id] for query_id in qrels], 10)

    figures = evaluate(
        to_run(list(qrels), scores, ids), qrels, ["P@1", "MRR@10", "hit@10"]
    )
    # bm25s 0.3.16 called directly, with its own top k, gave these.
    assert figures == pytest.approx(
        {"P@1": 0.278, "MRR@10": 0.442, "hit@10": 0.805}, abs=0.001
    )
