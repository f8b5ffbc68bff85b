"""The frame around the command lines."""

from absl import flags

from tf_samtone._command_line import resolved_flags, run_command
from tf_samtone.errors import DataError, TrainingInterrupted


def _define(values: flags.FlagValues) -> None:
    flags.DEFINE_string("data", None, "A folder.", flag_values=values)
    flags.DEFINE_integer(
        "k", 10, "How many.", lower_bound=1, flag_values=values
    )


def _run(*arguments, command=lambda values: None):
    return run_command("Does a thing.", _define, command, ["name", *arguments])


def test_a_command_that_succeeds_exits_with_zero():
    assert _run("--k=3") == 0


def test_the_command_receives_the_parsed_flags():
    received = []

    _run(
        "--k=3",
        "--data",
        "here",
        command=lambda values: received.append(resolved_flags(values)),
    )

    assert received == [{"data": "here", "k": 3}]


def test_an_error_of_the_library_becomes_one_line_without_traceback(capsys):
    def fail(values):
        raise DataError("Expected a line.\nReceived: none. Add one.")

    assert _run(command=fail) == 1
    expected = "name: Expected a line. Received: none. Add one.\n"
    assert capsys.readouterr().err == expected


def test_a_missing_file_becomes_one_line_without_traceback(capsys, tmp_path):
    assert _run(command=lambda values: (tmp_path / "no").read_text()) == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_a_run_that_can_be_resumed_has_an_exit_code_of_its_own(capsys):
    def stop(values):
        raise TrainingInterrupted("Received: SIGTERM.")

    # EX_TEMPFAIL of sysexits.h, for schedulers that start it again.
    assert _run(command=stop) == 75
    assert capsys.readouterr().err == "name: Received: SIGTERM.\n"


def test_an_unknown_flag_is_refused(capsys):
    assert _run("--kk=3") == 2
    assert "'kk'" in capsys.readouterr().err


def test_a_value_out_of_range_is_refused(capsys):
    assert _run("--k=0") == 2
    assert "--k=0" in capsys.readouterr().err


def test_a_stray_argument_is_refused_by_name(capsys):
    assert _run("stray") == 2
    assert "'stray'" in capsys.readouterr().err


def test_help_shows_the_usage_and_every_flag_with_its_default(capsys):
    assert _run("--help") == 0
    output = capsys.readouterr().out
    assert output.startswith("Does a thing.")
    assert "--data\n      A folder.\n" in output
    assert "How many. Default: 10." in output


def test_two_commands_in_one_process_do_not_share_flags():
    assert [_run("--k=3"), _run("--k=4")] == [0, 0]
    assert "k" not in flags.FLAGS


def test_a_command_chooses_its_exit_code():
    assert _run(command=lambda values: 1) == 1


def test_a_positional_argument_is_the_value_of_its_flag():
    received = []

    code = run_command(
        "Does a thing.",
        _define,
        lambda values: received.append(values.data),
        ["name", "here", "--k=3"],
        positional=("data",),
    )

    assert (code, received) == (0, ["here"])


def test_a_positional_argument_can_be_given_by_name():
    received = []

    run_command(
        "Does a thing.",
        _define,
        lambda values: received.append(values.data),
        ["name", "--data=here"],
        positional=("data",),
    )

    assert received == ["here"]


def test_a_missing_or_surplus_argument_is_a_usage_error(capsys):
    for arguments, error in (
        ([], "Expected DATA. Received: none"),
        (["a", "b"], "Expected DATA and flags only. Received: 'b'"),
        (["--data=a", "b"], "Received: 'b'"),
    ):
        code = run_command(
            "Does a thing.",
            _define,
            lambda values: None,
            ["name", *arguments],
            positional=("data",),
        )

        assert code == 2
        assert error in capsys.readouterr().err
