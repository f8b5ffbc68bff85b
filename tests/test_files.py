"""Atomic writes, checksums and manifests."""

import hashlib
import json
import os
import pathlib

import pytest

from tf_samtone import _files
from tf_samtone.errors import (
    CorruptFileError,
    InvalidInputError,
    MismatchError,
    OutputExistsError,
)


@pytest.fixture
def saved(tmp_path):
    """Return a folder of kind `thing` with two files."""
    folder = tmp_path / "saved"
    with _files.atomic_directory(folder) as temporary:
        (temporary / "inner").mkdir()
        (temporary / "inner" / "data.bin").write_bytes(b"\x00\x01")
        (temporary / "note.txt").write_text("hello")
        _files.write_manifest(
            temporary, kind="thing", format_version=2, fields={"dim": 3}
        )
    return folder


def read(folder, *, kind="thing", supported_version=2):
    return _files.read_manifest(
        folder, kind=kind, supported_version=supported_version
    )


def test_a_folder_appears_only_when_the_block_ends(tmp_path):
    final = tmp_path / "parent" / "out"
    with _files.atomic_directory(final) as temporary:
        (temporary / "a").write_text("1")
        assert not final.exists()

    assert (final / "a").read_text() == "1"


@pytest.mark.parametrize(
    "error", [RuntimeError, KeyboardInterrupt], ids=["error", "interrupt"]
)
def test_an_interrupted_block_leaves_nothing(tmp_path, error):
    with pytest.raises(error), _files.atomic_directory(tmp_path / "out") as f:
        (f / "a").write_text("1")
        raise error

    assert list(tmp_path.iterdir()) == []


def test_a_non_empty_folder_is_refused_before_the_block_runs(tmp_path):
    (tmp_path / "kept").write_text("precious")
    ran = []
    # An output folder that holds results must not be lost.
    with (
        pytest.raises(OutputExistsError, match="already holds files"),
        _files.atomic_directory(tmp_path),
    ):
        ran.append(True)

    assert (tmp_path / "kept").read_text() == "precious"
    assert ran == []


def test_an_empty_folder_is_used(tmp_path):
    final = tmp_path / "out"
    final.mkdir()
    with _files.atomic_directory(final) as temporary:
        (temporary / "a").write_text("1")

    assert os.listdir(final) == ["a"]


def test_a_file_in_the_way_is_refused_even_with_overwrite(tmp_path):
    (tmp_path / "out").write_text("file")
    # A folder cannot replace a file by accident.
    with (
        pytest.raises(OutputExistsError, match="is a file"),
        _files.atomic_directory(tmp_path / "out", overwrite=True),
    ):
        pass


def test_overwrite_replaces_the_whole_folder(tmp_path):
    final = tmp_path / "out"
    final.mkdir()
    (final / "old").write_text("0")
    with _files.atomic_directory(final, overwrite=True) as temporary:
        (temporary / "new").write_text("1")

    assert os.listdir(final) == ["new"]
    assert os.listdir(tmp_path) == ["out"]


def test_a_failing_overwrite_keeps_the_old_folder(tmp_path):
    final = tmp_path / "out"
    final.mkdir()
    (final / "old").write_text("0")
    with (
        pytest.raises(RuntimeError),
        _files.atomic_directory(final, overwrite=True),
    ):
        raise RuntimeError

    assert (final / "old").read_text() == "0"


def test_a_failing_last_rename_puts_the_old_folder_back(tmp_path, monkeypatch):
    final = tmp_path / "out"
    final.mkdir()
    (final / "old").write_text("0")
    rename = os.rename

    def fail_for_new(source, target):
        if ".tmp-" in str(source):
            raise OSError("disk gone")
        rename(source, target)

    monkeypatch.setattr(os, "rename", fail_for_new)
    with (
        pytest.raises(OSError, match="disk gone"),
        _files.atomic_directory(final, overwrite=True),
    ):
        pass

    assert (final / "old").read_text() == "0"
    assert os.listdir(tmp_path) == ["out"]


def test_a_folder_filled_by_someone_else_meanwhile_is_kept(tmp_path):
    final = tmp_path / "out"
    # The other process finished first; its result must survive.
    with (
        pytest.raises(OutputExistsError, match="already holds files"),
        _files.atomic_directory(final),
    ):
        final.mkdir()
        (final / "theirs").write_text("1")

    assert os.listdir(final) == ["theirs"]


def test_a_link_to_a_folder_is_followed(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "old").write_text("0")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with _files.atomic_directory(tmp_path / "link", overwrite=True) as folder:
        (folder / "new").write_text("1")

    assert os.listdir(tmp_path / "real") == ["new"]
    assert sorted(os.listdir(tmp_path)) == ["link", "real"]


def test_text_is_written_as_utf8_without_changing_line_ends(tmp_path):
    _files.atomic_write_text(tmp_path / "a.txt", "ü\r\n")

    assert (tmp_path / "a.txt").read_bytes() == b"\xc3\xbc\r\n"


def test_an_interrupted_file_write_keeps_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    path.write_text("old")

    def fail(descriptor):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        _files.atomic_write_text(path, "new")

    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_sha256_is_that_of_the_content(tmp_path):
    (tmp_path / "a").write_bytes(b"abc")

    expected = hashlib.sha256(b"abc").hexdigest()
    assert _files.sha256_of_file(tmp_path / "a") == expected


