"""What every export refuses: models that could only be useless."""

import tensorflow as tf

from tf_samtone.errors import InvalidInputError
from tf_samtone.models.dual_encoder import DualEncoder


def check_finite(model):
    """Raises unless a model is a built dual encoder of finite weights.

    Args:
        model: `DualEncoder`.

    Raises:
        InvalidInputError: if it is something else, has no weights, or a
            weight is NaN or infinite; the first one is named.
    """
    if not isinstance(model, DualEncoder):
        raise InvalidInputError(
            "Expected `model` to be a tf_samtone.models.DualEncoder. "
            f"Received: {type(model).__name__}. Make one with "
            "DualEncoder.from_preset."
        )
    if not model.weights:
        raise InvalidInputError(
            "Expected a built model. Received: a DualEncoder without "
            "weights. Encode one text or call fit before exporting."
        )
    broken = [
        variable.path
        for variable in model.weights
        if not tf.reduce_all(
            tf.math.is_finite(tf.cast(variable.value, tf.float32))
        )
    ]
    if broken:
        raise InvalidInputError(
            "Expected every weight to be finite. Received: NaN or infinity "
            f"in {len(broken)} of {len(model.weights)} weights, the first "
            f"being {broken[0]}. Go back to an earlier checkpoint."
        )
