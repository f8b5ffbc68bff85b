"""Tests of reading recipes."""

import pytest

from tf_samtone.errors import InvalidInputError
from tf_samtone.trainers import read_recipe

RECIPE = """
name = "tiny"

[data]
path = "somewhere"

[model]
preset = "t5"

[[stages]]
steps = 10
batch_size = 4
learning_rate = 1
"""


@pytest.fixture
def write(tmp_path):
    def write_recipe(text):
        path = tmp_path / "tiny.toml"
        path.write_text(text)
        return path

    return write_recipe


def test_values_and_defaults_are_read(write):
    recipe = read_recipe(write(RECIPE))
    assert recipe.stages[0].steps == 10
    assert recipe.loss.same_tower == "query"


def test_a_whole_number_may_stand_for_a_float(write):
    rate = read_recipe(write(RECIPE)).stages[0].learning_rate
    assert (rate, type(rate)) == (1.0, float)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("steps = 10", "step = 10", "Did you mean 'steps'"),
        ('preset = "t5"', 'presets = "t5"', "model.presets"),
        ("steps = 10\n", "", "Expected the key stages.steps"),
        ("steps = 10", 'steps = "10"', "stages.steps='10'"),
        ("steps = 10", "steps = true", "of type int"),
        ("[[stages]]", "[stages]", "a list"),
        ('name = "tiny"', "name = ", "Expected a TOML file"),
    ],
    ids=["misspelt", "nested", "missing", "string", "bool", "table", "syntax"],
)
def test_a_fault_is_named(write, old, new, message):
    with pytest.raises(InvalidInputError) as caught:
        read_recipe(write(RECIPE.replace(old, new, 1)))
    assert message in str(caught.value)


def test_an_installed_recipe_is_found_by_name():
    assert read_recipe("medquad").name == "medquad"


def test_an_unknown_name_lists_the_installed_recipes():
    with pytest.raises(InvalidInputError, match="'medquad'"):
        read_recipe("no_such_recipe")
