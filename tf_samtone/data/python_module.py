"""Functions, classes and comments of one Python source file, by `ast` only.

Nothing of the file is imported or executed.
"""

import ast
import dataclasses
import io
import re
import textwrap
import tokenize
import warnings
from collections.abc import Iterator

from tf_samtone.errors import DataError

__all__ = ["PythonDefinition", "PythonModule", "parse_module"]

_Span = tuple[int, int, int, int]
_Block = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_Scope = _Block | ast.Module
_COMMENT_LINE = re.compile(r"\s*#+!?:?\s?(.*)")
_CODE_LINES_AFTER_COMMENT = 8


@dataclasses.dataclass(frozen=True)
class PythonDefinition:
    """One function or class.

    Attributes:
        name: str. Qualified name, e.g. `"shutil.rmtree"`.
        signature: str. Source of the parameters (of the bases for a class),
            without parentheses.
        docstring: str. Cleaned docstring, empty if there is none.
        code: str. Body without any docstring, its own or a nested one.
        is_class: bool.
    """

    name: str
    signature: str
    docstring: str
    code: str
    is_class: bool


@dataclasses.dataclass(frozen=True)
class PythonModule:
    """What was mined from one file.

    Attributes:
        name: str. Dotted module name, e.g. `"numpy.linalg._linalg"`.
        docstring: str. Cleaned docstring of the module.
        definitions: tuple of `PythonDefinition`, in source order.
        comments: tuple of (comment, code that follows it).
    """

    name: str
    docstring: str
    definitions: tuple[PythonDefinition, ...]
    comments: tuple[tuple[str, str], ...]


def parse_module(source: bytes, name: str) -> PythonModule:
    """Parse one source file.

    Args:
        source: bytes. The file; its coding cookie or BOM is obeyed and bytes
            that do not decode are replaced.
        name: str. Dotted module name.

    Returns:
        `PythonModule`.

    Raises:
        DataError: if the source is not valid Python or its coding is unknown.
    """
    try:
        text = _decode(source)
        with warnings.catch_warnings():
            # Invalid escapes in other people's sources are not our warnings.
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise DataError(
            f"Expected valid Python source. Received: module={name!r}, which "
            f"does not parse ({error}). Leave the file out."
        ) from error
    # `ast` counts columns in UTF-8 bytes and lines by \n, \r\n and \r.
    normalised = text.replace("\r\n", "\n").replace("\r", "\n")
    lines = [line.encode("utf-8") for line in normalised.split("\n")]
    for span in _docstring_spans(tree):
        _blank(lines, span)
    decoded = [line.decode("utf-8", "replace") for line in lines]
    return PythonModule(
        name=name,
        docstring=_docstring(tree),
        definitions=tuple(_definitions(tree, name, lines)),
        comments=tuple(_comments(decoded)),
    )


def _decode(source: bytes) -> str:
    encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
    return source.decode(encoding, errors="replace")


def _docstring(node: _Scope) -> str:
    text = ast.get_docstring(node) or ""
    # A lone surrogate (an escape in the source) cannot be written as UTF-8.
    return text.encode("utf-8", "replace").decode("utf-8")


def _docstring_node(node: _Scope) -> ast.Expr | None:
    body = node.body
    if (
        body
        and isinstance(body[0], ast.Expr)
        and isinstance(body[0].value, ast.Constant)
        and isinstance(body[0].value.value, str)
    ):
        return body[0]
    return None


def _docstring_spans(tree: ast.Module) -> Iterator[_Span]:
    for node in ast.walk(tree):
        if isinstance(node, _Scope):
            found = _docstring_node(node)
            if found is not None:
                yield _span(found)


def _span(node: ast.stmt) -> _Span:
    # The parser always sets the end; only made-up nodes lack it.
    last, end = node.end_lineno or node.lineno, node.end_col_offset or 0
    return node.lineno - 1, node.col_offset, last - 1, end


def _blank(lines: list[bytes], span: _Span) -> None:
    """Overwrite a span with spaces so that other positions stay valid."""
    first, start, last, end = span
    for row in range(first, last + 1):
        line = lines[row]
        left = start if row == first else 0
        right = end if row == last else len(line)
        lines[row] = line[:left] + b" " * (right - left) + line[right:]


def _definitions(
    tree: ast.Module, module_name: str, lines: list[bytes]
) -> Iterator[PythonDefinition]:
    # An explicit stack: deep nesting must not exhaust the interpreter's own.
    stack: list[tuple[ast.AST, str]] = [(tree, module_name)]
    while stack:
        node, scope = stack.pop()
        if isinstance(node, _Block):
            scope = f"{scope}.{node.name}"
            yield _definition(node, scope, lines)
        children = [
            child
            for child in ast.iter_child_nodes(node)
            if isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case)
        ]
        stack.extend((child, scope) for child in reversed(children))


def _definition(
    node: _Block, name: str, lines: list[bytes]
) -> PythonDefinition:
    if isinstance(node, ast.ClassDef):
        signature = ", ".join(ast.unparse(base) for base in node.bases)
    else:
        signature = ast.unparse(node.args)
    first, start, _, _ = _span(node.body[0])
    _, _, last, end = _span(node)
    rows = [lines[row] for row in range(first, last + 1)]
    rows[-1] = rows[-1][:end]
    rows[0] = b" " * start + rows[0][start:]
    code = b"\n".join(row.rstrip() for row in rows if row.strip())
    return PythonDefinition(
        name=name,
        signature=signature,
        docstring=_docstring(node),
        # `lstrip`: what follows a docstring on its own line, after a ";".
        code=textwrap.dedent(code.decode("utf-8", "replace")).lstrip("; "),
        is_class=isinstance(node, ast.ClassDef),
    )


def _comments(lines: list[str]) -> Iterator[tuple[str, str]]:
    """Yield each block of comment lines with the code below it."""
    block: list[str] = []
    for row, line in enumerate(lines):
        match = _COMMENT_LINE.fullmatch(line)
        if match:
            block.append(match.group(1).strip())
            continue
        if block and line.strip():
            code = []
            for follower in lines[row : row + _CODE_LINES_AFTER_COMMENT]:
                if not follower.strip() or _COMMENT_LINE.fullmatch(follower):
                    break
                code.append(follower.strip())
            yield " ".join(part for part in block if part), "\n".join(code)
        block = []
