"""The check before every export."""

import keras
import numpy as np
import pytest

from tf_samtone.errors import InvalidInputError
from tf_samtone.models import DualEncoder
from tf_samtone.models.check_finite import check_finite


def test_a_new_model_passes(make_tiny_dual_encoder):
    check_finite(make_tiny_dual_encoder())


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_the_first_broken_weight_is_named(make_tiny_dual_encoder, value):
    model = make_tiny_dual_encoder()
    weight = model.query_tower.encoder.encoder_layer_norm.weight
    weight.assign(np.full(16, value))

    with pytest.raises(InvalidInputError, match=weight.path):
        check_finite(model)


def test_a_model_without_weights_is_refused(
    make_tiny_dual_encoder, monkeypatch
):
    model = make_tiny_dual_encoder()
    monkeypatch.setattr(DualEncoder, "weights", [])

    with pytest.raises(InvalidInputError, match="Expected a built model"):
        check_finite(model)


def test_anything_but_a_dual_encoder_is_refused():
    with pytest.raises(InvalidInputError, match="Received: Sequential"):
        check_finite(keras.Sequential())
