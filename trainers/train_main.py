"""Command line: train by a recipe."""

import logging
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from absl import flags

from tf_samtone._command_line import run_command

USAGE = """
Trains and evaluates a dual encoder as a recipe says, and prints the table.
Writes the resolved recipe, the model, the runs and the results.

Example:
  samtone-train --recipe=trainers/recipes/medquad.toml \\
      --output=runs/medquad
"""


def define_flags(values: flags.FlagValues) -> None:
    """Defines the flags of this command line."""
    flags.DEFINE_string(
        "recipe",
        None,
        "TOML file, or the name of an installed recipe. Required.",
        required=True,
        flag_values=values,
    )
    flags.DEFINE_string(
        "output",
        None,
        "Folder for model and results; runs/NAME of the recipe if left out.",
        flag_values=values,
    )
    flags.DEFINE_bool(
        "overwrite",
        False,
        "Replace results that are already in the output folder.",
        flag_values=values,
    )


def command(values: flags.FlagValues) -> None:
    """Trains, evaluates and prints one table per split."""
    from tf_samtone.trainers.recipe_file import read_recipe
    from tf_samtone.trainers.training import summary, train

    recipe = read_recipe(values.recipe)
    with progress_shown():
        results = train(recipe, values.output, overwrite=values.overwrite)
    print(summary(results))


@contextmanager
def progress_shown() -> Iterator[None]:
    """Sends the library's log to standard error meanwhile, with the time."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s", "%X"))
    logger = logging.getLogger("tf_samtone")
    level, propagate = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    # Some libraries set up the root logger when imported; once is enough.
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
        logger.propagate = propagate


def main(argv: Sequence[str] | None = None) -> int:
    """Runs `samtone-train` and returns its exit code."""
    return run_command(USAGE, define_flags, command, argv)


if __name__ == "__main__":
    sys.exit(main())
