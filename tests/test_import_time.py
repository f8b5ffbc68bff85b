"""`import tf_samtone` is light, and its parts know only those below them."""

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = {
    "tf_samtone": ROOT / "tf_samtone",
    "tf_samtone.trainers": ROOT / "trainers",
    "tf_samtone.export": ROOT / "export",
}
# Imported inside the function that needs them, never with the module.
OPTIONAL = {
    "apache_beam",
    "bm25s",
    "matplotlib",
    "mteb",
    "pytrec_eval",
    "scann",
    "sentence_transformers",
    "tensorflow_datasets",
    "tensorflow_hub",
    "tensorflow_ranking",
    "tensorflow_serving",
    "torch",
    "transformers",
}
# These work on plain NumPy arrays, without TensorFlow in the process.
NUMPY_ONLY = {"evaluation", "retrieval"}
# A subpackage may import those of a smaller rank, and nothing else.
RANKS = {
    "losses": 0,
    "optimizers": 0,
    "distribution": 0,
    "text": 0,
    "models": 1,
    "checkpoints": 2,
    "data": 3,
    "retrieval": 3,
    "evaluation": 4,
    "analysis": 5,
    "trainers": 6,
    "export": 6,
}
# Both reach up inside a function, so that no circle forms at import:
# `DualEncoder.from_preset` also reads foreign weights, and the quickstart is
# the one program that shows both roofs, training and export.
EXCEPTIONS = {
    ("tf_samtone.models.presets", "checkpoints"),
    ("tf_samtone.trainers.quickstart_main", "export"),
}


def _modules() -> dict[str, ast.Module]:
    """Parses every module of the library, keyed by its installed name."""
    parsed = {}
    for package, folder in FOLDERS.items():
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(folder).with_suffix("").parts
            name = ".".join((package, *parts)).removesuffix(".__init__")
            parsed[name] = ast.parse(path.read_text(encoding="utf-8"))
    return parsed


MODULES = _modules()


def _is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test).endswith(
        "TYPE_CHECKING"
    )


def _imports(node: ast.AST, *, inside_functions: bool) -> Iterator[str]:
    """Yields the dotted names that a piece of code imports when it runs."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            assert child.level == 0, "relative imports hide who knows whom"
            yield from (f"{child.module}.{a.name}" for a in child.names)
        elif _is_type_checking(child):
            continue
        elif inside_functions or not isinstance(
            child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
        ):
            yield from _imports(child, inside_functions=inside_functions)


def _subpackage(dotted_name: str) -> str | None:
    parts = dotted_name.split(".")
    known = parts[0] == "tf_samtone" and len(parts) > 1 and parts[1] in RANKS
    return parts[1] if known else None


def _import_report() -> dict:
    program = (
        "import json, sys, time\n"
        "start = time.perf_counter()\n"
        "import tf_samtone\n"
        "seconds = time.perf_counter() - start\n"
        "print(json.dumps({'seconds': seconds, 'modules': list(sys.modules)}))"
    )
    output = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return json.loads(output)


def test_importing_the_library_takes_under_half_a_second():
    assert min(_import_report()["seconds"] for _ in range(2)) < 0.5


def test_importing_the_library_loads_no_heavy_package():
    loaded = {name.split(".")[0] for name in _import_report()["modules"]}

    assert loaded & (OPTIONAL | {"keras", "keras_hub", "tensorflow"}) == set()


@pytest.mark.parametrize("name", MODULES)
def test_optional_packages_are_imported_inside_functions(name):
    imported = _imports(MODULES[name], inside_functions=False)

    assert {n.split(".")[0] for n in imported} & OPTIONAL == set()


@pytest.mark.parametrize(
    "name", [n for n in MODULES if _subpackage(n) in NUMPY_ONLY]
)
def test_numpy_only_modules_do_not_import_tensorflow(name):
    imported = _imports(MODULES[name], inside_functions=False)

    heavy = {"keras", "keras_hub", "tensorflow", "tensorflow_text"}
    assert {n.split(".")[0] for n in imported} & heavy == set()


@pytest.mark.parametrize("name", MODULES)
def test_a_subpackage_imports_only_those_below_it(name):
    owner = _subpackage(name)
    # The top-level modules serve every subpackage, so they know none.
    rank = RANKS[owner] if owner else -1

    imported = {
        _subpackage(n) for n in _imports(MODULES[name], inside_functions=True)
    } - {None, owner}
    above = {s for s in imported if RANKS[s] >= rank}
    assert {(name, s) for s in above} - EXCEPTIONS == set()


@pytest.mark.parametrize("name", MODULES)
def test_a_module_imported_at_the_top_is_always_below(name):
    owner = _subpackage(name)
    rank = RANKS[owner] if owner else -1

    imported = {
        _subpackage(n) for n in _imports(MODULES[name], inside_functions=False)
    } - {None, owner}
    assert {s for s in imported if RANKS[s] >= rank} == set()
