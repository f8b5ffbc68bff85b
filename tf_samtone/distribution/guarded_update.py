"""One optimizer update from the gradients of all replicas, or none at all."""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import keras
import tensorflow as tf

from tf_samtone.errors import InvalidInputError

__all__ = ["guarded_update"]

_CLIP_OPTIONS = ("clipnorm", "global_clipnorm", "clipvalue")


def guarded_update(
    optimizer: keras.optimizers.Optimizer,
    gradients: Sequence[tf.Tensor | tf.IndexedSlices | None],
    variables: Sequence[keras.Variable],
    *,
    finite_also: Sequence[tf.Tensor] = (),
) -> tuple[tf.Tensor, tf.Tensor]:
    """Adds up the gradients of all replicas, checks them and applies them.

    In this order: one batched all-reduce (a sum, so each replica's gradients
    must be divided by the rows of all replicas), the finite check, clipping as
    the optimizer's `global_clipnorm`, `clipnorm` or `clipvalue` asks, and the
    update. Keras alone clips and checks the part of each replica before they
    are added up, which gives other weights for every number of replicas.

    If anything is not finite on any replica, no replica changes anything:
    weights, slots, `iterations`, weight decay and moving averages stay. A
    gradient whose squares overflow float32 counts as not finite, as it would
    leave an inf in the slots of Adam and Adafactor for ever.

    Call it in replica context, e.g. within Keras's `train_step`, on every
    replica alike; outside a strategy it is the same with one replica. Under
    several replicas it cannot be inside another `tf.function`, `tf.cond` or
    `tf.while_loop` of the step.

    Args:
        optimizer: Keras optimizer that `check_optimizer` accepts.
        gradients: one per variable: a tensor of its shape, `tf.IndexedSlices`
            or `None`.
        variables: the variables to change.
        finite_also: float tensors of any shape, e.g. the local loss. They are
            checked on every replica, but not added up.

    Returns:
        `(is_finite, gradient_norm)`, a bool and a float32 scalar, the same on
        every replica: whether the update was made, and the global norm of the
        summed gradients before clipping.

    Raises:
        InvalidInputError: if no variable has a gradient.
    """
    known = [i for i, gradient in enumerate(gradients) if gradient is not None]
    if not known:
        raise InvalidInputError(
            "Expected a gradient for at least one variable. Received: None "
            f"for all of {len(variables)}. Check that the loss depends on the "
            "variables and that some of them are trainable."
        )
    if not optimizer.built:
        with keras.name_scope(optimizer.name):
            optimizer.build(variables)

    context = tf.distribute.get_replica_context()
    parts = [_dense(gradients[i], variables[i]) for i in known]
    *sums, bad = _sum_over_replicas(context, [*parts, _count_bad(finite_also)])
    norm = tf.sqrt(tf.add_n([_sum_of_squares(x) for x in sums]))
    is_finite = tf.math.is_finite(norm) & tf.equal(bad, 0.0)

    clipped: list[tf.Tensor | None] = [None] * len(gradients)
    for i, gradient in zip(known, _clip(optimizer, sums, norm), strict=True):
        clipped[i] = gradient

    def update_all_replicas(
        strategy: tf.distribute.Strategy, is_finite: Any, gradients: list
    ) -> None:
        # One branch for all replicas: no replica can take another one.
        first = strategy.experimental_local_results(is_finite)[0]

        def update() -> tf.Tensor:
            with _without_clipping(optimizer), _without_merge_calls(strategy):
                optimizer.apply(gradients, variables)
            return tf.constant(True)

        tf.cond(first, update, lambda: tf.constant(False))

    context.merge_call(update_all_replicas, args=(is_finite, clipped))
    return is_finite, norm


def _dense(gradient: Any, variable: Any) -> tf.Tensor:
    """Returns the gradient as a tensor; repeated rows are added up."""
    if isinstance(gradient, tf.IndexedSlices):
        # Not tf.convert_to_tensor: it warns about the memory that it takes.
        gradient = tf.math.unsorted_segment_sum(
            gradient.values, gradient.indices, variable.shape[0]
        )
    # Half precision would be rounded at every addition of the reduction.
    return tf.cast(gradient, tf.float32)


def _count_bad(tensors: Sequence[tf.Tensor]) -> tf.Tensor:
    """Returns how many tensors are not finite, float32 to be added up."""
    bad = tf.constant(0.0)
    for tensor in tensors:
        is_finite = tf.reduce_all(tf.math.is_finite(tensor))
        bad += tf.cast(tf.logical_not(is_finite), tf.float32)
    return bad


def _sum_over_replicas(context: Any, tensors: list[tf.Tensor]) -> list:
    if context.num_replicas_in_sync == 1:
        return tensors
    return context.all_reduce(tf.distribute.ReduceOp.SUM, tensors)


def _sum_of_squares(tensor: tf.Tensor) -> tf.Tensor:
    return tf.reduce_sum(tf.square(tensor))


def _clip(
    optimizer: keras.optimizers.Optimizer,
    gradients: list[tf.Tensor],
    norm: tf.Tensor,
) -> list[tf.Tensor]:
    """Clips as Keras does: the first of its three options that is set."""
    if optimizer.clipnorm:
        return [tf.clip_by_norm(x, optimizer.clipnorm) for x in gradients]
    if optimizer.global_clipnorm:
        limit = tf.constant(optimizer.global_clipnorm, tf.float32)
        scale = limit / tf.maximum(norm, limit)
        return [x * scale for x in gradients]
    if optimizer.clipvalue:
        limit = optimizer.clipvalue
        return [tf.clip_by_value(x, -limit, limit) for x in gradients]
    return gradients


@contextlib.contextmanager
def _without_clipping(optimizer: Any) -> Iterator[None]:
    """Hides the clipping options from `apply`: the gradients are clipped."""
    options = {name: getattr(optimizer, name) for name in _CLIP_OPTIONS}
    try:
        for name in options:
            setattr(optimizer, name, None)
        yield
    finally:
        for name, value in options.items():
            setattr(optimizer, name, value)


@contextlib.contextmanager
def _without_merge_calls(strategy: tf.distribute.Strategy) -> Iterator[None]:
    """Lets `apply` run where all replicas have met already.

    Keras's `apply` asks the strategy whether it has to call the replicas
    together (`maybe_merge_call`); here they are together, and a second
    `merge_call` is an error, as is one within a `tf.cond`. Seen in Keras 3.15
    with TensorFlow 2.20, see https://github.com/keras-team/keras/issues/20582.
    TensorFlow's own tests switch merge calls off in the same way.
    """
    extended = strategy.extended
    extended._use_merge_call = lambda: False
    try:
        yield
    finally:
        # The method of the class is in force again.
        del extended._use_merge_call
