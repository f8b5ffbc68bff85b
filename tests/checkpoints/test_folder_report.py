"""Tests of reports as text and as JSON values."""

from tf_samtone.checkpoints import FolderReport

REPORT = FolderReport(
    directory="here",
    kind="t5x",
    description="a checkpoint",
    loads_with="load('here')",
    facts={
        "parameters": 1234,
        "encoder": {"hidden_dim": 8, "gated": True},
        "query_prefix": "",
        "published_sizes": ["t5_base", "gtr_base"],
    },
    problems=("Expected a. Received: b.",),
)


def test_the_text_has_a_line_for_everything():
    assert str(REPORT).split("\n") == [
        "here",
        "  kind             t5x: a checkpoint",
        "  parameters       1,234",
        "  encoder          hidden_dim=8 gated=yes",
        "  query prefix     ''",
        "  published sizes  t5_base, gtr_base",
        "  load with        load('here')",
        "  problem          Expected a. Received: b.",
    ]


def test_the_text_says_so_if_there_is_no_problem():
    report = FolderReport(directory="here", kind="run", description="a run")

    assert str(report).endswith("\n  problems         none")


def test_no_fact_of_a_foreign_file_can_add_a_line_to_the_text():
    report = FolderReport(
        directory="here",
        kind="t5x",
        description="a checkpoint",
        facts={"query_prefix": "ask:\n  problems none", "a\nb": {"c\nd": "e"}},
    )

    assert "ask:\\n  problems none" in str(report)
    assert len(str(report).split("\n")) == 5


def test_the_dictionary_has_every_field_and_can_load():
    assert REPORT.to_dict() == {
        "directory": "here",
        "kind": "t5x",
        "description": "a checkpoint",
        "loads_with": "load('here')",
        "facts": REPORT.facts,
        "problems": ["Expected a. Received: b."],
        "can_load": False,
    }


def test_a_kind_without_a_loader_cannot_be_loaded():
    report = FolderReport(directory="here", kind="x", description="y")

    assert not report.can_load


def test_long_lines_are_wrapped_but_no_path_is_cut():
    path = "/a" * 60
    report = FolderReport(
        directory="here",
        kind="x",
        description="y",
        problems=(f"Expected a file. Received: {path} with none.",),
    )

    _, _, *lines = str(report).split("\n")

    assert lines == [
        "  problem          Expected a file. Received:",
        " " * 19 + path,
        " " * 19 + "with none.",
    ]
