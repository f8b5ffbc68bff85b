"""The frame around every command line: flags, help, errors, exit codes."""

import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from absl import flags

from tf_samtone.errors import SamToNeError, TrainingInterrupted

# What a user can get wrong: a bad value, or a path that is not there.
_EXPECTED_ERRORS = (SamToNeError, OSError)
# EX_TEMPFAIL of sysexits.h: nothing is wrong, run it again.
_INTERRUPTED = 75


def run_command(
    usage: str,
    define_flags: Callable[[flags.FlagValues], None],
    command: Callable[[flags.FlagValues], int | None],
    argv: Sequence[str] | None = None,
    *,
    positional: Sequence[str] = (),
) -> int:
    """Parses flags, runs a command and turns errors into one line.

    The flags live in a set of their own, so importing a command line defines
    none, and two of them can be used in one process.

    Args:
        usage: str. Shown by `--help` above the flags, with an example.
        define_flags: function that defines the flags in the set it is given.
        command: function that does the work with the parsed flags. It may
            return an exit code in place of 0.
        argv: sequence of str, the program's name first. Defaults to `None`,
            which means `sys.argv`.
        positional: names of required flags whose values may stand alone, in
            this order. Defaults to none.

    Returns:
        The exit code: 0 when all went well, 1 when the command failed, 2
        when the flags were wrong, 75 when a signal stopped it and it can be
        resumed.
    """
    # Before TensorFlow is imported, or it greets the user on every call with
    # what the machine lacks.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    program, *arguments = sys.argv if argv is None else argv
    program = os.path.basename(program).removesuffix(".py")
    values = flags.FlagValues()
    define_flags(values)
    if {"--help", "-h", "-help"} & set(arguments):
        _write(sys.stdout, usage.strip() + "\n\nFlags:\n" + _describe(values))
        return 0
    try:
        _parse(values, [program, *arguments], positional)
    except flags.Error as error:
        message = str(error).rstrip(".")
        _write(sys.stderr, f"{program}: {message}. Try --help.")
        return 2
    try:
        return command(values) or 0
    except _EXPECTED_ERRORS as error:
        _write(sys.stderr, f"{program}: {' '.join(str(error).split())}")
        return _INTERRUPTED if isinstance(error, TrainingInterrupted) else 1


def resolved_flags(values: flags.FlagValues) -> dict[str, Any]:
    """Gives the value of every flag, for the record beside the results."""
    return dict(sorted(values.flag_values_dict().items()))


def _parse(
    values: flags.FlagValues, argv: list[str], positional: Sequence[str]
) -> None:
    rest = values(argv)[1:]
    for name in positional:
        if values[name].value is None and rest:
            values[name].parse(rest.pop(0))
        if values[name].value is None:
            raise flags.Error(f"Expected {name.upper()}. Received: none.")
    if rest:
        raise flags.Error(
            f"Expected {' and '.join([*map(str.upper, positional), 'flags'])} "
            f"only. Received: {rest[0]!r}. Write --name=value."
        )


def _describe(values: flags.FlagValues) -> str:
    """Lists the flags in the order of their names, one paragraph each."""
    lines = []
    for name in sorted(values):
        flag = values[name]
        text = " ".join(str(flag.help).split())
        if flag.default not in (None, []):
            text += f" Default: {flag.default}."
        lines.append(f"  --{name}\n      {text}")
    return "\n".join(lines)


def _write(stream: Any, text: str) -> None:
    stream.write(text + "\n")
    stream.flush()
