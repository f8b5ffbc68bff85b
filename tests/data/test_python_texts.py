"""Texts that stand for definitions."""

import pytest

from tf_samtone.data import split_identifiers
from tf_samtone.data.python_module import PythonDefinition
from tf_samtone.data.python_texts import (
    docstring_sentences,
    document_text,
    first_paragraph,
    is_query,
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ignore_errors=False", "ignore errors false"),
        ("HTTPServer.getURLs", "http server get ur ls"),
        ("BaseHTTPRequestHandler", "base http request handler"),
        ("conv2DTranspose", "conv2 d transpose"),
        ("Remove a directory tree.", "remove a directory tree"),
        ("Größe_in_Metern", "größe in metern"),
        ("__init__", "init"),
        (" \n", ""),
    ],
)
def test_split_identifiers(text, words):
    assert split_identifiers(text) == words


def test_splitting_twice_changes_nothing():
    once = split_identifiers("tf.keras.layers.Conv2D(filters, name='x_y')")

    assert split_identifiers(once) == once


@pytest.mark.parametrize(
    ("docstring", "paragraph"),
    [
        ("One line.", "One line."),
        ("Two\n   lines.\n\nMore.", "Two lines."),
        ("Text.\nArgs:\n  x: a number.", "Text."),
        ("Text.\nParameters\n----------\nx : int", "Text."),
        ("Text.\n>>> f(1)\n2", "Text."),
        ("Text.\n:param x: a number", "Text."),
        ("Args:\n  x: a number.", ""),
        ("", ""),
    ],
    ids=[
        "line",
        "blank line",
        "google",
        "numpy",
        "doctest",
        "sphinx",
        "no text",
        "empty",
    ],
)
def test_first_paragraph_ends_at_a_blank_line_or_section(docstring, paragraph):
    assert first_paragraph(docstring) == paragraph


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Remove a directory tree.", True),
        ("Remove a tree.", False),
        ("x -> y -> z == 1", False),
        ("one two three four five six", True),
        ("one two three four five six seven", False),
        ("TODO: add doc for this.", False),
    ],
    ids=["four", "three", "symbols", "six", "seven", "placeholder"],
)
def test_query_has_four_to_six_words(text, expected):
    assert is_query(text, 4, 6) is expected


def test_docstring_is_cut_at_sentence_ends_and_blank_lines():
    docstring = "First one. Second\none!\n\nthird e.g. this\n\n\nFourth."

    assert docstring_sentences(docstring) == [
        "First one.",
        "Second one!",
        "third e.g. this",
        "Fourth.",
    ]


def test_document_is_name_signature_and_code():
    definition = PythonDefinition("m.f", "x, y=1", "Doc.", "return x", False)

    assert document_text(definition) == "m.f(x, y=1)\nreturn x"
