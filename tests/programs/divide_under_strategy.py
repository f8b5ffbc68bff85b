"""Divides batches among logical CPU devices and writes what each one got.

    python divide_under_strategy.py REPLICAS OUTPUT.npz [fit]

With `fit` it also writes what Keras makes of the batches: the steps that it
counts and the weights, for full, short and endless datasets.
"""

import sys
import warnings

import keras
import numpy as np
import tensorflow as tf
from strategy_iterators import without_device_autotune

from tf_samtone.distribution import distribute_dataset, gather_rows

ROWS = 8


class Mean(keras.Model):
    """Learns the mean of `x` over the valid rows of all replicas."""

    def __init__(self) -> None:
        super().__init__()
        self.mean = self.add_weight(shape=(), initializer="zeros")
        self.built = True

    def rows(self, data):
        """Return the rows of all replicas, and whether they count."""
        is_valid = data.get("is_valid")
        (rows, is_valid), _ = gather_rows([data["x"][:, 0], is_valid])
        if is_valid is None:
            return rows, tf.ones_like(rows)
        return rows, tf.cast(is_valid, tf.float32)

    def train_step(self, data):
        rows, is_valid = self.rows(data)
        difference = tf.reduce_sum((self.mean - rows) * is_valid)
        gradient = difference / tf.reduce_sum(is_valid)
        # Every replica has the gradient of all, and Keras adds them up.
        gradient /= tf.distribute.get_replica_context().num_replicas_in_sync
        self.optimizer.apply([gradient], [self.mean])
        self._loss_tracker.update_state(self.mean)
        return self.get_metrics_result()

    def test_step(self, data):
        rows, is_valid = self.rows(data)
        self._loss_tracker.update_state(rows, sample_weight=is_valid)
        return self.get_metrics_result()


class Steps(keras.callbacks.Callback):
    """Notes the steps of every epoch, and how many Keras expected."""

    def __init__(self) -> None:
        super().__init__()
        self.seen, self.expected = [], []

    def on_epoch_begin(self, epoch, logs=None):
        self.seen.append(0)
        self.expected.append(self.params["steps"] or -1)

    def on_train_batch_end(self, batch, logs=None):
        self.seen[-1] += 1


def rows_dataset(batches: int, short: int, static: bool) -> tf.data.Dataset:
    """Make batches of eight rows, and a last one of `short` rows."""
    rows = batches * ROWS + short
    x = np.arange(rows * 3, dtype=np.float32).reshape(rows, 3) / 10.0
    features = {"x": x, "flag": np.arange(rows) % 2 == 0}
    dataset = tf.data.Dataset.from_tensor_slices(features)
    return dataset.batch(ROWS, drop_remainder=static)


def parts(distributed, strategy) -> np.ndarray:
    """Return the rows of the last batch, `[replicas, rows, 3]`."""
    last = list(distributed)[-1]["x"]
    local = strategy.experimental_local_results(last)
    return np.stack([part.numpy() for part in local])


def fit(strategy, dataset, **options) -> dict:
    """Fit with Keras and return what came out."""
    with strategy.scope():
        model = Mean()
        model.compile(optimizer=keras.optimizers.SGD(0.1))
    steps = Steps()
    model.fit(
        distribute_dataset(dataset, strategy),
        shuffle=False,
        verbose=0,
        callbacks=[steps],
        validation_data=distribute_dataset(
            rows_dataset(1, 3, static=False), strategy
        ),
        **options,
    )
    return {
        "mean": model.mean.numpy(),
        "seen": steps.seen,
        "expected": steps.expected,
        "val_loss": model.history.history["val_loss"],
    }


def main() -> None:
    """Divide, fit, and save."""
    # Keras warns of datasets that end too early.
    warnings.simplefilter("error", UserWarning)
    without_device_autotune()
    replicas = int(sys.argv[1])
    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0],
        [tf.config.LogicalDeviceConfiguration()] * 4,
    )
    strategy = tf.distribute.get_strategy()
    if replicas > 1:
        devices = [f"CPU:{i}" for i in range(replicas)]
        strategy = tf.distribute.MirroredStrategy(devices)
    static = rows_dataset(2, 0, static=True)
    short = rows_dataset(1, 5, static=False)
    figures = {
        "static": parts(distribute_dataset(static, strategy), strategy),
        "short": parts(distribute_dataset(short, strategy), strategy),
    }
    fits = {
        "full": (static, {"epochs": 2}),
        "short": (short, {"epochs": 2}),
        "endless": (static.repeat(), {"epochs": 2, "steps_per_epoch": 3}),
    }
    for kind, (dataset, options) in fits.items() if sys.argv[3:] else ():
        result = fit(strategy, dataset, **options)
        figures |= {f"fit/{kind}/{key}": x for key, x in result.items()}
    np.savez(sys.argv[2], **figures)


if __name__ == "__main__":
    main()
