"""The examples in the docstrings print what they say."""

import doctest
import importlib
import pkgutil

import pytest

import tf_samtone.losses

MODULES = [m.name for m in pkgutil.iter_modules(tf_samtone.losses.__path__)]
LOSSES = [name for name in MODULES if name.endswith("_loss")]


def run(name):
    return doctest.testmod(importlib.import_module(f"tf_samtone.losses.{name}"))


@pytest.mark.parametrize("name", MODULES)
def test_examples_print_their_numbers(name):
    assert run(name).failed == 0


@pytest.mark.parametrize(
    "name", [name for name in LOSSES if name != "contrastive_loss"]
)
def test_every_loss_has_an_example(name):
    assert run(name).attempted > 0
