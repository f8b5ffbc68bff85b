"""`samtone-search`."""

import io

import pytest

from tf_samtone.export.search_main import main
from tf_samtone.retrieval import BM25Index, ExactIndex

TEXTS = ["Hamlet is a tragedy", "Paris is a capital", "a whale is no fish"]
IDS = ["hamlet", "paris", "whale"]


@pytest.fixture(scope="module")
def dense_index(shared_model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("dense") / "index"
    ExactIndex.build(
        shared_model.encode_documents(TEXTS),
        IDS,
        model_fingerprint=shared_model.fingerprint(),
    ).save(folder)
    return folder


@pytest.fixture(scope="module")
def keyword_index(tmp_path_factory):
    folder = tmp_path_factory.mktemp("keyword") / "index"
    BM25Index.build(TEXTS, IDS).save(folder)
    return folder


def test_it_prints_rank_score_id_and_snippet(
    preset, dense_index, collection, capsys
):
    code = main(
        [
            "search",
            f"--model={preset}",
            f"--index={dense_index}",
            f"--corpus={collection}",
            "--query=Hamlet is a tragedy",
            "--k=2",
        ]
    )

    assert code == 0
    query, first, second = capsys.readouterr().out.strip().split("\n")
    assert query == "Hamlet is a tragedy"
    # The short limit cuts the query, so its score is below 1.
    rank, score, document_id, *snippet = first.split()
    assert (rank, second.split()[0]) == ("1", "2")
    assert float(score) >= float(second.split()[1])
    assert " ".join(snippet) == TEXTS[IDS.index(document_id)]


def test_queries_may_be_repeated_and_no_text_is_shown_without_corpus(
    keyword_index, capsys
):
    code = main(
        [
            "search",
            f"--index={keyword_index}",
            "--query=whale",
            "--query=capital",
            "--k=1",
        ]
    )

    assert code == 0
    blocks = capsys.readouterr().out.strip().split("\n\n")
    assert [block.split()[0] for block in blocks] == ["whale", "capital"]
    assert [block.split()[-1] for block in blocks] == ["whale", "paris"]


def test_queries_come_from_standard_input_otherwise(
    keyword_index, capsys, monkeypatch
):
    monkeypatch.setattr("sys.stdin", io.StringIO("whale\ntragedy\n"))

    code = main(["search", f"--index={keyword_index}", "--k=1"])

    assert code == 0
    blocks = capsys.readouterr().out.strip().split("\n\n")
    assert [block.split()[-1] for block in blocks] == ["whale", "hamlet"]


def test_no_query_at_all_is_refused(keyword_index, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO(""))

    assert main(["search", f"--index={keyword_index}"]) == 1
    assert "Pass --query" in capsys.readouterr().err


def test_more_documents_than_the_corpus_holds_are_refused(
    keyword_index, capsys
):
    arguments = [f"--index={keyword_index}", "--query=whale", "--k=4"]

    assert main(["search", *arguments]) == 1
    assert "k=4" in capsys.readouterr().err


def test_an_index_of_embeddings_asks_for_its_model(dense_index, capsys):
    assert main(["search", f"--index={dense_index}", "--query=whale"]) == 1
    assert "Expected --model" in capsys.readouterr().err


def test_an_index_of_another_model_is_refused(
    preset, shared_model, tmp_path, capsys
):
    folder = tmp_path / "index"
    ExactIndex.build(
        shared_model.encode_documents(TEXTS), IDS, model_fingerprint="other"
    ).save(folder)

    code = main(
        [
            "search",
            f"--model={preset}",
            f"--index={folder}",
            "--query=whale",
            "--k=1",
        ]
    )

    assert code == 1
    error = capsys.readouterr().err
    assert "other" in error
    assert shared_model.fingerprint() in error


def test_a_folder_that_is_no_index_is_refused(tmp_path, capsys):
    assert main(["search", f"--index={tmp_path}", "--query=whale"]) == 1
    assert "manifest.json" in capsys.readouterr().err
