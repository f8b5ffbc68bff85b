"""Logarithm of a mean, as a Keras metric."""

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="tf_samtone")
class LogMean(keras.metrics.Mean):
    """The logarithm of the weighted mean of all values seen.

    Not the mean of logarithms: the result does not depend on how the values
    were cut into batches or spread over replicas.

    Args:
        name: str. Defaults to `"log_mean"`.
        dtype: see `keras.metrics.Mean`.
    """

    def __init__(self, name="log_mean", dtype=None):
        super().__init__(name=name, dtype=dtype)

    def result(self):
        return ops.log(super().result())
