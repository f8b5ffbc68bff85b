"""Checks that the parts of a recipe share."""

from typing import NoReturn

from tf_samtone.errors import InvalidInputError

__all__ = ["at_least", "one_of", "refuse", "share"]


def refuse(name: str, value: object, expected: str) -> NoReturn:
    """Raises the error that names a key of the recipe and its value."""
    raise InvalidInputError(
        f"Expected {name} to be {expected}. Received: {name}={value!r}. "
        "Correct the recipe."
    )


def one_of(name: str, value: str, choices: tuple[str, ...]) -> None:
    """Refuses a value that is not among the choices."""
    if value not in choices:
        refuse(name, value, f"one of {choices}")


def at_least(name: str, value: int, least: int) -> None:
    """Refuses a number below `least`."""
    if value < least:
        refuse(name, value, f"at least {least}")


def share(name: str, value: float) -> None:
    """Refuses a number outside [0, 1)."""
    if not 0 <= value < 1:
        refuse(name, value, "in [0, 1)")
