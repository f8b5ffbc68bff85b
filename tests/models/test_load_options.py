"""What a user's options, a checkpoint and the defaults add up to."""

import pytest

from tf_samtone.errors import InvalidInputError, MismatchError
from tf_samtone.models import LoadOptions

DEFAULTS = {
    "architecture": "sde",
    "projection_dim": 768,
    "query_length": 64,
    "document_length": 256,
    "query_prefix": "",
    "document_prefix": "",
    "normalize": True,
}


def test_without_anything_the_defaults_hold():
    assert LoadOptions().resolved() == DEFAULTS


def test_the_checkpoint_comes_before_the_defaults():
    resolved = LoadOptions().resolved(query_length=9, normalize=False)
    assert resolved == {**DEFAULTS, "query_length": 9, "normalize": False}


def test_the_user_comes_before_the_checkpoint():
    options = LoadOptions(query_length=5, query_prefix="", normalize=True)
    resolved = options.resolved(
        query_length=9, query_prefix="find: ", normalize=False
    )
    assert resolved == {**DEFAULTS, "query_length": 5}


def test_nothing_that_the_checkpoint_says_is_not_the_empty_value():
    resolved = LoadOptions().resolved(query_length=None, projection_dim=0)
    assert resolved == {**DEFAULTS, "projection_dim": 0}


def test_another_value_than_the_weights_have_is_named():
    options = LoadOptions(projection_dim=4)
    message = "Expected projection_dim=8, which box .*projection_dim=4"
    with pytest.raises(MismatchError, match=message):
        options.refuse_others("box", architecture="ade", projection_dim=8)


def test_the_value_of_the_weights_may_be_asked_for():
    LoadOptions(projection_dim=8).refuse_others("box", projection_dim=8)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"architecture": "siamese"}, "'ade-fte'.*'siamese'"),
        ({"projection_dim": -1}, "`projection_dim`, an int >= 0"),
    ],
    ids=["architecture", "width"],
)
def test_a_typing_error_is_refused_at_once(options, message):
    with pytest.raises(InvalidInputError, match=message):
        LoadOptions(**options)
