"""Tests of saving and resuming a run within one process."""

import dataclasses
import os
import shutil
import signal

import keras
import numpy as np
import pytest

from tf_samtone.data import Pair
from tf_samtone.errors import MismatchError, TrainingInterrupted
from tf_samtone.trainers import (
    LossRecipe,
    OptimizerRecipe,
    StageRecipe,
    TrainingRecipe,
)
from tf_samtone.trainers.checkpointing import RunCheckpoints, pairs_digest
from tf_samtone.trainers.fit_stages import fit_stages

PAIRS = [Pair(f"query {i}", f"document {i % 5}") for i in range(10)]


class Killed(BaseException):
    """Stands for the end of the process."""


class AtStep(keras.callbacks.Callback):
    """Does something at a step of the run."""

    def __init__(self, step, action):
        super().__init__()
        self.step, self.action, self.first_step = step, action, 0

    def on_train_batch_begin(self, batch, logs=None):
        if self.first_step + batch + 1 == self.step:
            self.action()


class Counter(keras.callbacks.Callback):
    """Counts steps, and keeps the count in checkpoints."""

    count = 0

    def on_train_batch_end(self, batch, logs=None):
        self.count += 1

    def state(self):
        return {"count": self.count}

    def restore(self, state):
        self.count = state["count"]


def die():
    raise Killed


@pytest.fixture(scope="module")
def recipe(make_recipe):
    return make_recipe(
        stages=(
            StageRecipe(name="first", steps=3, batch_size=4),
            StageRecipe(name="second", steps=3, batch_size=2),
        ),
        training=TrainingRecipe(checkpoint_every=2),
    )


@pytest.fixture(scope="module")
def fit(make_tiny_dual_encoder, make_tiny_encoder):
    """Returns a function that trains a tiny model with dropout."""

    def fit_model(recipe, folder, *callbacks, pairs=PAIRS, loss=None):
        # Without layers it is traced fast; nothing reads the bias then.
        encoder = make_tiny_encoder(num_layers=0, dropout=0.3)
        encoder.position_bias.trainable = False
        model = make_tiny_dual_encoder(encoder=encoder)
        loss = loss or recipe.loss
        history = fit_stages(
            model,
            recipe,
            lambda name: pairs,
            loss,
            callbacks,
            checkpoints=RunCheckpoints(folder, recipe, loss, resume=True),
        )
        for record in history:
            del record["seconds"]
        return [w.numpy() for w in model.weights], history

    return fit_model


@pytest.fixture(scope="module")
def finished(fit, recipe, tmp_path_factory):
    """Weights, history, count and folder of a run without a break."""
    folder = tmp_path_factory.mktemp("finished")
    counter = Counter()
    return *fit(recipe, folder, counter), counter.count, folder


def test_checkpoints_lie_at_multiples_and_at_ends_of_stages(finished):
    # Steps 2 and 3 of the first stage, 2 and 3 of the second; two are kept.
    names = sorted(path.name for path in finished[3].iterdir())
    assert names == ["step-00000005", "step-00000006"]


def test_a_run_killed_in_its_second_stage_ends_with_the_same_bits(
    fit, recipe, finished, tmp_path
):
    counter = Counter()
    with pytest.raises(Killed):
        fit(recipe, tmp_path, AtStep(4, die), counter)

    # Resumes at the end of the first stage.
    weights, history = fit(recipe, tmp_path, counter)
    assert history == finished[1]
    assert counter.count == finished[2]
    for actual, expected in zip(weights, finished[0], strict=True):
        np.testing.assert_array_equal(actual, expected)


def test_a_signal_saves_the_step_and_names_the_checkpoint(
    fit, recipe, finished, tmp_path
):
    stop = AtStep(5, lambda: os.kill(os.getpid(), signal.SIGTERM))
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(TrainingInterrupted, match="step-00000005"):
        fit(recipe, tmp_path, stop)
    assert signal.getsignal(signal.SIGTERM) == before

    weights, history = fit(recipe, tmp_path)
    assert history == finished[1]
    for actual, expected in zip(weights, finished[0], strict=True):
        np.testing.assert_array_equal(actual, expected)


def test_a_signal_in_the_last_step_saves_the_finished_stage(
    fit, recipe, finished, tmp_path
):
    stop = AtStep(6, lambda: os.kill(os.getpid(), signal.SIGTERM))
    with pytest.raises(TrainingInterrupted, match="step-00000006"):
        fit(recipe, tmp_path, stop)

    assert fit(recipe, tmp_path, AtStep(6, die))[1] == finished[1]


def test_a_finished_run_is_restored_without_training(fit, recipe, finished):
    counter = Counter()
    weights, history = fit(recipe, finished[3], counter)

    assert (history, counter.count) == (finished[1], finished[2])
    for actual, expected in zip(weights, finished[0], strict=True):
        np.testing.assert_array_equal(actual, expected)


@pytest.fixture(scope="module")
def killed_in_first_stage(fit, recipe, tmp_path_factory):
    folder = tmp_path_factory.mktemp("killed")
    with pytest.raises(Killed):
        fit(recipe, folder, AtStep(3, die))
    return folder


@pytest.fixture
def at_step_two(killed_in_first_stage, tmp_path):
    """A copy of the folder of a run that was killed in its first stage."""
    return shutil.copytree(killed_in_first_stage, tmp_path / "copy")


def test_other_pairs_are_refused(fit, recipe, at_step_two):
    # The position would point into another order.
    with pytest.raises(MismatchError, match="training pairs"):
        fit(recipe, at_step_two, pairs=[*PAIRS[1:], PAIRS[0]])


def test_another_optimizer_is_refused(fit, recipe, at_step_two):
    other = dataclasses.replace(recipe, optimizer=OptimizerRecipe(name="adamw"))
    with pytest.raises(MismatchError, match="optimizer/"):
        fit(other, at_step_two)


def test_another_loss_is_refused(fit, recipe, at_step_two):
    with pytest.raises(MismatchError, match="in_batch_softmax"):
        fit(recipe, at_step_two, loss=LossRecipe(name="in_batch_softmax"))


def test_the_digest_depends_on_texts_and_order():
    digests = {
        pairs_digest(pairs)
        for pairs in (
            PAIRS,
            PAIRS[::-1],
            [Pair(p.document, p.query) for p in PAIRS],
        )
    }
    assert len(digests) == 3
