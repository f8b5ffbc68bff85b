"""Folders that are no index."""

import pytest

from tf_samtone import _files
from tf_samtone.errors import CorruptFileError, MismatchError
from tf_samtone.retrieval import load_index


def test_a_folder_of_another_kind_is_refused(tmp_path):
    _files.write_manifest(
        tmp_path, kind="checkpoint", format_version=1, fields={}
    )

    with pytest.raises(MismatchError, match="exact_index.*'checkpoint'"):
        load_index(tmp_path)


def test_a_missing_folder_is_refused(tmp_path):
    with pytest.raises(CorruptFileError, match="nowhere"):
        load_index(tmp_path / "nowhere")
