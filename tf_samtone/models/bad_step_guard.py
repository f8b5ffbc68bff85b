"""Ends a fit whose steps are no longer finite."""

import logging

import keras

from tf_samtone.errors import NonFiniteError

_LOGGER = logging.getLogger("tf_samtone")


class BadStepGuard(keras.callbacks.Callback):
    """Watches the steps that `DualEncoder.train_step` skipped.

    `DualEncoder.fit` adds one; nobody else needs to.

    Raises:
        NonFiniteError: from `fit`, after `max_bad_steps` bad steps in a row.
    """

    def on_train_batch_end(self, batch, logs=None):
        state = self.model.training_state
        run = int(state.consecutive_skipped.numpy())
        if run == 0:
            return
        last = int(state.steps.numpy())
        _LOGGER.warning(
            "step %d: the loss or a gradient is not finite; the step was "
            "skipped (%d in a row, %d in all)",
            last,
            run,
            int(state.skipped_steps.numpy()),
        )
        if run >= self.model.max_bad_steps:
            first = last - run + 1
            raise NonFiniteError(
                "Expected a finite loss and finite gradients. Received: inf or "
                f"NaN in each of the steps {first} to {last}. The weights are "
                "those of the step before. Look at the texts of these batches, "
                "raise the temperature or lower the learning rate.",
                steps=range(first, last + 1),
            )
