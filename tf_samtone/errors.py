"""The exceptions of this library.

    SamToNeError
    ├── InvalidInputError (ValueError)      a value, shape or dtype
    │   ├── DataError                       a line or file of a collection
    │   └── MismatchError                   two artefacts do not fit together
    ├── CorruptFileError (OSError)          a checksum or manifest is wrong
    ├── OutputExistsError (FileExistsError) an output is already there
    ├── MissingDependencyError (ImportError)
    └── TrainingError (RuntimeError)        a run that cannot go on
        ├── CollapseError                   all embeddings became one point
        ├── NonFiniteError                  inf or NaN in too many steps
        └── TrainingInterrupted             stopped by a signal, resumable

Every message says what was expected, what was received, and what to do.
"""

from collections.abc import Iterable

__all__ = [
    "CollapseError",
    "CorruptFileError",
    "DataError",
    "InvalidInputError",
    "MismatchError",
    "MissingDependencyError",
    "NonFiniteError",
    "OutputExistsError",
    "SamToNeError",
    "TrainingError",
    "TrainingInterrupted",
]


class SamToNeError(Exception):
    """Base class of every error that this library raises on purpose."""


class InvalidInputError(SamToNeError, ValueError):
    """An argument has a value, shape or dtype that cannot be used."""


class DataError(InvalidInputError):
    """A collection is malformed; the message names the file and line."""


class MismatchError(InvalidInputError):
    """Two artefacts do not belong together, e.g. an index and a model."""


class CorruptFileError(SamToNeError, OSError):
    """A stored file is missing, truncated or differs from its checksum."""


class OutputExistsError(SamToNeError, FileExistsError):
    """An output path already holds results that must not be lost."""


class MissingDependencyError(SamToNeError, ImportError):
    """An optional package is needed; the message names the extra."""


class TrainingError(SamToNeError, RuntimeError):
    """Training cannot continue; the message says what to change."""


class CollapseError(TrainingError):
    """The encoder maps every text to (almost) the same point."""


class NonFiniteError(TrainingError):
    """Steps in a row had inf or NaN in the loss or the gradients.

    Attributes:
        steps: the numbers of these steps, from 1.
    """

    def __init__(self, message: str, steps: Iterable[int] = ()) -> None:
        super().__init__(message)
        self.steps = tuple(steps)


class TrainingInterrupted(TrainingError):  # noqa: N818 (nothing went wrong)
    """A signal stopped training; a checkpoint of the last step was saved."""
