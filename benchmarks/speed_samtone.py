"""This library's side of training_speed.py: the train step that `fit` runs."""

import time
from collections.abc import Callable

import numpy as np
import speed_batches
import speed_matmuls
from speed_protocol import serve


def start(job: dict) -> tuple[Callable[[dict], dict], dict]:
    """Builds the model and its data; returns the command handler."""
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(job["threads"])
    if job["threads"] == 1:
        tf.config.threading.set_inter_op_parallelism_threads(1)
    side = _Samtone(job)
    about = {
        "versions": f"tensorflow {tf.__version__}",
        "parameters": side.model.count_params(),
    }
    return side.answer, about


class _Samtone:
    def __init__(self, job: dict) -> None:
        self.job = job
        self.model = _model(job)
        self.model.make_train_function()
        dataset = speed_batches.dataset(job, job["packing"])
        self.batches = iter(dataset)
        # The same once more, to look at; the order is a function of the seed.
        self.copies = iter(dataset)
        self.done = 0

    def answer(self, command: dict) -> dict:
        """Runs one command of the parent."""
        if command["do"] == "products":
            return self._against_products(command["repeats"])
        return self._run(command["first"], command["steps"])

    def _against_products(self, repeats: int) -> dict:
        """Times the step on one batch and its matrix products, in turn."""
        import tensorflow as tf

        batch = next(self.copies)
        products = speed_matmuls.MatmulTimes(self.model, batch)
        again = iter(tf.data.Dataset.from_tensors(batch).repeat())
        self._step(again)
        steps, alone = [], []
        for _ in range(repeats):
            steps.append(self._step(again)[1:])
            alone.append(products.seconds())
        return {
            "step": _by_clock(steps),
            "products": _by_clock(alone),
            "flops": products.flops,
            "count": products.count,
        }

    def _run(self, first: int, steps: int) -> dict:
        if first != self.done:
            raise RuntimeError(f"expected batch {self.done}, not {first}")
        self.done += steps
        timed = [self._step(self.batches) for _ in range(steps)]
        batches = [next(self.copies) for _ in range(steps)]
        masks = [
            _mask(batch[side])
            for batch in batches
            for side in ("queries", "documents")
        ]
        return {
            "losses": [loss for loss, _, _ in timed],
            **_by_clock([seconds for _, *seconds in timed]),
            "tokens": int(sum(mask.sum() for mask in masks)),
            "positions": sum(mask.size for mask in masks),
            "shapes": [list(mask.shape) for mask in masks[:2]],
        }

    def _step(self, batches) -> tuple[float, float, float]:
        """Returns the loss, and the wall and CPU seconds that it took."""
        self.model.reset_metrics()
        wall, cpu = time.perf_counter(), time.process_time()
        loss = float(self.model.train_function(batches)["loss"])
        return (
            loss,
            time.perf_counter() - wall,
            time.process_time() - cpu,
        )


def _by_clock(pairs: list) -> dict:
    walls, cpus = zip(*pairs, strict=True)
    return {"seconds": walls, "cpu_seconds": cpus}


def _mask(features: dict) -> np.ndarray:
    if "segment_ids" in features:
        return features["segment_ids"].numpy() > 0
    return features["padding_mask"].numpy() > 0


def _model(job: dict):
    import tf_samtone as ts

    model = ts.models.DualEncoder.from_preset(
        job["preset"],
        query_length=speed_batches.QUERY_LENGTH,
        document_length=speed_batches.DOCUMENT_LENGTH,
        projection_dim=speed_batches.PROJECTION_DIM,
        dropout=job["dropout"],
        dtype=job["dtype"],
    )
    projection = model.query_tower.projection
    kernel = speed_batches.projection_kernel(projection.kernel.shape[0])
    projection.kernel.assign(kernel)
    loss = ts.losses.SamToNeLoss(
        temperature=job["temperature"],
        same_tower="query",
        bidirectional=False,
        # The peer masks nothing but a query's similarity with itself.
        mask_duplicates=False,
    )
    model.compile(_optimizer(job), loss)
    return model


def _optimizer(job: dict):
    import keras

    import tf_samtone as ts

    if job["optimizer"] == "adamw":
        return keras.optimizers.AdamW(
            job["learning_rate"], weight_decay=0.0, epsilon=1e-8
        )
    return ts.optimizers.Adafactor(job["learning_rate"], min_factored_dim=0)


if __name__ == "__main__":
    serve(start)
