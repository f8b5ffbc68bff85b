"""`samtone-index`."""

import numpy as np
import pytest

from tf_samtone.export.index_main import main
from tf_samtone.retrieval import load_index


@pytest.mark.parametrize("kind", ["exact", "scann"])
def test_an_index_finds_each_document_by_its_own_embedding(
    kind, preset, shared_model, collection, tmp_path
):
    output = tmp_path / "index"

    code = main(
        [
            "index",
            f"--model={preset}",
            f"--corpus={collection}",
            f"--output={output}",
            f"--kind={kind}",
        ]
    )

    assert code == 0
    index = load_index(output, model_fingerprint=shared_model.fingerprint())
    assert index.kind.startswith(kind)
    embeddings = shared_model.encode_documents(
        ["Hamlet is a tragedy", "Paris is a capital", "a whale is no fish"]
    )
    scores, ids = index.search(embeddings, 1)
    assert ids[:, 0].tolist() == ["hamlet", "paris", "whale"]
    np.testing.assert_allclose(scores[:, 0], 1.0, atol=1e-4)


def test_a_keyword_index_needs_no_model_and_reads_a_single_file(
    collection, tmp_path
):
    output = tmp_path / "index"

    code = main(
        [
            "index",
            f"--corpus={collection}/corpus.jsonl",
            f"--output={output}",
            "--kind=bm25",
        ]
    )

    assert code == 0
    _, ids = load_index(output).search(["whale"], 1)
    assert ids.tolist() == [["whale"]]


def test_an_index_of_embeddings_without_a_model_is_refused(
    collection, tmp_path, capsys
):
    output = tmp_path / "index"

    code = main(["index", f"--corpus={collection}", f"--output={output}"])

    assert code == 1
    assert "Expected --model" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_an_output_in_use_is_refused_before_anything_is_read(
    collection, tmp_path, capsys
):
    (tmp_path / "old").write_text("old")
    arguments = ["index", f"--output={tmp_path}", "--kind=bm25"]

    assert main([*arguments, "--corpus=absent"]) == 1
    assert "already holds files" in capsys.readouterr().err
    assert main([*arguments, f"--corpus={collection}", "--overwrite"]) == 0
    assert not (tmp_path / "old").exists()


def test_a_broken_corpus_line_is_named(tmp_path, capsys):
    (tmp_path / "corpus.jsonl").write_text('{"_id": "a", "text": "b"}\nnot\n')

    code = main(
        [
            "index",
            f"--corpus={tmp_path}",
            f"--output={tmp_path}/index",
            "--kind=bm25",
        ]
    )

    assert code == 1
    assert "corpus.jsonl:2" in capsys.readouterr().err
