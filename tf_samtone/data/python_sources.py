"""Finding and parsing the sources of installed Python packages."""

import hashlib
import importlib.util
import logging
import os
import pathlib
import re
import sysconfig
from collections.abc import Iterator, Mapping, Sequence

from tf_samtone.data.python_module import PythonModule, parse_module
from tf_samtone.errors import DataError, InvalidInputError

__all__ = [
    "DEFAULT_PACKAGES",
    "package_roots",
    "read_python_modules",
    "split_of_module",
]

_LOGGER = logging.getLogger("tf_samtone")

DEFAULT_PACKAGES = ("stdlib", "numpy", "keras", "tensorflow")

_SKIPPED_FOLDERS = frozenset(
    {
        "__pycache__",
        "dist-packages",
        "idle_test",
        "site-packages",
        "test",
        "tests",
    }
)
_SKIPPED_FILES = re.compile(r"(test_.*|.*_test|conftest)\.py")
# The rest is for training.
_SPLIT_PER_MILLE = (("test", 80), ("dev", 40))


def read_python_modules(
    packages: Sequence[str] = DEFAULT_PACKAGES,
    *,
    roots: Mapping[str, str | os.PathLike[str]] | None = None,
) -> list[PythonModule]:
    """Parse every source file of the packages, in a stable order.

    Test folders and test files are left out. Files that do not parse are
    counted, logged and left out. Nothing is imported or executed.

    Args:
        packages: top-level names; `"stdlib"` is the standard library of this
            Python. Defaults to `DEFAULT_PACKAGES`. Ignored if `roots` is
            given.
        roots: mapping from a package name to the folder of its sources.
            Defaults to `None`, which looks the packages up.

    Returns:
        list of `PythonModule`, in the order of the packages and then of the
        paths.

    Raises:
        InvalidInputError: if a package is not installed, or a root is not a
            folder.
    """
    if roots is None:
        roots = package_roots(packages)
    folders = {name: _checked_root(name, root) for name, root in roots.items()}
    modules: list[PythonModule] = []
    left_out: list[str] = []
    for package, folder in folders.items():
        prefix = () if package == "stdlib" else (package,)
        for path in _source_files(folder):
            name = _module_name(path.relative_to(folder), prefix)
            try:
                modules.append(parse_module(path.read_bytes(), name))
            except (DataError, OSError) as error:
                left_out.append(name)
                _LOGGER.debug("Left out %s: %s", path, error)
    _LOGGER.info(
        "parsed %d files of %s; %d that are not valid Python were left out%s",
        len(modules),
        ", ".join(folders),
        len(left_out),
        f", e.g. {left_out[0]}" if left_out else "",
    )
    return modules


def package_roots(packages: Sequence[str]) -> dict[str, pathlib.Path]:
    """Locate the sources of installed packages without importing them.

    Args:
        packages: top-level names; `"stdlib"` is the standard library.

    Returns:
        dict from name to folder, in the order given.

    Raises:
        InvalidInputError: if a package is not installed as a folder.
    """
    found: dict[str, pathlib.Path] = {}
    for package in packages:
        if package == "stdlib":
            found[package] = pathlib.Path(sysconfig.get_paths()["stdlib"])
            continue
        # A dotted name would make `find_spec` import the parent.
        spec = None
        if package.isidentifier():
            spec = importlib.util.find_spec(package)
        locations = list(spec.submodule_search_locations or []) if spec else []
        if not locations:
            raise InvalidInputError(
                "Expected an installed top-level package with a source "
                f"folder. Received: package={package!r}. Install it or leave "
                "it out."
            )
        found[package] = pathlib.Path(locations[0])
    return found


def split_of_module(name: str) -> str:
    """Return the split of a file, a pure function of its module name.

    Args:
        name: str. Dotted module name.

    Returns:
        `"test"` for 8 % of the names, `"dev"` for 4 %, else `"train"`.
    """
    digest = hashlib.blake2b(name.encode("utf-8"), digest_size=8).digest()
    position = int.from_bytes(digest, "big") % 1000
    for split, share in _SPLIT_PER_MILLE:
        if position < share:
            return split
        position -= share
    return "train"


def _checked_root(package: str, root: str | os.PathLike[str]) -> pathlib.Path:
    folder = pathlib.Path(root)
    if not folder.is_dir():
        raise InvalidInputError(
            "Expected the folder of a package's sources. Received: "
            f"package={package!r}, root={str(folder)!r}, which is not a "
            "folder. Pass the folder that holds its modules."
        )
    return folder


def _source_files(folder: pathlib.Path) -> Iterator[pathlib.Path]:
    for parent, folders, files in os.walk(folder):
        folders[:] = sorted(set(folders) - _SKIPPED_FOLDERS)
        for file in sorted(files):
            if file.endswith(".py") and not _SKIPPED_FILES.fullmatch(file):
                yield pathlib.Path(parent, file)


def _module_name(path: pathlib.Path, prefix: tuple[str, ...]) -> str:
    parts = (*prefix, *path.with_suffix("").parts)
    if len(parts) > 1 and parts[-1] == "__init__":
        parts = parts[:-1]
    return ".".join(parts)
