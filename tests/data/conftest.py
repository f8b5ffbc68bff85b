"""A small BEIR folder and preprocessors for the data tests."""

import json
import pathlib

import pytest
from data_files.make_tiny_vocabulary import TINY_VOCABULARY

from tf_samtone.text import TextPreprocessor, load_tokenizer

CORPUS = [
    {"_id": "d2", "title": "Cats", "text": "They sleep."},
    {"_id": "d1", "title": "", "text": "Dogs bark."},
    {"_id": "d3", "text": "caf\u00e9"},
]
QUERIES = [
    {"_id": "q1", "text": "who sleeps?"},
    {"_id": "q2", "text": ""},
    {"_id": "q3", "text": "who barks?"},
]
TRAIN = (
    "query-id\tcorpus-id\tscore\nq3\td1\t1\nq1\td2\t2\nq1\td1\t0\nq3\td3\t1\n"
)
TEST = "query-id\tcorpus-id\tscore\nq2\td3\t1\n"


def json_lines(records: list[dict[str, str]]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


@pytest.fixture
def beir_folder(tmp_path: pathlib.Path) -> pathlib.Path:
    (tmp_path / "qrels").mkdir()
    (tmp_path / "corpus.jsonl").write_text(json_lines(CORPUS))
    (tmp_path / "queries.jsonl").write_text(json_lines(QUERIES))
    (tmp_path / "qrels/train.tsv").write_text(TRAIN)
    (tmp_path / "qrels/test.tsv").write_text(TEST)
    return tmp_path


@pytest.fixture(scope="session")
def query_preprocessor() -> TextPreprocessor:
    return TextPreprocessor(load_tokenizer(TINY_VOCABULARY), 6)


@pytest.fixture(scope="session")
def document_preprocessor() -> TextPreprocessor:
    return TextPreprocessor(load_tokenizer(TINY_VOCABULARY), 10)
