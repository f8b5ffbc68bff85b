"""T5 dual encoders with same-tower negatives on TensorFlow and Keras.

The subpackages are imported when they are first used: `import tf_samtone`
alone loads neither TensorFlow nor any optional package.
"""

from typing import TYPE_CHECKING

from tf_samtone._lazy import (
    lazy_subpackages,
    require_tensorflow,
    source_checkout_path,
)
from tf_samtone._version import __version__

if TYPE_CHECKING:
    from tf_samtone import (
        analysis,
        checkpoints,
        data,
        distribution,
        errors,
        evaluation,
        export,
        losses,
        models,
        optimizers,
        retrieval,
        text,
        trainers,
    )

__all__ = [
    "__version__",
    "analysis",
    "checkpoints",
    "data",
    "distribution",
    "errors",
    "evaluation",
    "export",
    "losses",
    "models",
    "optimizers",
    "retrieval",
    "text",
    "trainers",
]

require_tensorflow()
__path__ += source_checkout_path(__file__)
__getattr__, __dir__ = lazy_subpackages(__name__, __all__[1:])
