"""TREC run and qrels files."""

import math

import numpy as np
import pytest

from tf_samtone.errors import (
    DataError,
    InvalidInputError,
    OutputExistsError,
)
from tf_samtone.evaluation import (
    evaluate,
    read_qrels,
    read_run,
    write_qrels,
    write_run,
)

RUN = {"q1": {"a": 0.5, "b": 2.0, "c": 2.0}, "q2": {"ü": -1.25}}
QRELS = {"q1": {"a": 1, "b": 0}, "q2": {"ü": 3}}


def test_a_run_is_written_in_the_order_of_trec_eval(tmp_path):
    write_run(RUN, tmp_path / "run.txt", tag="mine")

    # The tie of b and c goes to the greater id.
    assert (tmp_path / "run.txt").read_text("utf-8") == (
        "q1 Q0 c 1 2 mine\n"
        "q1 Q0 b 2 2 mine\n"
        "q1 Q0 a 3 0.5 mine\n"
        "q2 Q0 ü 1 -1.25 mine\n"
    )


def test_a_run_is_read_back(tmp_path):
    write_run(RUN, tmp_path / "run.txt")

    assert read_run(tmp_path / "run.txt") == RUN


def test_nine_digits_keep_every_float32_apart(tmp_path):
    first = np.float32(1 / 3)
    second = np.nextafter(first, np.float32(1))
    run = {"q": {"a": float(second), "b": float(first)}}

    write_run(run, tmp_path / "run.txt")
    read = read_run(tmp_path / "run.txt")["q"]

    assert np.float32(read["a"]) == second
    assert np.float32(read["b"]) == first


def test_scores_equal_in_float32_are_ordered_as_ties(tmp_path):
    # trec_eval keeps float32, where these two scores are equal.
    write_run({"q": {"a": 1 + 1e-12, "b": 1.0}}, tmp_path / "run.txt")

    assert list(read_run(tmp_path / "run.txt")["q"]) == ["b", "a"]


def test_a_run_from_a_file_has_the_same_figures(tmp_path):
    write_run(RUN, tmp_path / "run.txt")

    read = read_run(tmp_path / "run.txt")

    assert evaluate(read, QRELS) == evaluate(RUN, QRELS)


def test_qrels_are_written_and_read_back(tmp_path):
    write_qrels(QRELS, tmp_path / "qrels.txt")

    assert (tmp_path / "qrels.txt").read_text("utf-8") == (
        "q1 0 a 1\nq1 0 b 0\nq2 0 ü 3\n"
    )
    assert read_qrels(tmp_path / "qrels.txt") == QRELS


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbfq 0 a 1\nq 0 b 0\n",
        b"q 0 a 1\r\nq 0 b 0\r\n",
        b"q\t0\ta\t1\nq  0 b\t0",
        b"\nq 0 a 1\n\n  \nq 0 b 0\n\n",
    ],
    ids=["byte_order_mark", "crlf", "tabs", "empty_lines"],
)
def test_variants_of_the_format_are_read(tmp_path, content):
    (tmp_path / "qrels.txt").write_bytes(content)

    assert read_qrels(tmp_path / "qrels.txt") == {"q": {"a": 1, "b": 0}}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("q Q0 b 2 1.0", r"run\.txt:2.*5 fields"),
        ("q Q0 b 2 1.0 tag more", "7 fields"),
        ("q Q0 b 2 high tag", r"finite score at .*run\.txt:2.*'high'"),
        ("q Q0 b 2 nan tag", "'nan'"),
        ("q Q0 b 2 -inf tag", "'-inf'"),
        ("q Q0 a 2 1.0 tag", r"'a' again for query 'q' at .*run\.txt:2"),
    ],
    ids=["few", "many", "text", "nan", "inf", "repeated"],
)
def test_a_bad_line_of_a_run_is_named(tmp_path, line, message):
    (tmp_path / "run.txt").write_text(f"q Q0 a 1 2.0 tag\n{line}\n")

    with pytest.raises(DataError, match=message):
        read_run(tmp_path / "run.txt")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("q 0 b", r"qrels\.txt:2.*3 fields"),
        ("q 0 b 0.5", r"integer relevance at .*qrels\.txt:2.*'0.5'"),
        ("q 0 a 1", r"'a' again for query 'q' at .*qrels\.txt:2"),
    ],
    ids=["few", "fraction", "repeated"],
)
def test_a_bad_line_of_qrels_is_named(tmp_path, line, message):
    (tmp_path / "qrels.txt").write_text(f"q 0 a 1\n{line}\n")

    with pytest.raises(DataError, match=message):
        read_qrels(tmp_path / "qrels.txt")


@pytest.mark.parametrize("read", [read_run, read_qrels])
def test_a_missing_file_is_named(tmp_path, read):
    with pytest.raises(DataError, match=r"absent\.txt"):
        read(tmp_path / "absent.txt")


@pytest.mark.parametrize("read", [read_run, read_qrels])
@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "is empty"), (b" \n\n", "is empty"), (b"\xff\xfe", "UTF-8")],
    ids=["no_bytes", "white_space", "no_utf8"],
)
def test_an_unreadable_file_is_named(tmp_path, read, content, message):
    (tmp_path / "file.txt").write_bytes(content)

    with pytest.raises(DataError, match=message):
        read(tmp_path / "file.txt")


@pytest.mark.parametrize(
    ("run", "arguments", "message"),
    [
        ({"q 1": {"a": 1.0}}, {}, "query id without white space"),
        ({"q": {"a b": 1.0}}, {}, "document id without white space"),
        (RUN, {"tag": ""}, "tag without white space"),
        ({"q": {"a": math.nan}}, {}, "score=nan"),
    ],
    ids=["query", "document", "tag", "nan"],
)
def test_a_run_that_cannot_be_written_leaves_no_file(
    tmp_path, run, arguments, message
):
    with pytest.raises(InvalidInputError, match=message):
        write_run(run, tmp_path / "run.txt", **arguments)

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "qrels",
    [{"q 1": {"a": 1}}, {"q": {"a b": 1}}],
    ids=["query", "document"],
)
def test_qrels_with_white_space_in_ids_are_refused(tmp_path, qrels):
    with pytest.raises(InvalidInputError, match="without white space"):
        write_qrels(qrels, tmp_path / "qrels.txt")


@pytest.mark.parametrize(
    ("write", "table"), [(write_run, RUN), (write_qrels, QRELS)]
)
def test_an_existing_file_is_replaced_only_on_request(tmp_path, write, table):
    path = tmp_path / "file.txt"
    path.write_text("precious")

    with pytest.raises(OutputExistsError, match="which exists"):
        write(table, path)
    assert path.read_text() == "precious"

    write(table, path, overwrite=True)
    assert path.read_text("utf-8").startswith("q1 ")
