"""Fits a tiny dual encoder on logical CPU devices and writes what came out.

    python fit_on_replicas.py REPLICAS OUTPUT.npz VARIANT...

The same data, weights and global batches for every number of replicas: with
ids, hard negatives that partly exist, clipping, and a last batch that is partly
padding. Ten steps each with two optimizers, and with a gradient cache.
"""

import pathlib
import sys

import keras
import numpy as np
import tensorflow as tf
from strategy_iterators import without_device_autotune

import tf_samtone as ts

ROWS, VALID_ROWS, BATCH, K = 40, 37, 8, 2
TINY = pathlib.Path(__file__).parents[1] / "data_files" / "tiny.spm"


def packed_dataset(model, groups):
    """Make packed batches of texts; pairs may change places in a batch."""
    return ts.data.training_dataset(
        [f"a cat {i} " * (i % 3) for i in range(ROWS)],
        [f"the dog {i} " * (1 + i % 4) for i in range(ROWS)],
        query_preprocessor=model.query_preprocessor,
        document_preprocessor=model.document_preprocessor,
        hard_negatives=[[f"a book {i}"] * (i % 3) for i in range(ROWS)],
        batch_size=BATCH,
        epochs=1,
        packing="rows",
        packing_groups=groups,
    )


def sgd():
    """Make SGD that clips at nearly every step."""
    return keras.optimizers.SGD(0.1, global_clipnorm=1.0)


def adafactor():
    """Make Adafactor that factors what it can, and clips."""
    return ts.optimizers.Adafactor(
        1e-2, global_clipnorm=1.0, min_factored_dim=0
    )


VARIANTS = {
    "sgd": (sgd, None),
    "adafactor": (adafactor, None),
    # One, two or four micro-batches per replica.
    "cached": (sgd, 2),
    "packed": (sgd, None),
    "packed and cached": (sgd, 2),
}


def features() -> dict:
    """Make one feature dict of all rows."""
    rng = np.random.default_rng(0)

    def tokens(*shape):
        return {
            "token_ids": rng.integers(3, 300, shape).astype(np.int32),
            "padding_mask": np.ones(shape, np.int32),
        }

    return {
        "queries": tokens(ROWS, 6),
        "documents": tokens(ROWS, 9),
        "hard_negatives": tokens(ROWS, K, 9),
        "hard_negative_mask": rng.random((ROWS, K)) > 0.3,
        "query_ids": rng.integers(0, 9, ROWS),
        "document_ids": rng.integers(0, 9, ROWS),
        "is_valid": np.arange(ROWS) < VALID_ROWS,
    }


def main() -> None:
    """Fit two epochs and save history and weights."""
    replicas = int(sys.argv[1])
    without_device_autotune()
    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0],
        [tf.config.LogicalDeviceConfiguration()] * 4,
    )
    strategy = tf.distribute.get_strategy()
    if replicas > 1:
        devices = [f"CPU:{i}" for i in range(replicas)]
        strategy = tf.distribute.MirroredStrategy(devices)
    figures = {}
    for name in sys.argv[3:]:
        optimizer, cache_size = VARIANTS[name]
        model, history = fitted(
            strategy,
            optimizer,
            cache_size,
            with_metrics=name == "sgd",
            is_packed=name.startswith("packed"),
        )
        weights = [np.ravel(v.numpy()) for v in model.trainable_variables]
        figures[f"{name}/weights"] = np.concatenate(weights)
        for key, values in history.items():
            figures[f"{name}/{key}"] = np.array(values)
    np.savez(sys.argv[2], **figures)


def fitted(
    strategy, make_optimizer, cache_size, *, with_metrics, is_packed=False
):
    """Fit two epochs of five batches."""
    replicas = strategy.num_replicas_in_sync
    with strategy.scope():
        keras.utils.set_random_seed(0)
        encoder = ts.models.T5Encoder(
            vocabulary_size=384,
            num_layers=1,
            num_heads=2,
            hidden_dim=16,
            intermediate_dim=24,
            key_value_dim=6,
            dropout=0.0,
        )
        model = ts.models.DualEncoder.from_encoder(
            encoder,
            ts.text.load_tokenizer(TINY),
            architecture="ade-spl",
            projection_dim=8,
            query_length=6,
            document_length=9,
        )
        model.compile(
            make_optimizer(),
            ts.losses.SamToNeLoss(
                ts.losses.LearnedTemperature(0.05), "both", tile_size=3
            ),
            # In one variant only: they take long to trace.
            metrics=ts.evaluation.in_batch_metrics() if with_metrics else None,
            diagnostics=with_metrics,
            gradient_cache_batch_size=cache_size,
        )
    if is_packed:
        groups = BATCH // cache_size if cache_size else replicas
        dataset = packed_dataset(model, groups)
    else:
        dataset = tf.data.Dataset.from_tensor_slices(features()).batch(BATCH)
    return model, model.fit(dataset, epochs=2, verbose=0).history


if __name__ == "__main__":
    main()
