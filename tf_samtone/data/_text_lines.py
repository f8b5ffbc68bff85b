"""Reading text files line by line, with errors that name the line."""

import codecs
from collections.abc import Iterator
from pathlib import Path

from tf_samtone.errors import DataError


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yields `(line number from 1, line)` for the lines that hold something.

    A UTF-8 byte order mark and CRLF line ends are accepted; lines of nothing
    but white space are skipped.

    Args:
        path: a UTF-8 text file.

    Raises:
        DataError: if the file is absent, holds no line, or a line is not
            UTF-8.
    """
    if not path.is_file():
        raise DataError(
            f"Expected a file {path.name}. Received: {path}, which is absent. "
            "Check the folder, or download the collection again."
        )
    found = False
    with path.open("rb") as file:
        for number, raw in enumerate(file, start=1):
            if number == 1:
                raw = raw.removeprefix(codecs.BOM_UTF8)
            line = _decoded(path, number, raw).rstrip("\r\n")
            if line.strip():
                found = True
                yield number, line
    if not found:
        raise DataError(
            f"Expected at least one line in {path.name}. Received: {path}, "
            "which is empty. Download or write the file again."
        )


def _decoded(path: Path, number: int, raw: bytes) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(
            f"Expected UTF-8. Received: {path}:{number}: byte "
            f"0x{raw[error.start]:02x} at position {error.start} of the line. "
            "Convert the file to UTF-8, e.g. with iconv."
        ) from error
