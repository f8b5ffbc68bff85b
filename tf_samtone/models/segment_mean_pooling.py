"""Mean of the hidden states of every example of packed rows."""

import keras
import tensorflow as tf


@keras.saving.register_keras_serializable(package="tf_samtone")
class SegmentMeanPooling(keras.layers.Layer):
    """Averages over the tokens of each segment, in float32.

        y_s = sum_{t in segment s} x_t / max(length_s, 1)

    The packed form of `MaskedMeanPooling`.

    Args:
        **kwargs: see `keras.layers.Layer`.

    Call arguments:
        inputs: float `[rows, row_length, hidden_dim]`.
        segment_ids: int32 `[rows, row_length]`, 0 at padding, else the number
            of the example plus 1.
        lengths: int32 `[examples]`, tokens of each.

    Returns:
        float32 `[examples, hidden_dim]`.
    """

    def __init__(self, **kwargs):
        kwargs.setdefault("dtype", "float32")
        super().__init__(**kwargs)

    def call(self, inputs, segment_ids, lengths):
        lengths = tf.reshape(lengths, [-1])
        examples = lengths.shape[0] or tf.shape(lengths)[0]
        hidden = tf.reshape(tf.cast(inputs, tf.float32), [-1, inputs.shape[-1]])
        # Negative numbers are left out: whatever stands under the padding
        # (even a NaN) must not reach a sum.
        sums = tf.math.unsorted_segment_sum(
            hidden, tf.reshape(segment_ids, [-1]) - 1, examples
        )
        divisor = tf.maximum(tf.cast(lengths, tf.float32), 1.0)
        return sums / divisor[:, None]
