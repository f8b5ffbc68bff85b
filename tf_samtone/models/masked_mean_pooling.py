"""Mean of the hidden states at real tokens."""

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="tf_samtone")
class MaskedMeanPooling(keras.layers.Layer):
    """Averages over the tokens that are not padding, in float32.

        y = sum_t mask_t * x_t / max(sum_t mask_t, 1)

    The end-of-text token counts, as in t5x_retrieval and sentence-transformers.

    Args:
        **kwargs: see `keras.layers.Layer`.

    Call arguments:
        inputs: float `[batch, seq, hidden_dim]`.
        padding_mask: int or bool `[batch, seq]`.

    Returns:
        float32 `[batch, hidden_dim]`; zeros for a row without tokens.
    """

    def __init__(self, **kwargs):
        kwargs.setdefault("dtype", "float32")
        super().__init__(**kwargs)

    def call(self, inputs, padding_mask):
        is_token = ops.cast(padding_mask, "bool")[:, :, None]
        # `where`, not a product: whatever stands under the padding (even a
        # NaN) must not reach the sum.
        hidden = ops.where(is_token, ops.cast(inputs, "float32"), 0.0)
        count = ops.sum(ops.cast(is_token, "float32"), axis=1)
        return ops.sum(hidden, axis=1) / ops.maximum(count, 1.0)
