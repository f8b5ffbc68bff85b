"""Refuses optimizer options that several replicas would make wrong."""

import keras
import tensorflow as tf

from tf_samtone.errors import InvalidInputError

__all__ = ["check_optimizer"]


def check_optimizer(
    optimizer: keras.optimizers.Optimizer,
    strategy: tf.distribute.Strategy | None = None,
    *,
    jit_compile: bool | str = False,
) -> None:
    """Raises an error that says why `guarded_update` cannot be right.

    Clipping, weight decay, schedules and moving averages (`use_ema`, with or
    without `ema_overwrite_frequency`) are right and pass.

    Args:
        optimizer: Keras optimizer.
        strategy: the model's strategy. Defaults to none.
        jit_compile: bool or `"auto"`, which Keras turns off under a strategy.
            Defaults to `False`.

    Raises:
        InvalidInputError: if the optimizer scales the loss, accumulates
            gradients, is several optimizers in one or belongs to another
            strategy, or the whole step is to be compiled under a strategy.
    """
    _check_scaling(optimizer)
    if isinstance(optimizer, keras.optimizers.MultiOptimizer):
        raise InvalidInputError(
            "Expected one optimizer for all variables. Received: "
            "MultiOptimizer, whose parts clip for themselves, so that there is "
            "no global norm. Pass one of its optimizers; variables without "
            "weight decay can be named with exclude_from_weight_decay."
        )
    if optimizer.gradient_accumulation_steps:
        raise InvalidInputError(
            "Expected an optimizer without gradient accumulation. Received: "
            "gradient_accumulation_steps="
            f"{optimizer.gradient_accumulation_steps}. The pairs of "
            "accumulated batches are no negatives of each other, so it is not "
            "a large batch. Raise the batch size and pass "
            "gradient_cache_batch_size to compile: the memory of a small "
            "batch, and all negatives."
        )
    if strategy is None:
        return
    # A private attribute: Keras has no public name for it.
    home = getattr(optimizer, "_distribution_strategy", strategy)
    if home is not strategy:
        raise InvalidInputError(
            "Expected an optimizer that was made under the model's strategy. "
            f"Received: one made under {type(home).__name__}, for a model "
            f"under {type(strategy).__name__}. Make model and optimizer inside "
            "`with strategy.scope():`."
        )
    if jit_compile is True and strategy.num_replicas_in_sync > 1:
        raise InvalidInputError(
            "Expected jit_compile=False with several replicas. Received: "
            f"jit_compile=True, {strategy.num_replicas_in_sync} replicas. XLA "
            "cannot compile the collectives of a whole step on CPU and GPU "
            "(and a TPU compiles it without being asked). Leave jit_compile "
            "out."
        )


def _check_scaling(optimizer: keras.optimizers.Optimizer) -> None:
    is_wrapper = isinstance(optimizer, keras.optimizers.LossScaleOptimizer)
    if not is_wrapper and not optimizer.loss_scale_factor:
        return
    received = (
        "LossScaleOptimizer (Keras adds it under the policy mixed_float16)"
        if is_wrapper
        else f"loss_scale_factor={optimizer.loss_scale_factor}"
    )
    raise InvalidInputError(
        f"Expected an optimizer without loss scaling. Received: {received}. "
        "Only float16 needs it, which T5's hidden states overflow, and Keras "
        "checks the gradients of one replica only. Use the dtype policy "
        "mixed_bfloat16 or float32 and pass the plain optimizer."
    )
