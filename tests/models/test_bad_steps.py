"""Steps that are not finite."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tf_samtone.errors import NonFiniteError
from tf_samtone.evaluation import in_batch_metrics
from tf_samtone.losses import SamToNeLoss
from tf_samtone.optimizers import Adafactor


@keras.saving.register_keras_serializable(package="tests")
class PoisonedLoss(SamToNeLoss):
    """NaN for every batch whose first query id is 13."""

    def per_example(self, queries, documents, **batch):
        loss = super().per_example(queries, documents, **batch)
        is_bad = tf.equal(batch["query_ids"][0], 13)
        return tf.where(is_bad, float("nan"), 1.0) * loss


def batches(first_ids):
    generator = np.random.default_rng(0)
    count = len(first_ids)

    def tokens(length):
        return {
            "token_ids": np.tile(
                generator.integers(3, 300, [4, length]), [count, 1, 1]
            ).astype(np.int32),
            "padding_mask": np.ones([count, 4, length], np.int32),
        }

    ids = [[first, 2, 3, 4] for first in first_ids]
    return tf.data.Dataset.from_tensor_slices(
        {
            "queries": tokens(5),
            "documents": tokens(7),
            "query_ids": np.array(ids, np.int64),
        }
    )


def compiled(make_tiny_dual_encoder, **options):
    model = make_tiny_dual_encoder()
    model.compile(
        Adafactor(1e-2, weight_decay=0.1),
        PoisonedLoss(0.1),
        metrics=in_batch_metrics(),
        **options,
    )
    return model


def state_of(model):
    variables = [*model.trainable_variables, *model.optimizer.variables]
    return [v.numpy() for v in variables]


def test_a_bad_step_changes_nothing_and_is_counted(make_tiny_dual_encoder):
    model = compiled(make_tiny_dual_encoder)
    model.fit(batches([1]), verbose=0)
    before = state_of(model)
    model.fit(batches([13]), verbose=0)
    for after, was in zip(state_of(model), before, strict=True):
        np.testing.assert_array_equal(after, was)
    counters = {k: v.numpy() for k, v in model.training_state.variables.items()}
    assert np.isnan(counters.pop("gradient_norm"))
    assert counters == {
        "steps": 2,
        "skipped_steps": 1,
        "consecutive_skipped": 1,
    }


def test_a_good_step_ends_the_run_of_bad_ones(make_tiny_dual_encoder):
    model = compiled(make_tiny_dual_encoder)
    model.fit(batches([13, 13, 1]), verbose=0)
    assert model.training_state.skipped_steps.numpy() == 2
    assert model.training_state.consecutive_skipped.numpy() == 0
    assert model.training_state.gradient_norm.numpy() > 0


def test_the_reported_figures_are_those_of_the_good_steps(
    make_tiny_dual_encoder,
):
    with_bad = compiled(make_tiny_dual_encoder).fit(
        batches([1, 13, 2]), verbose=0
    )
    without = compiled(make_tiny_dual_encoder).fit(batches([1, 2]), verbose=0)
    for name, values in without.history.items():
        assert np.isfinite(values).all()
        # Dropout differs in the second step: its number is another one.
        assert with_bad.history[name] == pytest.approx(values, rel=0.5)


def test_bad_steps_in_a_row_end_the_fit_with_their_numbers(
    make_tiny_dual_encoder,
):
    model = compiled(make_tiny_dual_encoder, max_bad_steps=3)
    data = batches([1, 13, 13, 2, 13, 13, 13, 13, 1])
    with pytest.raises(NonFiniteError, match="steps 5 to 7") as caught:
        model.fit(data, verbose=0)
    assert caught.value.steps == (5, 6, 7)
    assert all(np.isfinite(value).all() for value in state_of(model))


def test_each_bad_step_is_logged(make_tiny_dual_encoder, caplog):
    model = compiled(make_tiny_dual_encoder)
    model.fit(batches([1, 13]), verbose=0)
    (record,) = caplog.records
    assert "step 2" in record.getMessage()
    assert "1 in a row, 1 in all" in record.getMessage()


def test_counters_are_neither_weights_nor_variables(make_tiny_dual_encoder):
    model = make_tiny_dual_encoder()
    model.compile("sgd", SamToNeLoss(0.1))
    names = {v.name for v in model.variables}
    assert not names & set(model.training_state.variables)
    assert len(model.weights) == len(make_tiny_dual_encoder().weights)
