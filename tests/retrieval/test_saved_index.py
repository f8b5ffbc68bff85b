"""Saving and loading of every kind of index."""

import importlib
import json
import os
import pathlib
import shutil

import numpy as np
import pytest

from tf_samtone import _files
from tf_samtone.errors import (
    CorruptFileError,
    MismatchError,
    OutputExistsError,
)
from tf_samtone.retrieval import (
    BM25Index,
    ExactIndex,
    ScannIndex,
    load_index,
)

WORDS = ["red", "green", "blue", "fox", "whale", "tree"]


class Case:
    """An index with the queries that fit it."""

    def __init__(self, index, queries):
        self.index = index
        self.queries = queries

    def results(self, index):
        scores, ids = index.search(self.queries, 5)
        return scores.tolist(), ids.tolist()


def make_case(kind, corpus, queries):
    embeddings, ids = corpus
    if kind == "bm25":
        texts = [f"{WORDS[i % 6]} {WORDS[i % 5]} {i}" for i in range(300)]
        return Case(BM25Index.build(texts, ids), ["red fox", "tree 17", "zz"])
    if kind == "exact":
        index = ExactIndex.build(embeddings, ids, model_fingerprint="model-a")
    else:
        index = ScannIndex.build(
            embeddings, ids, model_fingerprint="model-a", method=kind
        )
    return Case(index, queries)


@pytest.fixture(params=["exact", "brute_force", "hash", "tree", "bm25"])
def case(request, corpus, queries):
    return make_case(request.param, corpus, queries)


@pytest.fixture(params=["exact", "tree"])
def vector_folder(request, corpus, queries, tmp_path):
    index = make_case(request.param, corpus, queries).index
    index.save(tmp_path / "index")
    return tmp_path / "index"


def test_a_loaded_index_answers_as_before(case, tmp_path):
    case.index.save(tmp_path / "index")

    loaded = load_index(tmp_path / "index")

    assert type(loaded) is type(case.index)
    assert loaded.ids == case.index.ids
    assert case.results(loaded) == case.results(case.index)


def test_a_moved_index_answers_as_before(case, tmp_path):
    case.index.save(tmp_path / "index")
    shutil.move(tmp_path / "index", tmp_path / "moved")

    # ScaNN writes absolute paths unless told otherwise.
    loaded = type(case.index).load(tmp_path / "moved")

    assert case.results(loaded) == case.results(case.index)


def test_no_file_is_a_pickle_or_needs_one(case, tmp_path):
    case.index.save(tmp_path / "index")

    files = [p for p in (tmp_path / "index").rglob("*") if p.is_file()]
    arrays = [p for p in files if p.suffix == ".npy"]
    assert {p.suffix for p in files} <= {
        *(".json", ".jsonl", ".npy", ".pb", ".pbtxt"),
    }
    assert arrays
    assert all(np.load(p, allow_pickle=False) is not None for p in arrays)


def test_the_same_index_is_saved_with_the_same_bytes(case, tmp_path):
    case.index.save(tmp_path / "a")
    case.index.save(tmp_path / "b")

    first = (tmp_path / "a" / "manifest.json").read_bytes()
    assert first == (tmp_path / "b" / "manifest.json").read_bytes()


