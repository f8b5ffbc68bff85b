"""`samtone-inspect`."""

import json

from tf_samtone.checkpoints import inspect_folder
from tf_samtone.export.inspect_main import main


def test_it_prints_the_report_of_a_folder(preset, capsys):
    assert main(["inspect", str(preset)]) == 0

    assert capsys.readouterr().out == f"{inspect_folder(preset)}\n"


def test_it_prints_one_json_object(preset, capsys):
    assert main(["inspect", f"--directory={preset}", "--json"]) == 0

    printed = json.loads(capsys.readouterr().out)
    assert printed == inspect_folder(preset).to_dict()
    assert printed["facts"]["architecture"] == "sde"


def test_a_folder_with_problems_exits_with_one(tmp_path, capsys):
    assert main(["inspect", str(tmp_path)]) == 1

    assert "problem  " in capsys.readouterr().out


def test_a_missing_folder_exits_with_one_line(tmp_path, capsys):
    assert main(["inspect", str(tmp_path / "absent")]) == 1

    assert "which is absent" in capsys.readouterr().err


def test_no_folder_at_all_is_a_usage_error(capsys):
    assert main(["inspect"]) == 2

    assert "Expected DIRECTORY" in capsys.readouterr().err
