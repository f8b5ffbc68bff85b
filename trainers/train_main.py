"""Command line: train by a recipe."""

import logging
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from absl import flags

from tf_samtone._command_line import run_command

USAGE = """
Trains and evaluates a dual encoder as a recipe says, and prints the table.
Writes the resolved recipe, checkpoints, the model, the runs and the results.

SIGTERM and Ctrl-C save a checkpoint after the step and end the program with
exit code 75; a second one ends it at once. A run that ended so, or was
killed, goes on with --resume.

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
    flags.DEFINE_bool(
        "resume",
        False,
        "Go on with the run in the output folder; start it if there is none.",
        flag_values=values,
    )
    flags.DEFINE_bool(
        "dry_run",
        False,
        "Print sizes, memory and the time of one step, and write nothing.",
        flag_values=values,
    )
    flags.DEFINE_string(
        "profile",
        None,
        "Folder for a profile of some training steps.",
        flag_values=values,
    )


def command(values: flags.FlagValues) -> None:
    """Trains, evaluates and prints one table per split."""
    from tf_samtone.trainers.recipe_file import read_recipe
    from tf_samtone.trainers.training import summary, train

    recipe = read_recipe(values.recipe)
    if values.dry_run:
        from tf_samtone.trainers.dry_run import dry_run

        print(dry_run(recipe))
        return
    with progress_shown():
        results = train(
            recipe,
            values.output,
            overwrite=values.overwrite,
            resume=values.resume,
            profile_dir=values.profile,
        )
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
