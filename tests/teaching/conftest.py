"""The `course` command, as the tests of a class's papers call it."""

import sys

import pytest

from course_lib import cli


@pytest.fixture
def course(monkeypatch, capsys):
    """Calls the `course` command; returns (exit code, output, errors)."""

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["course", *arguments])
        with pytest.raises(SystemExit) as ending:
            cli.main()
        captured = capsys.readouterr()
        return ending.value.code or 0, captured.out, captured.err

    return call
