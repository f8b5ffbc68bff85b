"""Fits a tiny dual encoder as one worker of a cluster, or alone.

    TF_CONFIG=... python fit_under_worker_strategy.py OUTPUT.npz

Without TF_CONFIG the process is alone. Clipping is at work, and the last batch
is short.
"""

import os
import pathlib
import sys

import keras
import numpy as np
import tensorflow as tf

import tf_samtone as ts
from tf_samtone.distribution import make_strategy

ROWS, BATCH = 21, 8
TINY = pathlib.Path(__file__).parents[1] / "data_files" / "tiny.spm"


def dataset() -> tf.data.Dataset:
    """Make the batches of all workers together: eight, eight and five rows."""
    rng = np.random.default_rng(0)

    def tokens(*shape):
        return {
            "token_ids": rng.integers(3, 300, shape).astype(np.int32),
            "padding_mask": np.ones(shape, np.int32),
        }

    features = {
        "queries": tokens(ROWS, 6),
        "documents": tokens(ROWS, 9),
        "query_ids": rng.integers(0, 9, ROWS),
        "document_ids": rng.integers(0, 9, ROWS),
    }
    return tf.data.Dataset.from_tensor_slices(features).batch(BATCH)


def main() -> None:
    """Fit two epochs and save losses and weights."""
    # Before anything else: the cluster must be known when TensorFlow starts.
    name = "multi_worker" if os.environ.get("TF_CONFIG") else "none"
    strategy = make_strategy(name)
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
            projection_dim=8,
            query_length=6,
            document_length=9,
        )
        model.compile(
            keras.optimizers.SGD(0.01, global_clipnorm=0.1),
            ts.losses.SamToNeLoss(0.05),
        )
    history = model.fit(
        dataset(), epochs=2, verbose=0, validation_data=dataset()
    ).history
    weights = [np.ravel(v.numpy()) for v in model.trainable_variables]
    np.savez(
        sys.argv[1],
        weights=np.concatenate(weights),
        loss=history["loss"],
        val_loss=history["val_loss"],
    )


if __name__ == "__main__":
    main()
