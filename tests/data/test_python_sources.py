"""Finding the sources of packages."""

import logging
import sys

import pytest

from tf_samtone.data import read_python_modules
from tf_samtone.data.python_sources import package_roots, split_of_module
from tf_samtone.errors import InvalidInputError


@pytest.fixture
def root(tmp_path):
    files = {
        "__init__.py": "def top(): pass\n",
        "b.py": "def second(): pass\n",
        "a.py": "def first(): pass\n",
        "sub/__init__.py": "",
        "sub/c.py": "def third(): pass\n",
        "broken.py": "def (:\n",
        "tests/test_a.py": "def test(): pass\n",
        "sub/c_test.py": "def test(): pass\n",
        "__pycache__/a.py": "",
        "notes.txt": "def text(): pass\n",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_modules_come_in_a_stable_order_without_tests(root):
    modules = read_python_modules(roots={"pkg": root})

    names = [module.name for module in modules]
    assert names == ["pkg", "pkg.a", "pkg.b", "pkg.sub", "pkg.sub.c"]


def test_modules_of_the_standard_library_have_no_prefix(root):
    modules = read_python_modules(roots={"stdlib": root})

    assert modules[1].name == "a"
    assert modules[1].definitions[0].name == "a.first"


def test_files_that_do_not_parse_are_counted_and_logged(root, caplog):
    with caplog.at_level(logging.INFO, logger="tf_samtone"):
        read_python_modules(roots={"pkg": root})

    assert "parsed 5 files of pkg; 1 that are not valid" in caplog.text
    assert "pkg.broken" in caplog.text


def test_root_that_is_not_a_folder_is_an_error(tmp_path):
    with pytest.raises(InvalidInputError, match="package='pkg', root="):
        read_python_modules(roots={"pkg": tmp_path / "absent"})


@pytest.mark.parametrize(
    "package",
    ["no_such_package", "os", "keras.layers"],
    ids=["absent", "one file", "dotted"],
)
def test_package_without_a_source_folder_is_an_error(package):
    # "os" is one file, and a dotted name would have to import its parent.
    with pytest.raises(InvalidInputError, match=f"package='{package}'"):
        package_roots([package])


def test_packages_are_located_in_order():
    roots = package_roots(["numpy", "stdlib"])

    assert list(roots) == ["numpy", "stdlib"]
    assert (roots["numpy"] / "linalg").is_dir()
    assert (roots["stdlib"] / "shutil.py").is_file()


def test_locating_a_package_does_not_import_it(tmp_path, monkeypatch):
    package = tmp_path / "package_that_must_not_run"
    package.mkdir()
    (package / "__init__.py").write_text("raise SystemExit")
    monkeypatch.syspath_prepend(tmp_path)

    modules = read_python_modules([package.name])

    assert [module.name for module in modules] == [package.name]
    assert package.name not in sys.modules


@pytest.mark.parametrize(
    ("name", "split"),
    # blake2b-8 of the name, big endian, modulo 1000: 49, 80, 656.
    [("os", "test"), ("json.decoder", "dev"), ("shutil", "train")],
)
def test_split_of_a_module_never_changes(name, split):
    assert split_of_module(name) == split


def test_shares_of_the_splits():
    splits = [split_of_module(f"package.module_{i}") for i in range(20_000)]

    assert splits.count("test") / 20_000 == pytest.approx(0.08, abs=0.01)
    assert splits.count("dev") / 20_000 == pytest.approx(0.04, abs=0.01)
