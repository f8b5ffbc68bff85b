"""What each subpackage says it exports is what it holds."""

import importlib
import types

import pytest

import tf_samtone

SUBPACKAGES = [
    name for name in tf_samtone.__all__ if name not in ("__version__", "errors")
]


def test_top_level_names_resolve_to_modules_and_the_version():
    members = {name: getattr(tf_samtone, name) for name in tf_samtone.__all__}

    version = members.pop("__version__")
    assert version.count(".") == 2
    assert all(isinstance(m, types.ModuleType) for m in members.values())


def test_top_level_listing_shows_every_subpackage():
    assert set(tf_samtone.__all__) <= set(dir(tf_samtone))


def test_an_unknown_top_level_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'loses'"):
        _ = tf_samtone.loses


@pytest.mark.parametrize("name", SUBPACKAGES)
def test_every_exported_name_exists(name):
    module = importlib.import_module(f"tf_samtone.{name}")

    assert [n for n in module.__all__ if not hasattr(module, n)] == []


@pytest.mark.parametrize("name", SUBPACKAGES)
def test_exported_names_are_sorted_and_unique(name):
    module = importlib.import_module(f"tf_samtone.{name}")

    assert list(module.__all__) == sorted(set(module.__all__))


@pytest.mark.parametrize("name", SUBPACKAGES)
def test_every_public_member_is_exported(name):
    module = importlib.import_module(f"tf_samtone.{name}")

    members = {
        key
        for key in dir(module)
        if not key.startswith("_")
        and not isinstance(getattr(module, key), types.ModuleType)
    }
    assert members == set(module.__all__)
