"""Verdicts as they lie in the course directory, and what is made of those that are not in order."""

import json

import pytest

from course_lib.grading.folders import Folders
from course_lib.grading.verdicts import is_trusted, read_verdict
from tests.grading.courses import NAME, verdict


@pytest.fixture
def put(tmp_path):
    """put(content): these bytes as Ada's verdict; returns the course directory."""
    folders = Folders(root=tmp_path)

    def write(content):
        place = folders.verdict("ada", NAME)
        place.parent.mkdir(parents=True)
        place.write_bytes(content)
        return folders

    return write


def test_a_verdict_is_read_as_it_was_written(put):
    assert read_verdict(put(json.dumps(verdict("ada")).encode()), "ada", NAME) == verdict("ada")


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"\xff", b"[]", b"null", json.dumps(verdict("ada", schema=2)).encode()],
    ids=["empty", "cut off", "no text", "a list", "nothing", "another schema"],
)
def test_what_is_no_verdict_is_none(put, content):
    assert read_verdict(put(content), "ada", NAME) is None


def test_where_there_is_no_verdict_it_is_none(tmp_path):
    assert read_verdict(Folders(root=tmp_path), "ada", NAME) is None


@pytest.mark.parametrize("sandbox", ["none: trusted students", "", None, "something new"])
def test_whatever_is_not_the_sandbox_counts_as_none(sandbox):
    assert is_trusted(verdict("ada", sandbox=sandbox))
    assert not is_trusted(verdict("ada", sandbox="bubblewrap")) and not is_trusted(None)
