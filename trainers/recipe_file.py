"""Reading recipes from TOML, strictly."""

import dataclasses
import difflib
import os
import tomllib
import types
import typing
from importlib import resources
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from tf_samtone.errors import InvalidInputError
from tf_samtone.trainers.recipe import Recipe

__all__ = ["read_recipe"]

_T = TypeVar("_T")


def read_recipe(path: str | os.PathLike[str]) -> Recipe:
    """Reads a recipe; every key must be known and of the right type.

    Args:
        path: TOML file, or the name of a recipe that is installed with this
            package, e.g. `"quickstart"`.

    Returns:
        `Recipe`.

    Raises:
        InvalidInputError: if the file is missing or not TOML, a key is unknown
            or missing, or a value has the wrong type or range.
    """
    text, origin = _read(path)
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidInputError(
            f"Expected a TOML file. Received: {origin}, {error}."
        ) from error
    return _build(Recipe, values, origin, prefix="")


def _read(path: str | os.PathLike[str]) -> tuple[str, str]:
    file = Path(path)
    if file.is_file():
        return file.read_text(encoding="utf-8"), str(path)
    installed = resources.files("tf_samtone.trainers") / "recipes"
    resource = installed / f"{path}.toml"
    if resource.is_file():
        return resource.read_text(encoding="utf-8"), f"{path}.toml"
    names = sorted(
        r.name.removesuffix(".toml")
        for r in installed.iterdir()
        if r.name.endswith(".toml")
    )
    raise InvalidInputError(
        f"Expected a recipe file or one of {names}. Received: {str(path)!r}, "
        "which does not exist."
    )


def _build(cls: type[_T], values: Any, origin: str, prefix: str) -> _T:
    if not isinstance(values, dict):
        _wrong_type(origin, prefix.rstrip("."), values, "a table")
    fields = {f.name: f for f in dataclasses.fields(cls)}  # type: ignore[arg-type]
    for key in values:
        if key not in fields:
            close = difflib.get_close_matches(key, fields, 1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            raise InvalidInputError(
                f"Expected the keys of {cls.__name__}: {sorted(fields)}. "
                f"Received: {prefix}{key} in {origin}.{hint}"
            )
    for name, spec in fields.items():
        required = (
            spec.default is dataclasses.MISSING
            and spec.default_factory is dataclasses.MISSING
        )
        if required and name not in values:
            raise InvalidInputError(
                f"Expected the key {prefix}{name}. Received: {origin} without "
                "it. Add it."
            )
    hints = typing.get_type_hints(cls)
    return cls(
        **{
            key: _convert(hints[key], value, origin, prefix + key)
            for key, value in values.items()
        }
    )


def _convert(kind: Any, value: Any, origin: str, name: str) -> Any:
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        return _build(kind, value, origin, f"{name}.")
    if isinstance(kind, types.GenericAlias):
        if not isinstance(value, list):
            _wrong_type(origin, name, value, "a list")
        item = typing.get_args(kind)[0]
        return tuple(_convert(item, v, origin, name) for v in value)
    if kind is float and type(value) is int:
        return float(value)
    if type(value) is not kind:
        _wrong_type(origin, name, value, f"of type {kind.__name__}")
    return value


def _wrong_type(
    origin: str, name: str, value: object, expected: str
) -> NoReturn:
    raise InvalidInputError(
        f"Expected {name} to be {expected}. Received: {name}={value!r} in "
        f"{origin}. Correct the recipe."
    )
