"""The BEIR reader on a small folder, whole and broken in every way."""

import codecs
import pathlib

import pytest

from tf_samtone.data import read_beir_folder
from tf_samtone.errors import DataError, InvalidInputError

MEDQUAD = pathlib.Path(__file__).parents[2].parent / "shared/data/medquad"
SPLITS = ("train", "test")


def test_documents_are_title_and_text_in_file_order(beir_folder):
    corpus = read_beir_folder(beir_folder, SPLITS).corpus

    assert list(corpus.items()) == [
        ("d2", "Cats They sleep."),
        ("d1", "Dogs bark."),
        ("d3", "caf\u00e9"),
    ]


def test_queries_keep_empty_texts(beir_folder):
    queries = read_beir_folder(beir_folder, SPLITS).queries

    assert queries == {"q1": "who sleeps?", "q2": "", "q3": "who barks?"}


def test_qrels_are_integers_in_file_order(beir_folder):
    qrels = read_beir_folder(beir_folder, SPLITS).qrels

    assert list(qrels["train"].items()) == [
        ("q3", {"d1": 1, "d3": 1}),
        ("q1", {"d2": 2, "d1": 0}),
    ]
    assert qrels["test"] == {"q2": {"d3": 1}}


def test_only_the_named_splits_are_read(beir_folder):
    assert list(read_beir_folder(beir_folder, ["test"]).qrels) == ["test"]


def test_none_reads_every_split(beir_folder):
    assert set(read_beir_folder(beir_folder, None).qrels) == set(SPLITS)


def test_a_header_may_be_absent(beir_folder):
    (beir_folder / "qrels/test.tsv").write_text("q2\td3\t1\n")

    qrels = read_beir_folder(beir_folder, ["test"]).qrels

    assert qrels == {"test": {"q2": {"d3": 1}}}


def test_a_repeated_judgment_with_the_same_grade_counts_once(beir_folder):
    (beir_folder / "qrels/test.tsv").write_text("q2\td3\t1\nq2\td3\t1\n")

    qrels = read_beir_folder(beir_folder, ["test"]).qrels

    assert qrels == {"test": {"q2": {"d3": 1}}}


@pytest.mark.parametrize(
    "rewrite",
    [
        lambda data: codecs.BOM_UTF8 + data,
        lambda data: data.replace(b"\n", b"\r\n"),
        lambda data: data.replace(b"\n", b"\n\n") + b"  \n",
        lambda data: data.rstrip(b"\n"),
    ],
    ids=["byte_order_mark", "crlf", "blank_lines", "no_last_line_end"],
)
def test_harmless_variants_read_the_same(beir_folder, rewrite):
    expected = read_beir_folder(beir_folder, SPLITS)
    for file in [*beir_folder.glob("*.jsonl"), *beir_folder.rglob("*.tsv")]:
        file.write_bytes(rewrite(file.read_bytes()))

    assert read_beir_folder(beir_folder, SPLITS) == expected


def test_a_null_title_is_no_title(beir_folder):
    with (beir_folder / "corpus.jsonl").open("a") as file:
        file.write('{"_id": "d4", "title": null, "text": " x "}\n')

    assert read_beir_folder(beir_folder, SPLITS).corpus["d4"] == "x"


def test_a_lone_surrogate_is_replaced(beir_folder):
    with (beir_folder / "queries.jsonl").open("a") as file:
        file.write('{"_id": "q4", "text": "a \\ud800 b"}\n')

    assert read_beir_folder(beir_folder, SPLITS).queries["q4"] == "a \ufffd b"


@pytest.mark.parametrize(
    "name", ["corpus.jsonl", "queries.jsonl"], ids=["corpus", "queries"]
)
@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("not json", "Expected one JSON object per line"),
        ('{"_id": "x", "text": "cut', "Expected one JSON object per line"),
        ('["x"]', "a list"),
        ('{"text": "x"}', "Expected a field `_id`"),
        ('{"_id": "x"}', "Expected a field `text`"),
        ('{"_id": 7, "text": "x"}', "Expected `_id` to be a string"),
        ('{"_id": "x", "text": null}', "Expected `text` to be a string"),
        ('{"_id": "", "text": "x"}', "without white space"),
        ('{"_id": "a b", "text": "x"}', "without white space"),
    ],
    ids=[
        "no_json",
        "cut_json",
        "list",
        "no_id",
        "no_text",
        "int_id",
        "null_text",
        "empty_id",
        "space_in_id",
    ],
)
def test_a_bad_text_line_is_named(beir_folder, name, line, message):
    with (beir_folder / name).open("a") as file:
        file.write(line + "\n")

    with pytest.raises(DataError, match=message) as error:
        read_beir_folder(beir_folder, SPLITS)

    assert f"{beir_folder / name}:4:" in str(error.value)


