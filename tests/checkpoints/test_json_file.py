"""Reading of JSON beside weights."""

import pytest

from tf_samtone.checkpoints._json_file import read_json, read_json_object
from tf_samtone.errors import CorruptFileError


def test_values_of_any_kind_are_read(tmp_path):
    path = tmp_path / "list.json"
    path.write_text('[1, {"a": "\u00e9"}]', encoding="utf-8")
    assert read_json(path) == [1, {"a": "\u00e9"}]


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"\xff\xfe", b"[" * 100_000],
    ids=["empty", "cut", "not UTF-8", "too deep"],
)
def test_what_is_no_json_is_refused(tmp_path, content):
    path = tmp_path / "broken.json"
    path.write_bytes(content)
    with pytest.raises(CorruptFileError, match=r"Expected JSON in .*broken"):
        read_json(path)


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(CorruptFileError, match="nowhere"):
        read_json_object(tmp_path / "nowhere.json")


@pytest.mark.parametrize("content", ["[]", "1", "null"])
def test_an_object_is_expected(tmp_path, content):
    path = tmp_path / "other.json"
    path.write_text(content)
    with pytest.raises(CorruptFileError, match="Expected a JSON object"):
        read_json_object(path)