def test_any_changed_byte_is_found(case, tmp_path):
    case.index.save(tmp_path / "index")
    files = sorted(p for p in (tmp_path / "index").rglob("*") if p.is_file())
    found = []
    # Every file in turn: ScaNN loads a damaged one and answers.
    for path in files:
        content = path.read_bytes()
        damaged = bytearray(content)
        damaged[len(damaged) // 2] ^= 1
        path.write_bytes(damaged)
        with pytest.raises(CorruptFileError):
            load_index(tmp_path / "index")
        path.write_bytes(content)
        found.append(path)

    assert found == files
    assert len(load_index(tmp_path / "index")) == 300


def test_a_planted_pickle_is_refused(case, tmp_path):
    case.index.save(tmp_path / "index")
    folder = tmp_path / "index" / "scann"
    folder.mkdir(exist_ok=True)
    # ScaNN unpickles this file if it is there.
    (folder / "scann_docids.pkl").write_bytes(b"cos\nsystem\n.")

    with pytest.raises(CorruptFileError, match=r"scann_docids\.pkl"):
        load_index(tmp_path / "index")


def test_files_that_scann_cannot_read_are_reported(
    corpus, tmp_path, monkeypatch
):
    ScannIndex.build(*corpus).save(tmp_path / "index")

    def fail(folder):
        raise RuntimeError("unknown proto")

    module = importlib.import_module("scann.scann_ops.py.scann_ops_pybind")
    monkeypatch.setattr(module, "load_searcher", fail)
    # The checksums are right, so the versions of ScaNN differ.
    with pytest.raises(CorruptFileError, match="ScaNN 1.*unknown proto"):
        ScannIndex.load(tmp_path / "index")


@pytest.mark.parametrize(
    ("name", "message"),
    [("ids.jsonl", "300 ids"), ("embeddings.npy", r"float32 \(300, 16\)")],
)
def test_files_of_two_indexes_do_not_mix(corpus, tmp_path, name, message):
    embeddings, ids = corpus
    ExactIndex.build(*corpus).save(tmp_path / "a")
    ExactIndex.build(embeddings[:9], ids[:9]).save(tmp_path / "b")
    shutil.copy(tmp_path / "b" / name, tmp_path / "a" / name)
    fields = _files.read_manifest(
        tmp_path / "b", kind="exact_index", supported_version=1
    )
    _files.write_manifest(
        tmp_path / "a",
        kind="exact_index",
        format_version=1,
        fields={**fields, "count": 300},
    )

    # The checksums are right, but the parts do not fit together.
    with pytest.raises(CorruptFileError, match=message):
        ExactIndex.load(tmp_path / "a")


def test_another_model_is_refused_with_both_fingerprints(vector_folder):
    with pytest.raises(MismatchError, match="'model-b'.*'model-a'"):
        load_index(vector_folder, model_fingerprint="model-b")


def test_the_right_model_and_width_are_accepted(vector_folder):
    index = load_index(vector_folder, model_fingerprint="model-a", dim=16)

    assert index.model_fingerprint == "model-a"


def test_another_width_is_refused(vector_folder):
    with pytest.raises(MismatchError, match="dim=8.*dim=16"):
        load_index(vector_folder, dim=8)


def test_an_index_without_fingerprint_is_refused_for_a_model(corpus, tmp_path):
    ExactIndex.build(*corpus).save(tmp_path / "index")

    # Nobody knows which model made it.
    with pytest.raises(MismatchError, match="'model-a'.*made by ''"):
        load_index(tmp_path / "index", model_fingerprint="model-a")


def test_a_keyword_index_is_refused_for_a_model(tmp_path):
    BM25Index.build(["word"], ["a"]).save(tmp_path / "index")

    # It takes texts, not embeddings.
    with pytest.raises(MismatchError, match="bm25_index"):
        load_index(tmp_path / "index", model_fingerprint="model-a")


def test_the_class_of_another_kind_is_refused(corpus, tmp_path):
    ExactIndex.build(*corpus).save(tmp_path / "index")

    with pytest.raises(MismatchError, match="exact_index"):
        ScannIndex.load(tmp_path / "index")


def test_a_folder_with_files_is_not_overwritten(case, tmp_path):
    (tmp_path / "kept").write_text("precious")

    with pytest.raises(OutputExistsError, match="already holds files"):
        case.index.save(tmp_path)

    assert os.listdir(tmp_path) == ["kept"]


def test_overwrite_replaces_an_index(case, corpus, tmp_path):
    ExactIndex.build(*corpus).save(tmp_path / "index")

    case.index.save(tmp_path / "index", overwrite=True)

    assert type(load_index(tmp_path / "index")) is type(case.index)


def test_overwrite_does_not_delete_a_folder_that_is_no_index(case, tmp_path):
    (tmp_path / "thesis.txt").write_text("precious")

    # A wrong path must not cost somebody's files.
    with pytest.raises(OutputExistsError, match="has no manifest"):
        case.index.save(tmp_path, overwrite=True)

    assert (tmp_path / "thesis.txt").read_text() == "precious"


def test_an_interrupted_save_leaves_nothing(corpus, tmp_path, monkeypatch):
    index = ExactIndex.build(*corpus)

    def stop(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "save", stop)
    with pytest.raises(KeyboardInterrupt):
        index.save(tmp_path / "index")

    assert os.listdir(tmp_path) == []


def test_ids_with_line_separators_survive(tmp_path):
    ids = ["a\nb", "c\u2028d", "é", 'quote"']
    ExactIndex.build(np.eye(4, dtype=np.float32), ids).save(tmp_path / "index")

    assert ExactIndex.load(tmp_path / "index").ids == ids
    lines = pathlib.Path(tmp_path, "index", "ids.jsonl").read_text("utf-8")
    assert [json.loads(line) for line in lines.split("\n")[:-1]] == ids
