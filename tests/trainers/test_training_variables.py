"""Tests of naming, reading and setting all variables of training."""

import random

import keras
import numpy as np
import pytest

from tf_samtone.errors import MismatchError, TrainingError
from tf_samtone.evaluation import in_batch_metrics
from tf_samtone.losses import LearnedTemperature, SamToNeLoss
from tf_samtone.trainers.training_variables import (
    assign_variables,
    check_finite,
    check_variables,
    read_variables,
    training_variables,
)


@pytest.fixture(scope="module")
def compiled(make_tiny_dual_encoder):
    """Returns a function that makes a compiled model."""

    def make(architecture="sde", temperature=0.05, **options):
        model = make_tiny_dual_encoder(architecture, **options)
        model.compile(
            keras.optimizers.AdamW(1e-3),
            SamToNeLoss(temperature),
            metrics=in_batch_metrics(),
        )
        return model

    return make


def test_every_variable_of_a_model_has_a_name(compiled):
    model = compiled("ade", LearnedTemperature(0.05))
    found = {id(v) for v in training_variables(model).values()}

    expected = [
        *model.variables,
        *model.contrastive_loss.trainable_variables,
        *model.optimizer.variables,
        *model.training_state.variables.values(),
        *(v for metric in model.metrics for v in metric.variables),
    ]
    assert found == {id(v) for v in expected}


def test_names_do_not_depend_on_earlier_models(compiled):
    first = training_variables(compiled("ade-spl", LearnedTemperature(0.05)))
    second = training_variables(compiled("ade-spl", LearnedTemperature(0.05)))

    # A process that resumes has made no models before.
    assert list(first) == list(second)


def test_two_towers_keep_their_weights_apart(compiled):
    names = list(training_variables(compiled("ade"), ["model"]))

    assert "model/token_embedding/embeddings" in names
    assert "model/token_embedding/embeddings#2" in names


def test_values_survive_reading_and_setting(compiled):
    source, target = compiled(seed=1), compiled(seed=2)
    tensors = read_variables(training_variables(source))
    tensors = {
        name: (array + np.array(random.Random(name).random())).astype(
            array.dtype
        )
        for name, array in tensors.items()
    }

    variables = training_variables(target)
    check_variables(variables, tensors, "folder")
    assign_variables(variables, tensors)

    for name, array in read_variables(training_variables(target)).items():
        np.testing.assert_array_equal(array, tensors[name])


@pytest.mark.parametrize(
    ("architecture", "options", "message"),
    [
        ("ade", {}, "missing: model/token_embedding/embeddings#2"),
        (
            "sde",
            {"projection_dim": 5},
            "model/projection/kernel float32 [16, 8] instead of float32 "
            "[16, 5]",
        ),
    ],
    ids=["more towers", "another width"],
)
def test_a_checkpoint_of_another_architecture_is_refused(
    compiled, architecture, options, message
):
    tensors = read_variables(training_variables(compiled()))
    other = training_variables(compiled(architecture, **options))

    with pytest.raises(MismatchError) as caught:
        check_variables(other, tensors, "the_folder")
    assert message in str(caught.value)
    assert "the_folder" in str(caught.value)


def test_surplus_tensors_are_counted_and_the_first_are_named(compiled):
    tensors = read_variables(training_variables(compiled("ade"), ["model"]))
    variables = training_variables(compiled("sde"), ["model"])

    with pytest.raises(MismatchError, match=r"surplus: model/.* and \d+ more"):
        check_variables(variables, tensors, "folder")


@pytest.mark.parametrize("value", [np.nan, np.inf], ids=["nan", "inf"])
@pytest.mark.parametrize("group", ["model", "optimizer"])
def test_values_that_are_not_finite_are_refused_by_name(group, value):
    tensors = {f"{group}/a": np.ones(2), f"{group}/b": np.array([1, value])}

    with pytest.raises(TrainingError, match=f"{group}/b"):
        check_finite(tensors)


def test_a_running_mean_may_be_infinite():
    # One bad step makes the mean loss so; the weights never saw it.
    check_finite({"metrics/loss/total": np.array(np.inf)})