def test_a_manifest_returns_its_fields(saved):
    assert read(saved) == {"dim": 3}
    assert _files.manifest_kind(saved) == "thing"


def test_a_manifest_lists_every_other_file(saved):
    manifest = json.loads((saved / "manifest.json").read_text())

    assert manifest["files"] == {
        "inner/data.bin": {
            "bytes": 2,
            "sha256": hashlib.sha256(b"\x00\x01").hexdigest(),
        },
        "note.txt": {
            "bytes": 5,
            "sha256": hashlib.sha256(b"hello").hexdigest(),
        },
    }


def test_a_moved_folder_is_still_valid(saved, tmp_path):
    os.rename(saved, tmp_path / "moved")

    assert read(tmp_path / "moved") == {"dim": 3}


def test_one_changed_byte_is_found(saved):
    (saved / "inner" / "data.bin").write_bytes(b"\x00\x03")

    # The size is right; only the checksum shows the damage.
    with pytest.raises(CorruptFileError, match="checksum"):
        read(saved)


def test_a_truncated_file_is_found(saved):
    (saved / "note.txt").write_text("hell")

    # A copy that stopped early.
    with pytest.raises(CorruptFileError, match="Expected 5 bytes"):
        read(saved)


def test_a_missing_file_is_found(saved):
    (saved / "note.txt").unlink()

    # The manifest names it.
    with pytest.raises(CorruptFileError, match=r"note\.txt"):
        read(saved)


@pytest.mark.parametrize("name", ["x.pkl", "inner/x.PICKLE"])
def test_an_added_pickle_is_refused(saved, name):
    (saved / name).write_bytes(b"")

    # ScaNN would unpickle a file of the right name on load.
    with pytest.raises(CorruptFileError, match="Expected no pickle"):
        read(saved)


def test_a_pickle_is_not_saved(tmp_path):
    (tmp_path / "x.pkl").write_bytes(b"")

    # No pickle anywhere.
    with pytest.raises(InvalidInputError, match=r"x\.pkl"):
        _files.write_manifest(tmp_path, kind="a", format_version=1, fields={})


def test_a_harmless_extra_file_is_ignored(saved):
    (saved / "README").write_text("ours")

    assert read(saved) == {"dim": 3}


def test_an_edited_manifest_is_found(saved):
    path = saved / "manifest.json"
    path.write_text(path.read_text().replace('"dim": 3', '"dim": 4'))

    # The manifest has a checksum of its own.
    with pytest.raises(CorruptFileError, match="its own checksum"):
        read(saved)


@pytest.mark.parametrize(
    "content",
    [b"", b"[1]", b"{}", b"{nonsense", b"\xff\xfe"],
    ids=["empty", "list", "no_checksum", "no_json", "no_utf8"],
)
def test_a_damaged_manifest_is_found(saved, content):
    (saved / "manifest.json").write_bytes(content)

    # Whatever the damage, the message names the manifest.
    with pytest.raises(CorruptFileError, match="intact manifest"):
        read(saved)


@pytest.mark.parametrize("name", ["nowhere", "."], ids=["missing", "other"])
def test_a_folder_without_manifest_is_refused(tmp_path, name):
    # Not written by this library.
    with pytest.raises(CorruptFileError, match=r"manifest\.json"):
        read(pathlib.Path(tmp_path, name))


def test_another_kind_is_refused(saved):
    # A checkpoint is no index.
    with pytest.raises(MismatchError, match="kind='thing'"):
        read(saved, kind="index")


def test_a_newer_version_is_refused(saved):
    # An old library cannot know a later layout.
    with pytest.raises(MismatchError, match="format_version=2"):
        read(saved, supported_version=1)


def test_fields_are_read_without_the_other_files(saved):
    (saved / "note.txt").unlink()

    assert _files.manifest_fields(saved) == {"dim": 3}


def test_half_written_leftovers_are_deleted(tmp_path):
    (tmp_path / "kept").write_text("1")
    (tmp_path / ".out.tmp-0123456789ab").mkdir()
    (tmp_path / ".out.tmp-0123456789ab" / "half").write_text("0")
    (tmp_path / ".a.json.tmp-0123456789ab").write_text("0")

    _files.recover_leftovers(tmp_path)

    assert os.listdir(tmp_path) == ["kept"]


@pytest.mark.parametrize("replaced", [False, True], ids=["before", "after"])
def test_a_kill_around_the_last_rename_keeps_one_folder(tmp_path, replaced):
    # The old folder is moved aside, then the new one is renamed.
    (tmp_path / ".out.old-0123456789ab").mkdir()
    (tmp_path / ".out.old-0123456789ab" / "old").write_text("0")
    if replaced:
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "new").write_text("1")

    _files.recover_leftovers(tmp_path)

    assert os.listdir(tmp_path) == ["out"]
    assert os.listdir(tmp_path / "out") == ["new" if replaced else "old"]


def test_an_absent_folder_has_no_leftovers(tmp_path):
    _files.recover_leftovers(tmp_path / "absent")

    assert not (tmp_path / "absent").exists()
