"""What a folder holds, in words and as JSON."""

import textwrap
from dataclasses import asdict, dataclass, field
from typing import Any

_NAME_WIDTH = 17
_LINE_WIDTH = 80


@dataclass(frozen=True, kw_only=True)
class FolderReport:
    """What `inspect_folder` found, without loading weights.

    `str(report)` is text for people.

    Attributes:
        directory: str. The folder.
        kind: str. Key of `tf_samtone.checkpoints.FOLDER_KINDS`, such as
            `"sentence_transformers"`.
        description: str. The kind in words.
        loads_with: str or `None`. The call that loads such a folder.
        facts: dict of JSON values: `architecture`, `parameters`, `encoder`
            (sizes), `published_sizes` (names for `find_model_size`),
            `projection`, `pooling`, `normalize`, `query_length`,
            `document_length`, `query_prefix`, `document_prefix`, `tokenizer`
            (file, pieces, sha256), `weights` (files, bytes, dtypes, sha256)
            and `fingerprint`, as far as the folder says; what a manifest says
            about other kinds.
        problems: tuple of str. Why loading it would fail, each with what was
            expected, what was found and what to do.
    """

    directory: str
    kind: str
    description: str
    loads_with: str | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    problems: tuple[str, ...] = ()

    @property
    def can_load(self) -> bool:
        """Whether the call is known and nothing speaks against it."""
        return self.loads_with is not None and not self.problems

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON values, `can_load` included."""
        return {
            **asdict(self),
            "problems": list(self.problems),
            "can_load": self.can_load,
        }

    def __str__(self) -> str:
        lines = [
            self.directory,
            _line("kind", f"{self.kind}: {self.description}"),
            *[_line(name, _text(value)) for name, value in self.facts.items()],
        ]
        if self.loads_with:
            lines.append(_line("load with", self.loads_with))
        lines += [_line("problem", problem) for problem in self.problems]
        if not self.problems:
            lines.append(_line("problems", "none"))
        return "\n".join(lines)


def _line(name: str, text: str) -> str:
    label = name.replace("_", " ")
    # A name out of a foreign file may be anything.
    label = label if label.isprintable() else repr(label)
    return textwrap.fill(
        f"{label:<{_NAME_WIDTH}}{text}",
        _LINE_WIDTH,
        initial_indent="  ",
        subsequent_indent=" " * (_NAME_WIDTH + 2),
        break_long_words=False,
        break_on_hyphens=False,
    )


def _text(value: Any) -> str:
    """Return a fact on one line, whatever a foreign file put into it."""
    if isinstance(value, dict):
        parts = [f"{_part(k)}={_part(item)}" for k, item in value.items()]
        return " ".join(parts)
    return _part(value)


def _part(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_part, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    # A quoted text shows its spaces, and cannot add lines of its own.
    is_plain = isinstance(value, str) and value.isprintable() and value
    if is_plain and " " not in value:
        return value
    return repr(value)
