"""`samtone-evaluate`."""

import json

import pytest

from tf_samtone.evaluation import read_run
from tf_samtone.export.evaluate_main import main
from tf_samtone.retrieval import BM25Index, ExactIndex

TEXTS = ["Hamlet is a tragedy", "Paris is a capital", "a whale is no fish"]
IDS = ["hamlet", "paris", "whale"]


@pytest.fixture(scope="module")
def keyword_index(tmp_path_factory):
    folder = tmp_path_factory.mktemp("keyword") / "index"
    BM25Index.build(TEXTS, IDS).save(folder)
    return folder


def _metrics(folder):
    return json.loads((folder / "metrics.json").read_text())


def test_a_run_file_is_measured_as_by_hand(collection, tmp_path, capsys):
    run = tmp_path / "run.trec"
    # q1: hamlet at rank 2. q2: whale at rank 1. MRR = (1/2 + 1) / 2.
    run.write_text(
        "q1 Q0 paris 1 2.0 x\nq1 Q0 hamlet 2 1.0 x\nq2 Q0 whale 1 1.0 x\n"
    )
    output = tmp_path / "results"

    code = main(
        [
            "evaluate",
            f"--run={run}",
            f"--data={collection}",
            "--metrics=P@1,MRR@10",
            f"--output={output}",
        ]
    )

    assert code == 0
    assert _metrics(output) == {"P@1": 0.5, "MRR@10": 0.75}
    printed = capsys.readouterr().out
    assert "2 judged queries" in printed
    assert "MRR@10    0.7500" in printed


def test_a_keyword_index_is_measured_with_its_run_and_settings(
    collection, keyword_index, tmp_path
):
    output = tmp_path / "results"

    code = main(
        [
            "evaluate",
            f"--index={keyword_index}",
            f"--data={collection}",
            f"--output={output}",
        ]
    )

    assert code == 0
    assert _metrics(output)["P@1"] == 1.0
    run = read_run(output / "run.trec")
    assert {query: next(iter(row)) for query, row in run.items()} == {
        "q1": "hamlet",
        "q2": "whale",
    }
    settings = json.loads((output / "flags.json").read_text())
    assert settings["index"] == str(keyword_index)
    assert settings["k"] == 100


def test_a_model_alone_equals_its_exact_index(
    preset, shared_model, collection, tmp_path
):
    folder = tmp_path / "index"
    ExactIndex.build(
        shared_model.encode_documents(TEXTS),
        IDS,
        model_fingerprint=shared_model.fingerprint(),
    ).save(folder)
    common = ["evaluate", f"--model={preset}", f"--data={collection}"]

    alone = main([*common, f"--output={tmp_path}/alone"])
    indexed = main([*common, f"--index={folder}", f"--output={tmp_path}/both"])

    assert (alone, indexed) == (0, 0)
    assert read_run(tmp_path / "alone" / "run.trec") == read_run(
        tmp_path / "both" / "run.trec"
    )


def test_only_k_documents_are_retrieved(collection, keyword_index, tmp_path):
    output = tmp_path / "results"

    main(
        [
            "evaluate",
            f"--index={keyword_index}",
            f"--data={collection}",
            f"--output={output}",
            "--k=1",
        ]
    )

    run = read_run(output / "run.trec")
    assert [len(row) for row in run.values()] == [1, 1]


def test_without_output_nothing_is_written(
    collection, keyword_index, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)

    code = main(
        ["evaluate", f"--index={keyword_index}", f"--data={collection}"]
    )

    assert code == 0
    assert "nDCG@10" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "sources", [[], ["--run=a", "--index=b"]], ids=["none", "both"]
)
def test_exactly_one_source_is_asked_for(sources, collection, capsys):
    assert main(["evaluate", f"--data={collection}", *sources]) == 1
    assert "Expected either --run" in capsys.readouterr().err


def test_an_unknown_split_is_refused_with_the_known_ones(
    collection, keyword_index, capsys
):
    code = main(
        [
            "evaluate",
            f"--index={keyword_index}",
            f"--data={collection}",
            "--split=dev",
        ]
    )

    assert code == 1
    assert "['test']" in capsys.readouterr().err


def test_an_unknown_metric_is_refused(collection, keyword_index, capsys):
    code = main(
        [
            "evaluate",
            f"--index={keyword_index}",
            f"--data={collection}",
            "--metrics=F@1",
        ]
    )

    assert code == 1
    assert "F@1" in capsys.readouterr().err


def test_an_output_in_use_is_refused_before_anything_is_read(tmp_path, capsys):
    (tmp_path / "old").write_text("old")

    code = main(["evaluate", "--index=no", "--data=no", f"--output={tmp_path}"])

    assert code == 1
    assert "already holds files" in capsys.readouterr().err
