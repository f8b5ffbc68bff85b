"""Docstrings and functions as a collection."""

import pytest

from tf_samtone.data import read_python_docs, read_python_modules
from tf_samtone.errors import DataError, InvalidInputError

# By `split_of_module`: pkg.m0 and pkg.m1 are train, pkg.m6 is dev, and pkg.m15
# and pkg.m22 are test.
FILES = {
    "m0.py": '''
        def count(text):
            """Count the words of a text.

            Longer explanation.
            """
            return len(text.split())

        class Reader:
            """Read files in a loop forever."""

            def read(self):
                """Read one file from the disk."""
                return self.file.read()

            def close(self):
                """Close."""
    ''',
    "m1.py": '''
        def one():
            """Return the shared value, quickly."""
            return 1

        def two():
            """Return the `shared` value quickly"""
            return 2

        def copy():
            """Share one paragraph over files."""
            return "m1"
    ''',
    "m6.py": '''
        def copy():
            """Share one paragraph over files."""
            return "m6"

        def develop(x):
            """Choose something on this split."""
            return x
    ''',
    "m15.py": '''
        async def held_out():
            """Report what was never seen."""
            return "secret"

        def held_out_twice():
            """Be ambiguous in the test."""
            return "first"
    ''',
    "m22.py": '''
        def held_out_again():
            """Be ambiguous in the test."""
            return "second"
    ''',
}


def write(folder, files):
    for name, text in files.items():
        lines = [line[8:] for line in text.splitlines()]
        (folder / name).write_text("\n".join(lines))
    return {"pkg": folder}


@pytest.fixture
def collection(tmp_path):
    return read_python_docs(roots=write(tmp_path, FILES))


def test_documents_are_functions_with_a_usable_docstring(collection):
    assert list(collection.corpus) == [
        "pkg.m0.count",
        "pkg.m0.Reader.read",
        "pkg.m1.one",
        "pkg.m1.two",
        "pkg.m1.copy",
        "pkg.m15.held_out",
        "pkg.m15.held_out_twice",
        "pkg.m22.held_out_again",
        "pkg.m6.copy",
        "pkg.m6.develop",
    ]


def test_document_holds_the_code_without_the_docstring(collection):
    assert collection.corpus["pkg.m0.count"] == (
        "pkg.m0.count(text)\nreturn len(text.split())"
    )


def test_query_is_the_first_paragraph(collection):
    assert collection.queries["q:pkg.m0.count"] == "Count the words of a text."


def test_files_are_held_out_whole(collection):
    assert collection.qrels["test"] == {
        "q:pkg.m15.held_out": {"pkg.m15.held_out": 1}
    }
    assert collection.qrels["dev"] == {
        "q:pkg.m6.develop": {"pkg.m6.develop": 1}
    }


def test_training_query_of_several_functions_has_several_documents(collection):
    assert collection.qrels["train"]["q:pkg.m1.one"] == {
        "pkg.m1.one": 1,
        "pkg.m1.two": 1,
    }


def test_no_held_out_query_occurs_in_training(collection):
    train = set(collection.evaluation_queries("train")[1])

    assert "Share one paragraph over files." in train
    for split in ("dev", "test"):
        assert train.isdisjoint(collection.evaluation_queries(split)[1])


def test_functions_with_equal_text_count_once(tmp_path):
    text = '''
        def f():
            """Return the number one."""
            return 1
        def f():
            """Return the number one again."""
            return 1
    '''

    collection = read_python_docs(roots=write(tmp_path, {"m0.py": text}))

    assert list(collection.corpus) == ["pkg.m0.f"]
    assert list(collection.queries.values()) == ["Return the number one."]


def test_later_definitions_of_a_name_are_numbered(tmp_path):
    text = '''
        class Point:
            @property
            def x(self):
                """Get the first coordinate."""
                return self._x
            @x.setter
            def x(self, value):
                """Set the first coordinate."""
                self._x = value
    '''

    collection = read_python_docs(roots=write(tmp_path, {"m0.py": text}))

    assert list(collection.corpus) == ["pkg.m0.Point.x", "pkg.m0.Point.x#2"]


def test_lengths_of_queries_can_be_chosen(tmp_path):
    roots = write(tmp_path, FILES)

    collection = read_python_docs(roots=roots, min_words=1, max_words=1)

    assert list(collection.queries.values()) == ["Close."]


def test_two_readings_are_equal(tmp_path):
    roots = write(tmp_path, FILES)

    first, second = read_python_docs(roots=roots), read_python_docs(roots=roots)

    assert list(first.corpus.items()) == list(second.corpus.items())
    assert first == second


def test_parsed_modules_can_be_passed_in(tmp_path):
    roots = write(tmp_path, FILES)

    collection = read_python_docs(modules=read_python_modules(roots=roots))

    assert collection == read_python_docs(roots=roots)


def test_sources_without_docstrings_are_an_error(tmp_path):
    roots = write(tmp_path, {"m0.py": "        def f(): pass"})

    # Nothing could be trained or evaluated.
    with pytest.raises(DataError, match="Received: 1 files with none"):
        read_python_docs(roots=roots)


@pytest.mark.parametrize(
    ("min_words", "max_words"), [(0, 5), (6, 5)], ids=["zero", "swapped"]
)
def test_impossible_lengths_are_an_error(tmp_path, min_words, max_words):
    # Checked before any file is read: the folder does not exist.
    with pytest.raises(InvalidInputError, match=f"min_words={min_words}"):
        read_python_docs(
            roots={"pkg": tmp_path / "absent"},
            min_words=min_words,
            max_words=max_words,
        )


def test_real_package_gives_real_questions():
    collection = read_python_docs(["concurrent"])

    name = "concurrent.futures._base.Future.cancelled"
    assert collection.corpus[name].startswith(f"{name}(self)\nwith self._cond")
    assert collection.queries[f"q:{name}"] == (
        "Return True if the future was cancelled."
    )
