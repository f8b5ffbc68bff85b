"""Command line: what a folder is, without loading it."""

import json
import sys
from collections.abc import Sequence

from absl import flags

from tf_samtone._command_line import run_command

USAGE = """
Prints what a folder is, its architecture, sizes, tokenizer, pooling, types and
fingerprint, and what would keep it from being loaded. Nothing is loaded. The
exit code is 0 if there is no problem, else 1.

Example:
  samtone-inspect runs/medquad/model
"""


def define_flags(values: flags.FlagValues) -> None:
    """Defines the flags of this command line."""
    flags.DEFINE_string(
        "directory",
        None,
        "The folder; also as an argument without a name. Required.",
        flag_values=values,
    )
    flags.DEFINE_bool(
        "json", False, "Print one JSON object.", flag_values=values
    )


def command(values: flags.FlagValues) -> int:
    """Prints the report."""
    from tf_samtone.checkpoints import inspect_folder

    report = inspect_folder(values.directory)
    if values.json:
        print(json.dumps(report.to_dict(), indent=2))
    else:
        print(report)
    return 1 if report.problems else 0


def main(argv: Sequence[str] | None = None) -> int:
    """Runs `samtone-inspect` and returns its exit code."""
    return run_command(
        USAGE, define_flags, command, argv, positional=("directory",)
    )


if __name__ == "__main__":
    sys.exit(main())
