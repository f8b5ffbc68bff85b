"""`samtone-export`."""

import numpy as np
import tensorflow as tf

from tf_samtone.export.export_main import main


def test_it_writes_a_saved_model_of_the_preset(
    preset, shared_model, tmp_path, capsys
):
    output = tmp_path / "1"

    code = main(["export", f"--model={preset}", f"--output={output}"])

    assert code == 0
    assert "24 dimensions" in capsys.readouterr().out
    np.testing.assert_allclose(
        tf.saved_model.load(str(output))(["a whale"]),
        shared_model.encode_queries(["a whale"]),
        atol=1e-5,
    )


def test_a_model_that_is_not_there_is_one_line(tmp_path, capsys):
    arguments = [f"--model={tmp_path}/none", f"--output={tmp_path}/1"]

    assert main(["export", *arguments]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "save_to_preset" in error


def test_an_output_in_use_is_refused_unless_told_to_overwrite(
    preset, tmp_path, capsys
):
    (tmp_path / "old").write_text("old")
    arguments = ["export", f"--model={preset}", f"--output={tmp_path}"]

    assert main(arguments) == 1
    assert "already holds files" in capsys.readouterr().err
    assert main([*arguments, "--overwrite"]) == 0
    assert not (tmp_path / "old").exists()
