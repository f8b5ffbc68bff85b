"""Models without memory for their weights."""

import resource

import keras
import pytest

from tf_samtone.models import T5Encoder, find_model_size
from tf_samtone.models.abstract_model import abstract_towers, without_memory


def _peak_bytes():
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


@pytest.mark.parametrize("name", ["t5_1.1_xxl", "gtr_xxl"])
def test_the_largest_model_takes_next_to_no_memory(name):
    size = find_model_size(name)
    before = _peak_bytes()
    tower, _ = abstract_towers(size)
    assert tower.count_params() == size.parameters > 4.7e9
    assert _peak_bytes() - before < 200e6


def test_a_later_scope_does_not_make_up_for_it():
    with without_memory():
        encoder = T5Encoder(
            vocabulary_size=16,
            num_layers=1,
            num_heads=1,
            hidden_dim=4,
            intermediate_dim=4,
        )
    with keras.StatelessScope():
        pass
    assert all(weight._value is None for weight in encoder.weights)


def test_models_made_afterwards_have_values(make_tiny_encoder):
    with without_memory():
        pass
    weights = make_tiny_encoder().weights
    assert all(weight.numpy().shape == weight.shape for weight in weights)
