"""Where the random bits of dropout come from during training."""

import contextlib
import threading
from collections.abc import Iterator

import tensorflow as tf

__all__ = ["dropout_seed", "folded_seed", "next_dropout_seed"]


class _Scope(threading.local):
    """The seed in force and how many layers have drawn from it.

    Per thread: MirroredStrategy traces every replica in a thread of its own.
    """

    seed: tf.Tensor | None = None
    drawn: int = 0


_scope = _Scope()


@contextlib.contextmanager
def dropout_seed(seed: tf.Tensor | None) -> Iterator[None]:
    """Makes dropout inside a function of one seed.

    Every layer called inside draws a seed of its own, in the order of the
    calls. The same seed and the same layers give the same dropout, as often
    as wanted: a gradient cache, rematerialisation and a resumed run all
    repeat what was computed before.

    Args:
        seed: int32 `[2]`, or `None` to leave dropout to Keras's own state.
    """
    before = (_scope.seed, _scope.drawn)
    _scope.seed, _scope.drawn = seed, 0
    try:
        yield
    finally:
        _scope.seed, _scope.drawn = before


def next_dropout_seed() -> tf.Tensor | None:
    """Draws a seed, int32 `[2]`; `None` outside of `dropout_seed`."""
    if _scope.seed is None:
        return None
    _scope.drawn += 1
    return tf.random.experimental.stateless_fold_in(_scope.seed, _scope.drawn)


def folded_seed(seed: tf.Tensor | int, *numbers: tf.Tensor | int) -> tf.Tensor:
    """Hashes a seed with numbers, e.g. of step, replica and micro-batch.

    Args:
        seed: int, any 64-bit value, or int32 `[2]`.
        *numbers: integer scalars.

    Returns:
        int32 `[2]`.
    """
    if isinstance(seed, int):
        seed = tf.constant([seed & 0x7FFFFFFF, (seed >> 31) & 0x7FFFFFFF])
    for number in numbers:
        seed = tf.random.experimental.stateless_fold_in(
            seed, tf.cast(number, tf.int64)
        )
    return seed
