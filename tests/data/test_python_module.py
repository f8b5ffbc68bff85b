"""Definitions and comments of one file."""

import codecs
import textwrap

import pytest

from tf_samtone.data.python_module import parse_module
from tf_samtone.errors import DataError


def parse(source: str, name: str = "package.module"):
    return parse_module(textwrap.dedent(source).encode("utf-8"), name)


def definition(source: str, name: str):
    found = {item.name: item for item in parse(source).definitions}
    return found[f"package.module.{name}"]


def test_function_has_name_signature_docstring_and_code():
    found = definition(
        '''
        def add(first, *rest, scale=1.0):
            """Add numbers.

            More text.
            """
            total = first + sum(rest)
            return scale * total
        ''',
        "add",
    )

    assert found.signature == "first, *rest, scale=1.0"
    assert found.docstring == "Add numbers.\n\nMore text."
    assert found.code == "total = first + sum(rest)\nreturn scale * total"
    assert not found.is_class


@pytest.mark.parametrize(
    ("source", "code"),
    [
        ("def f(): 'Only a docstring.'", ""),
        ("def f(): 'Docstring.'; return 1", "return 1"),
        ("def f(): return 'not a docstring'", "return 'not a docstring'"),
        ("def f():\n  r'''Raw\n  text.'''\n  return 1", "return 1"),
        ("def f():\n  f'{1}'\n  return 1", "f'{1}'\nreturn 1"),
        ("def f():\n  'Grüße é'; return 'ß'", "return 'ß'"),
    ],
    ids=["only", "semicolon", "one line", "raw", "f-string", "non-ASCII"],
)
def test_docstring_is_removed_from_the_code(source, code):
    assert definition(source, "f").code == code


def test_docstrings_of_nested_definitions_are_removed_too():
    found = definition(
        '''
        def outer():
            """Outer words."""
            def inner():
                """Inner words."""
                return 1
            return inner
        ''',
        "outer",
    )

    assert found.code.split() == "def inner(): return 1 return inner".split()


def test_nested_async_decorated_and_guarded_definitions_are_found():
    module = parse(
        """
        try:
            import fast
        except ImportError:
            def fallback(): pass
        if True:
            class Outer:
                class Inner(Base, metaclass=Meta):
                    @property
                    @decorator("text")
                    def value(self): return 1
                async def fetch(self, url): return await get(url)
        match 1:
            case 1:
                def matched(): pass
        """
    )

    assert [item.name for item in module.definitions] == [
        "package.module.fallback",
        "package.module.Outer",
        "package.module.Outer.Inner",
        "package.module.Outer.Inner.value",
        "package.module.Outer.fetch",
        "package.module.matched",
    ]
    assert [item.is_class for item in module.definitions] == [
        False,
        True,
        True,
        False,
        False,
        False,
    ]


def test_decorators_are_not_part_of_the_code():
    found = definition("@cached\ndef f(): return 1", "f")

    assert found.code == "return 1"


def test_comment_block_is_paired_with_the_code_below_it():
    module = parse(
        """
        # Sort the rows
        # by their length.
        rows = sorted(rows, key=len)
        use(rows)

        other()
        # A comment at the end has no code.
        """
    )

    assert module.comments == (
        (
            "Sort the rows by their length.",
            "rows = sorted(rows, key=len)\nuse(rows)",
        ),
    )


def test_comment_inside_a_docstring_is_not_a_comment():
    module = parse(
        'def f():\n    """Text.\n\n    # not code\n    x = 1\n    """'
    )

    assert module.comments == ()


def test_encoding_cookie_is_obeyed():
    source = "# -*- coding: latin-1 -*-\ndef f():\n    'Größe.'\n"

    module = parse_module(source.encode("latin-1"), "m")

    assert module.definitions[0].docstring == "Größe."


def test_byte_order_mark_is_accepted():
    source = codecs.BOM_UTF8 + b"def f():\n    'Text.'\n    return 1\n"

    assert parse_module(source, "m").definitions[0].code == "return 1"


def test_bytes_that_do_not_decode_are_replaced():
    module = parse_module(b"def f():\n    'Caf\xe9 text.'\n    return 1\n", "m")

    assert (
        module.definitions[0].docstring == "Caf\N{REPLACEMENT CHARACTER} text."
    )


def test_lone_surrogate_of_a_docstring_can_be_written_as_utf8():
    module = parse_module(b"def f():\n    '\\ud800 text'\n", "m")

    assert module.definitions[0].docstring == "? text"


@pytest.mark.parametrize("newline", ["\r\n", "\r"], ids=["CRLF", "CR"])
def test_other_line_ends_give_the_same_code(newline):
    source = 'def f():\n    """One.\n\n    Two."""\n    a = 1\n    return a\n'

    module = parse_module(source.replace("\n", newline).encode(), "m")

    assert module.definitions[0].code == "a = 1\nreturn a"


def test_form_feed_does_not_shift_the_lines():
    module = parse_module(
        b"x = 1\n\x0c\ndef f():\n    'Doc.'\n    return 2\n", "m"
    )

    assert module.definitions[0].code == "return 2"


@pytest.mark.parametrize(
    "source",
    [
        b"print 'Python 2'",
        b"x = 1\0",
        b"# coding: no-such-coding\n",
        b"x = " + b"(" * 5000 + b")" * 5000,
    ],
    ids=["syntax", "NUL", "coding", "nesting"],
)
def test_invalid_source_is_a_data_error_that_names_the_module(source):
    # The message says which file to leave out.
    with pytest.raises(DataError, match="module='bad.module'"):
        parse_module(source, "bad.module")


def test_invalid_escapes_of_a_source_do_not_warn():
    module = parse_module(b"def f():\n    '\\d digits'\n", "m")

    assert module.definitions[0].docstring == "\\d digits"
