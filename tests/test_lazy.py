"""The top-level package stays light and fails clearly."""

import importlib.util
import types

import pytest

from tf_samtone import _lazy
from tf_samtone.errors import MissingDependencyError


def test_a_missing_tensorflow_is_named_with_the_command_to_run(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)

    with pytest.raises(MissingDependencyError, match="pip install .*2.20"):
        _lazy.require_tensorflow()


def test_a_subpackage_is_imported_when_it_is_first_used(monkeypatch):
    imported = []
    monkeypatch.setattr(
        _lazy.importlib,
        "import_module",
        lambda name: imported.append(name) or types.ModuleType(name),
    )
    get_attribute, _ = _lazy.lazy_subpackages("package", ["models"])
    assert imported == []

    get_attribute("models")

    assert imported == ["package.models"]


def test_an_installed_package_searches_no_folder_beside_it(tmp_path):
    package = tmp_path / "site-packages" / "tf_samtone" / "__init__.py"

    assert _lazy.source_checkout_path(str(package)) == []


def test_a_checkout_finds_trainers_and_export_beside_the_package(tmp_path):
    for folder in ("trainers", "export", "tf_samtone"):
        (tmp_path / folder).mkdir()
    (tmp_path / "setup.cfg").touch()

    paths = _lazy.source_checkout_path(
        str(tmp_path / "tf_samtone" / "__init__.py")
    )

    assert paths == [str(tmp_path.resolve())]


def test_a_member_is_imported_from_its_module_when_it_is_first_used(
    monkeypatch,
):
    module = types.SimpleNamespace(read=len)
    monkeypatch.setattr(
        _lazy.importlib, "import_module", {"package.reader": module}.get
    )
    get_attribute, list_names = _lazy.lazy_members(
        "package", {"read": "reader"}
    )

    assert get_attribute("read") is len
    assert list_names() == ["read"]


def test_an_unknown_member_is_an_attribute_error():
    get_attribute, _ = _lazy.lazy_members("package", {"read": "reader"})
    with pytest.raises(AttributeError, match="no attribute 'write'"):
        get_attribute("write")
