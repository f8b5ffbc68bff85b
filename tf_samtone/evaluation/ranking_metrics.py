"""Narrow loader of tensorflow-ranking's Keras metrics.

`import tensorflow_ranking` 0.5.3 fails since TensorFlow 2.16, because its
top-level module needs `tf.estimator`. Its module of Keras metrics works.
"""

import contextlib
import importlib
import importlib.util
import sys
import types
from collections.abc import Iterator

from tf_samtone.errors import MissingDependencyError

__all__ = ["load_ranking_metrics"]

_METRICS = "tensorflow_ranking.python.keras.metrics"
_PARENTS = (
    "tensorflow_ranking",
    "tensorflow_ranking.python",
    "tensorflow_ranking.python.keras",
)


def load_ranking_metrics() -> types.ModuleType:
    """Import `tensorflow_ranking.python.keras.metrics` without its parents.

    While the module is imported, bare packages stand in for its parents.
    They are removed afterwards, so that `import tensorflow_ranking` in the
    same process says what is wrong with it, as it would without this call.

    Returns:
        The module, with `MRRMetric`, `NDCGMetric`, `PrecisionMetric`, ...

    Raises:
        MissingDependencyError: if the package is missing or its metrics
            cannot be imported.
    """
    if _METRICS in sys.modules:
        return sys.modules[_METRICS]
    specification = importlib.util.find_spec(_PARENTS[0])
    if specification is None or not specification.submodule_search_locations:
        raise MissingDependencyError(
            "Expected tensorflow-ranking to be installed. Received: no "
            "module tensorflow_ranking. Run `pip install "
            "tensorflow-ranking==0.5.3`."
        )
    root = next(iter(specification.submodule_search_locations))
    with _bare_parents(root):
        try:
            return importlib.import_module(_METRICS)
        except ImportError as error:
            raise MissingDependencyError(
                f"Expected {_METRICS} to be importable. Received: {error}. "
                "Run `pip install tensorflow-ranking==0.5.3`."
            ) from error


@contextlib.contextmanager
def _bare_parents(root: str) -> Iterator[None]:
    """Register packages without their `__init__`, and remove them again."""
    added = []
    for name in _PARENTS:
        if name not in sys.modules:
            package = types.ModuleType(name)
            package.__path__ = ["/".join([root, *name.split(".")[1:]])]
            sys.modules[name] = package
            added.append(name)
    try:
        yield
    finally:
        for name in added:
            del sys.modules[name]
