"""Every variable that a training step reads or changes, by name."""

from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np

from tf_samtone.errors import MismatchError, TrainingError

__all__ = [
    "METRICS",
    "WEIGHTS",
    "assign_variables",
    "check_finite",
    "check_variables",
    "read_variables",
    "training_variables",
]

# Groups of variables, the first part of their names. Weights survive the end
# of a stage; metrics have to wait until Keras has reset them.
WEIGHTS = ("model", "seeds")
OPTIMIZER = ("loss", "optimizer", "training_state")
METRICS = ("metrics",)
_SHOWN = 3

Variables = dict[str, keras.Variable]


def training_variables(
    model: Any, groups: Sequence[str] = (*WEIGHTS, *OPTIMIZER, *METRICS)
) -> Variables:
    """Returns the variables of a compiled model.

    Names do not depend on how many models the process made before, so a new
    process finds the same ones. Variables of one name are numbered.

    Args:
        model: `DualEncoder`. Its optimizer is built if it is not yet.
        groups: `"model"` (weights), `"seeds"` (state of random layers),
            `"loss"` (a learned temperature), `"optimizer"`,
            `"training_state"` (steps seen and skipped) and `"metrics"` (the
            running means of the epoch). Defaults to all.

    Returns:
        dict of `"group/name"` to Keras variable.
    """
    found: Variables = {}
    for group in groups:
        found.update(_GROUPS[group](model))
    return found


def read_variables(variables: Variables) -> dict[str, np.ndarray]:
    """Copies the values to the host; under a strategy those of the whole."""
    return {
        name: np.asarray(variable.numpy())
        for name, variable in variables.items()
    }


def check_finite(tensors: Mapping[str, np.ndarray]) -> None:
    """Refuses NaN and infinity in anything but running means.

    Raises:
        TrainingError: if a value is not finite.
    """
    bad = [
        name
        for name, array in tensors.items()
        if not name.startswith("metrics/") and not np.isfinite(array).all()
    ]
    if bad:
        raise TrainingError(
            "Expected finite weights and optimizer state. Received: NaN or "
            f"infinity in {_few(bad)}. No checkpoint was written; resume from "
            "the last one with a lower learning rate or a higher temperature."
        )


def check_variables(
    variables: Variables, tensors: Mapping[str, np.ndarray], origin: object
) -> None:
    """Refuses tensors that are not those of the variables.

    Args:
        variables: from `training_variables`.
        tensors: mapping from name to array; of the same groups.
        origin: shown in the message.

    Raises:
        MismatchError: if tensors are missing, surplus, or of another shape or
            dtype; the message names the first few.
    """
    missing = [name for name in variables if name not in tensors]
    surplus = [name for name in tensors if name not in variables]
    different = [
        f"{name} {_describe(tensors[name])} instead of {_describe(variable)}"
        for name, variable in variables.items()
        if name in tensors and _describe(tensors[name]) != _describe(variable)
    ]
    if not (missing or surplus or different):
        return
    parts = [
        f"{len(names)} {label}: {_few(names)}"
        for label, names in (
            ("missing", missing),
            ("surplus", surplus),
            ("of another shape or type", different),
        )
        if names
    ]
    raise MismatchError(
        "Expected a checkpoint of this architecture, loss and optimizer. "
        f"Received: {origin} with tensors {'; '.join(parts)}. Resume with the "
        "recipe that wrote it, or train into another folder."
    )


def assign_variables(
    variables: Variables, tensors: Mapping[str, np.ndarray]
) -> None:
    """Sets variables to the tensors of the same names."""
    for name, variable in variables.items():
        variable.assign(tensors[name])


def _model(model: Any) -> Variables:
    return _numbered("model", [(v.path, v) for v in model.weights])


def _seeds(model: Any) -> Variables:
    # Not among the weights, nor in files of weights; by number, since their
    # paths count all random layers of the process.
    weights = {id(v) for v in model.weights}
    states = [v for v in model.variables if id(v) not in weights]
    return {f"seeds/{i}": v for i, v in enumerate(states)}


def _loss(model: Any) -> Variables:
    variables = model.contrastive_loss.trainable_variables
    return _numbered("loss", [(v.name, v) for v in variables])


def _optimizer(model: Any) -> Variables:
    if not model.optimizer.built:
        model.optimizer.build(model.trainable_variables)
    # By number: the names hold those of layers, which Keras may have counted.
    return {
        f"optimizer/{i:04d}": v for i, v in enumerate(model.optimizer.variables)
    }


def _training_state(model: Any) -> Variables:
    variables = model.training_state.variables
    return {f"training_state/{name}": v for name, v in variables.items()}


def _metrics(model: Any) -> Variables:
    named = [
        (f"{metric.name}/{variable.name}", variable)
        for metric in model.metrics
        for variable in metric.variables
    ]
    return _numbered("metrics", named)


_GROUPS = {
    "model": _model,
    "seeds": _seeds,
    "loss": _loss,
    "optimizer": _optimizer,
    "training_state": _training_state,
    "metrics": _metrics,
}


def _numbered(
    group: str, named: Sequence[tuple[str, keras.Variable]]
) -> Variables:
    found: Variables = {}
    counts: dict[str, int] = {}
    for name, variable in named:
        # Two towers have layers of the same names.
        counts[name] = counts.get(name, 0) + 1
        suffix = f"#{counts[name]}" if counts[name] > 1 else ""
        found[f"{group}/{name}{suffix}"] = variable
    return found


def _describe(tensor: Any) -> str:
    dtype = keras.backend.standardize_dtype(tensor.dtype)
    return f"{dtype} {list(tensor.shape)}"


def _few(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_SHOWN])
    rest = len(names) - _SHOWN
    return shown if rest <= 0 else f"{shown} and {rest} more"