@pytest.mark.parametrize(
    ("name", "identifier"), [("corpus.jsonl", "d1"), ("queries.jsonl", "q2")]
)
def test_a_duplicate_id_names_both_lines(beir_folder, name, identifier):
    with (beir_folder / name).open("a") as file:
        file.write(f'{{"_id": "{identifier}", "text": "again"}}\n')

    with pytest.raises(DataError, match=f"{name}:4: .*first seen on line 2"):
        read_beir_folder(beir_folder, SPLITS)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("q9\td1\t1", "known query. .*'q9'"),
        ("q1\td9\t1", "known document. .*'d9'"),
        ("q1\td1", "2 columns"),
        ("q1 0 d1 1", "1 columns"),
        ("q1\t0\td1\t1", "4 columns"),
        ("q1\td1\t0.5", "score='0.5'"),
        ("q1\td1\t", "score=''"),
        ("q1\td1\tyes", "score='yes'"),
        ("query-id\tcorpus-id\tscore", "score='score'"),
        ("q2\td3\t2", "2 for 'q2' and 'd3', before it 1"),
    ],
    ids=[
        "unknown_query",
        "unknown_document",
        "two_columns",
        "spaces",
        "trec_columns",
        "float",
        "empty_score",
        "word",
        "second_header",
        "conflict",
    ],
)
def test_a_bad_qrels_line_is_named(beir_folder, line, message):
    path = beir_folder / "qrels/test.tsv"
    with path.open("a") as file:
        file.write(line + "\n")

    with pytest.raises(DataError, match=message) as error:
        read_beir_folder(beir_folder, SPLITS)

    assert f"{path}:3:" in str(error.value)


@pytest.mark.parametrize(
    "name", ["corpus.jsonl", "queries.jsonl", "qrels/test.tsv"]
)
def test_bytes_that_are_not_utf8_are_named(beir_folder, name):
    with (beir_folder / name).open("ab") as file:
        file.write(b"ab\xe9\n")

    with pytest.raises(DataError, match=r":[34]: byte 0xe9 at position 2"):
        read_beir_folder(beir_folder, SPLITS)


@pytest.mark.parametrize("name", ["corpus.jsonl", "queries.jsonl"])
def test_a_missing_file_is_named(beir_folder, name):
    (beir_folder / name).unlink()

    with pytest.raises(DataError, match=f"{name}, which is absent"):
        read_beir_folder(beir_folder, SPLITS)


@pytest.mark.parametrize(
    "name", ["corpus.jsonl", "queries.jsonl", "qrels/test.tsv"]
)
@pytest.mark.parametrize("content", ["", "\n \n"], ids=["empty", "blank"])
def test_an_empty_file_is_named(beir_folder, name, content):
    (beir_folder / name).write_text(content)

    with pytest.raises(DataError, match=f"{name}, which is empty"):
        read_beir_folder(beir_folder, SPLITS)


def test_qrels_of_nothing_but_a_header_are_refused(beir_folder):
    (beir_folder / "qrels/test.tsv").write_text("query-id\tcorpus-id\tscore\n")

    with pytest.raises(DataError, match="judgments after the header"):
        read_beir_folder(beir_folder, SPLITS)


def test_an_absent_split_lists_what_is_there(beir_folder):
    with pytest.raises(DataError, match=r"with \['test', 'train'\]"):
        read_beir_folder(beir_folder, ("train", "dev"))


def test_an_absent_split_is_found_before_the_corpus_is_read(beir_folder):
    (beir_folder / "corpus.jsonl").write_text("not json")

    with pytest.raises(DataError, match="dev"):
        read_beir_folder(beir_folder, ("dev",))


def test_a_folder_without_qrels_is_refused(beir_folder):
    for file in (beir_folder / "qrels").iterdir():
        file.unlink()

    with pytest.raises(DataError, match=r"qrels with \[\]"):
        read_beir_folder(beir_folder, None)


def test_a_path_that_is_no_folder_is_refused(tmp_path):
    with pytest.raises(DataError, match="not a folder"):
        read_beir_folder(tmp_path / "nowhere")


def test_one_string_as_splits_is_refused(beir_folder):
    with pytest.raises(InvalidInputError, match=r"Write \('test',\)"):
        read_beir_folder(beir_folder, "test")


@pytest.mark.skipif(
    not MEDQUAD.is_dir(), reason="../shared/data/medquad is absent"
)
def test_medquad_has_the_published_counts():
    collection = read_beir_folder(MEDQUAD)

    assert len(collection.corpus) == 15_725
    assert len(collection.queries) == 14_906
    assert {s: len(q) for s, q in collection.qrels.items()} == {
        "train": 11_904,
        "dev": 1_030,
        "test": 1_972,
    }
