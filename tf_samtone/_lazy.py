"""What the top-level package needs in order to stay light."""

import importlib
import importlib.util
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from tf_samtone.errors import MissingDependencyError


def lazy_subpackages(
    package: str, names: Sequence[str]
) -> tuple[Callable[[str], ModuleType], Callable[[], list[str]]]:
    """Makes `__getattr__` and `__dir__` that import subpackages when used.

    Args:
        package: str. Name of the package that owns the subpackages.
        names: sequence of str. The subpackages.

    Returns:
        The two functions that PEP 562 asks a module for.
    """

    def get_attribute(name: str) -> ModuleType:
        if name in names:
            return importlib.import_module(f"{package}.{name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    def list_names() -> list[str]:
        return sorted([*names, "__version__"])

    return get_attribute, list_names


class _LazyPackage(ModuleType):
    """A package in which no submodule hides the member of the same name.

    The import of a submodule sets it as an attribute of its package, where it
    would be found before `__getattr__` is asked for the member.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, ModuleType) and name in self.__all__:
            return
        super().__setattr__(name, value)


def lazy_members(
    package: str, modules: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Makes `__getattr__` and `__dir__` that import members when used.

    Args:
        package: str. Name of the package that exports the members.
        modules: mapping from each member to the module below the package
            that defines it.

    Returns:
        The two functions that PEP 562 asks a module for.
    """
    if package in sys.modules:
        sys.modules[package].__class__ = _LazyPackage

    def get_attribute(name: str) -> Any:
        if name not in modules:
            raise AttributeError(
                f"module {package!r} has no attribute {name!r}"
            )
        module = importlib.import_module(f"{package}.{modules[name]}")
        return getattr(module, name)

    return get_attribute, lambda: sorted(modules)


def require_tensorflow() -> None:
    """Checks that some build of TensorFlow is there, without importing it.

    Raises:
        MissingDependencyError: if no module `tensorflow` can be found.
    """
    # Three distributions bring this module (tensorflow, tensorflow-cpu,
    # tensorflow-tpu), so the installer's own check is not the last word.
    if importlib.util.find_spec("tensorflow") is None:
        raise MissingDependencyError(
            "Expected a module `tensorflow`, version 2.20. Received: none is "
            'installed. Run `pip install "tensorflow~=2.20.0"`.'
        )


def source_checkout_path(package_file: str) -> list[str]:
    """Finds the folder that holds `trainers/` and `export/` in a checkout.

    Installation maps the two folders into the package. In a checkout that
    is used without installing it, they are searched for beside the package.

    Args:
        package_file: str. `__file__` of the top-level package.

    Returns:
        A list with the checkout's root, empty for an installed package.
    """
    root = Path(package_file).resolve().parent.parent
    is_checkout = all(
        (root / name).exists() for name in ("setup.cfg", "trainers", "export")
    )
    return [str(root)] if is_checkout else []
