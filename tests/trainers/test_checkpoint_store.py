"""Tests of folders of checkpoints."""

import errno
import logging
import os

import numpy as np
import pytest
from safetensors import SafetensorError

from tf_samtone.errors import CorruptFileError, TrainingError
from tf_samtone.trainers import checkpoint_store
from tf_samtone.trainers.checkpoint_store import CheckpointStore


def tensors(value):
    return {
        "model/kernel": np.full((2, 3), value, np.float32),
        "model/other/kernel#2": np.arange(4, dtype=np.float32),
        "optimizer/0000": np.array(value, np.int64),
    }


@pytest.fixture
def store(tmp_path):
    return CheckpointStore(tmp_path / "checkpoints", keep=2)


def names(store):
    return sorted(os.listdir(store.directory))


def test_what_was_saved_is_read(store):
    path = store.save(500, tensors(1), {"position": {"step": 3}})

    found = store.latest()
    assert (found.step, found.path, found.state) == (
        500,
        path,
        {"position": {"step": 3}},
    )
    assert path.name == "step-00000500"
    for name, expected in tensors(1).items():
        np.testing.assert_array_equal(found.tensors.pop(name), expected)
    assert found.tensors == {}


def test_dtypes_and_scalar_shapes_are_kept(store):
    store.save(1, {"a/x": np.array(2, np.int64)}, {})

    array = store.latest().tensors["a/x"]
    assert (array.dtype, array.shape) == (np.int64, ())


def test_memory_that_is_not_contiguous_is_saved_by_value(store):
    transposed = np.arange(6, dtype=np.float32).reshape(2, 3).T
    store.save(1, {"a/x": transposed}, {})

    np.testing.assert_array_equal(store.latest().tensors["a/x"], transposed)


def test_an_absent_folder_has_no_checkpoint(store):
    assert store.latest() is None


def test_the_newest_are_kept(store):
    for step in (1, 2, 3, 4):
        store.save(step, tensors(step), {})

    assert names(store) == ["step-00000003", "step-00000004"]


def test_the_best_is_kept_however_old(store):
    for step, metric in ((1, 0.1), (2, 0.5), (3, 0.5), (4, None), (5, 0.2)):
        store.save(step, tensors(step), {}, metric=metric)

    assert names(store) == ["step-00000002", "step-00000004", "step-00000005"]


def test_old_ones_are_deleted_after_the_new_one_is_complete(store, monkeypatch):
    store.keep = 1
    store.save(1, tensors(1), {})
    seen = []
    rotate = store._rotate
    monkeypatch.setattr(
        store, "_rotate", lambda: (seen.append(names(store)), rotate())
    )
    store.save(2, tensors(2), {})

    assert seen == [["step-00000001", "step-00000002"]]
    assert names(store) == ["step-00000002"]


def flip_a_byte(folder):
    path = folder / "model.safetensors"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


def truncate(folder):
    path = folder / "optimizer.safetensors"
    path.write_bytes(path.read_bytes()[:-3])


@pytest.mark.parametrize(
    "damage",
    [
        flip_a_byte,
        truncate,
        lambda folder: (folder / "state.json").unlink(),
        lambda folder: (folder / "manifest.json").unlink(),
        lambda folder: (folder / "manifest.json").write_text(""),
    ],
    ids=["flipped", "truncated", "state", "manifest", "empty_manifest"],
)
def test_a_damaged_newest_one_falls_back_and_says_so(store, damage, caplog):
    good = store.save(1, tensors(1), {})
    bad = store.save(2, tensors(2), {})
    damage(bad)

    with caplog.at_level(logging.WARNING, "tf_samtone"):
        found = store.latest()

    assert found.step == 1
    assert str(bad) in caplog.text
    assert str(good) in caplog.text


def test_a_damaged_one_does_not_take_the_place_of_a_good_one(store):
    store.save(1, tensors(1), {})
    truncate(store.save(4, tensors(4), {}))
    store.latest()
    assert names(store) == ["damaged-step-00000004", "step-00000001"]

    store.save(2, tensors(2), {})

    assert names(store) == ["step-00000001", "step-00000002"]


def test_nothing_intact_is_an_error_and_nothing_is_renamed(store):
    truncate(store.save(1, tensors(1), {}))

    # Starting anew unasked would throw away a long run.
    with pytest.raises(CorruptFileError, match="delete it to train from"):
        store.latest()
    assert names(store) == ["step-00000001"]


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        SafetensorError("I/O error: No space left on device (os error 28)"),
    ],
    ids=["python", "safetensors"],
)
def test_a_full_disk_leaves_the_last_good_one(store, monkeypatch, error):
    store.save(1, tensors(1), {})

    def fail(arrays, path):
        path.write_bytes(b"half")
        raise error

    monkeypatch.setattr(checkpoint_store, "save_file", fail)
    with pytest.raises(TrainingError) as caught:
        store.save(2, tensors(2), {})

    message = str(caught.value)
    assert "No space left on device" in message
    assert "the last good one is step-00000001" in message
    assert names(store) == ["step-00000001"]
    assert store.latest().step == 1


def test_leftovers_of_a_killed_process_are_deleted(store):
    store.save(1, tensors(1), {})
    leftover = store.directory / ".step-00000002.tmp-0123456789ab"
    leftover.mkdir()
    (leftover / "model.safetensors").write_bytes(b"half")

    store.recover()

    assert names(store) == ["step-00000001"]


def test_the_same_step_is_replaced(store):
    store.save(1, tensors(1), {})
    store.save(1, tensors(7), {})

    assert store.latest().tensors["optimizer/0000"] == 7
    assert names(store) == ["step-00000001"]


def test_files_of_others_are_left_alone(store):
    store.save(1, tensors(1), {})
    (store.directory / "step-00000002-mine").mkdir()
    for step in (3, 4):
        store.save(step, tensors(step), {})

    assert "step-00000002-mine" in names(store)
