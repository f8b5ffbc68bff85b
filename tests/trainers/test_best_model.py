"""Tests of keeping the best model."""

import json
import types

import pytest

from tf_samtone.errors import InvalidInputError, OutputExistsError
from tf_samtone.trainers.best_model import BestModel


class _Model:
    """Writes its only weight to a file."""

    def __init__(self):
        self.weight = 0

    def save_to_preset(self, directory):
        directory.mkdir(parents=True)
        (directory / "weight.txt").write_text(str(self.weight))


class _Run:
    """A fit whose validations give prescribed values, one a step."""

    def __init__(self, directory, **options):
        self.validation = types.SimpleNamespace(metrics=("R@1",), history=[])
        self.best = BestModel(self.validation, directory, "R@1", **options)
        self.best.set_model(_Model())
        self.folder = directory

    def go(self, *values, first_step=0):
        self.best.on_train_begin()
        for step, value in enumerate(values, first_step + 1):
            self.best.model.weight = step
            self.validation.history.append((step, {"R@1": value}))
            self.best.on_train_batch_end(0, {"val_R@1": value})
        return self

    @property
    def record(self):
        return json.loads((self.folder / "best.json").read_text())

    @property
    def weight(self):
        return int((self.folder / "model" / "weight.txt").read_text())


def test_the_model_of_the_best_step_stays(tmp_path):
    run = _Run(tmp_path / "best").go(0.2, 0.5, 0.4)
    assert run.weight == 2
    assert run.record == {"metric": "R@1", "value": 0.5, "step": 2}
    assert (run.best.best, run.best.best_step) == (0.5, 2)


def test_an_equal_value_is_no_better_one(tmp_path):
    assert _Run(tmp_path / "best").go(0.5, 0.5).weight == 1


def test_steps_without_validation_save_nothing(tmp_path):
    run = _Run(tmp_path / "best").go()
    run.best.on_train_batch_end(0, {"loss": 1.0})
    assert not run.folder.exists()


def test_a_resumed_run_replaces_only_by_a_better_one(tmp_path):
    first = _Run(tmp_path / "best").go(0.5)
    second = _Run(tmp_path / "best")
    second.best.restore(json.loads(json.dumps(first.best.state())))
    assert second.go(0.4, first_step=10).weight == 1
    assert second.go(0.6, first_step=20).weight == 21


def test_a_lost_folder_is_told_and_filled_again(tmp_path, caplog):
    state = _Run(tmp_path / "best").go(0.5).best.state()
    run = _Run(tmp_path / "other")
    run.best.restore(state)
    assert "no longer in" in caplog.text
    assert run.go(0.4).record["value"] == 0.4


def test_another_runs_model_is_refused_before_training(tmp_path):
    _Run(tmp_path / "best").go(0.5)
    run = _Run(tmp_path / "best")
    with pytest.raises(OutputExistsError, match="overwrite=True"):
        run.go(0.9)
    assert run.weight == 1


def test_another_runs_model_is_replaced_if_asked(tmp_path):
    _Run(tmp_path / "best").go(0.5)
    assert _Run(tmp_path / "best", overwrite=True).go(0.1).weight == 1


def test_a_failed_save_leaves_the_former_best(tmp_path):
    run = _Run(tmp_path / "best").go(0.5)

    def fail(directory):
        directory.mkdir()
        raise OSError("No space left on device")

    run.best.model.save_to_preset = fail
    with pytest.raises(OSError, match="No space"):
        run.go(0.6, first_step=1)
    assert (run.weight, run.record["step"]) == (1, 1)
    assert [path.name for path in tmp_path.iterdir()] == ["best"]


def test_an_unmeasured_metric_is_refused(tmp_path):
    validation = types.SimpleNamespace(metrics=("R@1",), history=[])
    with pytest.raises(InvalidInputError, match=r"metric='MRR@10'"):
        BestModel(validation, tmp_path)


def test_a_wrong_order_of_callbacks_is_refused(tmp_path):
    run = _Run(tmp_path / "best").go()
    run.validation.history.append((1, {"R@1": 0.5}))
    # A step later, the weights are no longer those that were measured.
    with pytest.raises(InvalidInputError, match="one step late"):
        run.best.on_train_batch_end(1, {"loss": 1.0})


def test_a_state_of_another_metric_is_refused(tmp_path):
    run = _Run(tmp_path / "best")
    with pytest.raises(InvalidInputError, match="metric='MRR@10'"):
        run.best.restore({"metric": "MRR@10", "best": 0.5, "best_step": 1})
