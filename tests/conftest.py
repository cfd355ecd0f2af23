"""The `course` command, as tests call it in their own process."""

import sys

import pytest


@pytest.fixture
def course(monkeypatch, capsys):
    """Calls the `course` command in this process; returns (exit code, what it printed, what it printed as errors)."""
    from course_lib import cli

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["course", *arguments])
        with pytest.raises(SystemExit) as ending:
            cli.main()
        captured = capsys.readouterr()
        return ending.value.code or 0, captured.out, captured.err

    return call
