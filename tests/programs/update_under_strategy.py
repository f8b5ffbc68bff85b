"""Updates a small model on logical CPU devices and writes what came out.

    python update_under_strategy.py REPLICAS OUTPUT.npz

The same ten global batches for every number of replicas and every optimizer.
They run again with an extra step after the fifth, which is not finite on the
last replica only.
"""

import sys

import keras
import numpy as np
import tensorflow as tf

from tf_samtone.distribution import guarded_update
from tf_samtone.optimizers import Adafactor

STEPS, BATCH, BAD_STEP = 10, 8, 4
SCHEDULE = {"initial_learning_rate": 0.1, "decay_steps": 16}

CASES = {
    "sgd": lambda: keras.optimizers.SGD(schedule(), global_clipnorm=0.5),
    "sgd_clipnorm": lambda: keras.optimizers.SGD(schedule(), clipnorm=0.3),
    "sgd_clipvalue": lambda: keras.optimizers.SGD(schedule(), clipvalue=0.02),
    "adafactor": lambda: Adafactor(
        0.05, min_factored_dim=3, weight_decay=0.01, global_clipnorm=0.5
    ),
    "adamw": lambda: keras.optimizers.AdamW(
        schedule(), weight_decay=0.1, global_clipnorm=0.5
    ),
    "nadam": lambda: keras.optimizers.Nadam(0.01, global_clipnorm=0.5),
    "average_overwrites": lambda: keras.optimizers.AdamW(
        0.01, use_ema=True, ema_momentum=0.5, ema_overwrite_frequency=3
    ),
}
SPOILED = ("sgd", "adafactor", "adamw", "nadam", "average_overwrites")
# What the last row of the extra step is multiplied by, or its loss is.
KINDS = {
    "inf": {"factor": np.inf},
    "nan": {"factor": np.nan},
    "overflow": {"factor": 1e25},
    "loss": {"also": np.nan},
}


def schedule() -> keras.optimizers.schedules.LearningRateSchedule:
    """Falls with every update."""
    return keras.optimizers.schedules.PolynomialDecay(**SCHEDULE)


def batches() -> tuple[np.ndarray, np.ndarray]:
    """Make int32 ids `[steps, batch]`, some repeated, and float32 targets."""
    rng = np.random.default_rng(0)
    ids = rng.integers(0, 6, (STEPS, BATCH)).astype(np.int32)
    targets = rng.normal(size=(STEPS, BATCH, 3)).astype(np.float32)
    return ids, targets


def initial_weights() -> list[np.ndarray]:
    """Make table `[6, 4]`, matrix `[4, 3]` and bias `[3]`, float32."""
    rng = np.random.default_rng(1)
    shapes = [(6, 4), (4, 3), (3,)]
    return [rng.normal(size=shape).astype(np.float32) for shape in shapes]


def components(variable: keras.Variable) -> list[np.ndarray]:
    """Return the variable's value on every replica."""
    value = variable.value
    return [part.numpy() for part in getattr(value, "values", [value])]


class Run:
    """One optimizer and its variables under one strategy."""

    def __init__(self, strategy, make_optimizer) -> None:
        self.strategy = strategy
        with strategy.scope():
            self.variables = [keras.Variable(x) for x in initial_weights()]
            self.optimizer = make_optimizer()
            self.optimizer.build(self.variables)
        everything = [*self.variables, *self.optimizer.variables]
        self.initial = [(v, v.numpy()) for v in everything]
        self.run = tf.function(
            lambda *batch: strategy.run(self.replica_step, args=batch)
        )

    def reset(self) -> None:
        """Go back to the start, without tracing the step again."""
        for variable, value in self.initial:
            variable.assign(value)

    def replica_step(self, ids, targets, factor, also):
        """Half the mean of the squared errors; `factor` spoils them."""
        with tf.GradientTape() as tape:
            table, matrix, bias = self.variables
            rows = tf.gather(table.value, ids) @ matrix.value + bias.value
            loss = tf.reduce_sum(tf.square(rows - targets) * factor)
            loss /= 2.0 * BATCH
        gradients = tape.gradient(loss, [v.value for v in self.variables])
        return guarded_update(
            self.optimizer,
            gradients,
            self.variables,
            finite_also=[tf.reduce_sum(also)],
        )

    def step(self, ids, targets, factor=1.0, also=0.0):
        """Step on a global batch; `factor` and `also` are of the last row."""
        arrays = [
            ids,
            targets,
            np.ones((BATCH, 1), np.float32),
            np.zeros(BATCH, np.float32),
        ]
        arrays[2][-1], arrays[3][-1] = factor, also
        replicas = self.strategy.num_replicas_in_sync

        def part_of(context):
            part = context.replica_id_in_sync_group
            return [tf.constant(np.split(x, replicas)[part]) for x in arrays]

        parts = self.strategy.experimental_distribute_values_from_function
        batch = parts(part_of) if replicas > 1 else map(tf.constant, arrays)
        results = self.run(*batch)
        local = self.strategy.experimental_local_results
        return [np.array([x.numpy() for x in local(r)]) for r in results]

    def state(self) -> np.ndarray:
        """Return all variables on every replica, `[replicas, numbers]`."""
        parts = [components(variable) for variable, _ in self.initial]
        replicas = zip(*parts, strict=True)
        return np.stack(
            [np.concatenate([np.ravel(x) for x in r]) for r in replicas]
        )

    def weights(self) -> np.ndarray:
        """Return the weights of the first replica."""
        return np.concatenate(
            [np.ravel(components(v)[0]) for v in self.variables]
        )


def ten_steps(run: Run, spoil: dict) -> dict:
    """Run ten steps, with one more that is spoiled if `spoil` is not empty."""
    run.reset()
    norms, figures = [], {}
    for step, (ids, targets) in enumerate(zip(*batches(), strict=True)):
        is_finite, norm = run.step(ids, targets)
        norms.append(norm)
        if not is_finite.all():
            raise ValueError(f"step {step} is not finite")
        if spoil and step == BAD_STEP:
            figures["before"] = run.state()
            figures["bad_flag"], _ = run.step(ids, targets, **spoil)
            figures["after"] = run.state()
    return {
        **figures,
        "weights": run.weights(),
        "state": run.state(),
        "iterations": run.optimizer.iterations.numpy(),
        "norms": np.array(norms),
    }


def main() -> None:
    """Run all cases and save their figures."""
    replicas = int(sys.argv[1])
    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0],
        [tf.config.LogicalDeviceConfiguration()] * 4,
    )
    strategy = tf.distribute.get_strategy()
    if replicas > 1:
        devices = [f"CPU:{i}" for i in range(replicas)]
        strategy = tf.distribute.MirroredStrategy(devices)
    figures = {}
    for case, make_optimizer in CASES.items():
        run = Run(strategy, make_optimizer)
        kinds = KINDS if case == "adamw" else {"inf": KINDS["inf"]}
        results = {case: ten_steps(run, {})}
        if case in SPOILED:
            for kind, spoil in kinds.items():
                results[f"{case}+{kind}"] = ten_steps(run, spoil)
        for name, result in results.items():
            figures |= {f"{name}/{key}": value for key, value in result.items()}
    np.savez(sys.argv[2], **figures)


if __name__ == "__main__":
    main()
