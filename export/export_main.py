"""Command line: a trained model to the format of another library."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from absl import flags

from tf_samtone._command_line import run_command
from tf_samtone.errors import InvalidInputError
from tf_samtone.export._inputs import read_model
from tf_samtone.export.saved_model import export_saved_model

if TYPE_CHECKING:
    from tf_samtone.checkpoints import ModelCard

USAGE = """
Writes a model in the format of another library:

  saved_model            strings to embeddings, for TensorFlow and TF Serving
  sentence_transformers  SentenceTransformer(folder)
  hugging_face           T5EncoderModel.from_pretrained(folder); a folder
                         per tower if there are two
  keras_hub              a KerasHub-style preset

Example:
  samtone-export --model=runs/medquad/model --output=exported/1
  samtone-export --model=runs/medquad/model --output=medquad-sde \\
      --format=sentence_transformers --licence=apache-2.0
"""
_FORMATS = (
    "saved_model",
    "sentence_transformers",
    "hugging_face",
    "keras_hub",
)
# Formats with a README.md.
_WITH_CARD = ("sentence_transformers", "hugging_face")
_RUN_FILES = ("recipe.json", "results.json")


def define_flags(values: flags.FlagValues) -> None:
    """Defines the flags of this command line."""
    flags.DEFINE_string(
        "model",
        None,
        "Folder written by save_to_preset or samtone-train, or another that "
        "DualEncoder.from_preset reads. Required.",
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
    flags.DEFINE_enum(
        "format",
        _FORMATS[0],
        _FORMATS,
        "What to write.",
        flag_values=values,
    )
    flags.DEFINE_bool(
        "overwrite",
        False,
        "Replace an output folder that holds files.",
        flag_values=values,
    )
    _define_card(values)


def _define_card(values: flags.FlagValues) -> None:
    only = f"Only for {' and '.join(_WITH_CARD)}."
    flags.DEFINE_string(
        "run",
        None,
        "Output folder of samtone-train, whose recipe and results go into "
        "README.md; the folder above --model if left out and it has them. "
        f"{only}",
        flag_values=values,
    )
    flags.DEFINE_string(
        "licence",
        None,
        'Licence of the model as Hugging Face names it, e.g. "apache-2.0". '
        f"{only}",
        flag_values=values,
    )
    flags.DEFINE_string(
        "title", None, f"Heading of README.md. {only}", flag_values=values
    )


def command(values: flags.FlagValues) -> None:
    """Exports the model."""
    save = _exporter(values)
    model = read_model(values.model)
    save(model, values.output, overwrite=values.overwrite)
    print(f"Wrote {values.output} ({model.dim} dimensions).")


def _exporter(values: flags.FlagValues) -> Callable[..., None]:
    """Chooses the function that writes; reads the card, not the model."""
    if values.format not in _WITH_CARD:
        given = {n: values[n].value for n in ("run", "licence", "title")}
        unused = [f"--{name}={value}" for name, value in given.items() if value]
        if unused:
            raise InvalidInputError(
                f"Expected flags of --format={values.format}, which has no "
                f"README.md. Received: {' '.join(unused)}. Leave them out, or "
                f"choose one of {', '.join(_WITH_CARD)}."
            )
    if values.format == "saved_model":
        return export_saved_model
    # TensorFlow is imported with them, and --help should not wait for it.
    from tf_samtone import checkpoints

    if values.format == "keras_hub":
        return checkpoints.save_keras_hub_preset
    save = (
        checkpoints.save_sentence_transformers
        if values.format == "sentence_transformers"
        else checkpoints.save_hugging_face_t5
    )
    card = _card(values)
    return lambda *args, **options: save(*args, card=card, **options)


def _card(values: flags.FlagValues) -> "ModelCard":
    from tf_samtone.checkpoints import ModelCard

    given = {"licence": values.licence, "title": values.title}
    changes = {name: value for name, value in given.items() if value}
    run = values.run
    if not run:
        parent = Path(values.model).resolve().parent
        has_run = all((parent / name).is_file() for name in _RUN_FILES)
        run = parent if has_run else None
    return ModelCard.from_run(run, **changes) if run else ModelCard(**changes)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs `samtone-export` and returns its exit code."""
    return run_command(USAGE, define_flags, command, argv)


if __name__ == "__main__":
    sys.exit(main())
