"""Command line: a trained model to a SavedModel."""

import sys
from collections.abc import Sequence

from absl import flags

from tf_samtone._command_line import run_command
from tf_samtone.export._inputs import read_model
from tf_samtone.export.saved_model import export_saved_model

USAGE = """
Writes a SavedModel that turns strings into embeddings.

Example:
  samtone-export --model=runs/medquad/model --output=exported/1
"""


def define_flags(values: flags.FlagValues) -> None:
    """Defines the flags of this command line."""
    flags.DEFINE_string(
        "model",
        None,
        "Folder written by save_to_preset or samtone-train. Required.",
        required=True,
        flag_values=values,
    )
    flags.DEFINE_string(
        "output",
        None,
        "Folder to write. TF Serving wants an integer as its last part. "
        "Required.",
        required=True,
        flag_values=values,
    )
    flags.DEFINE_bool(
        "overwrite",
        False,
        "Replace an output folder that holds files.",
        flag_values=values,
    )


def command(values: flags.FlagValues) -> None:
    """Exports the model."""
    model = read_model(values.model)
    export_saved_model(model, values.output, overwrite=values.overwrite)
    print(f"Wrote {values.output} ({model.dim} dimensions).")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs `samtone-export` and returns its exit code."""
    return run_command(USAGE, define_flags, command, argv)


if __name__ == "__main__":
    sys.exit(main())
