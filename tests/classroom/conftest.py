"""A page that catches what the classroom displays, with and without a kernel behind it."""

from types import SimpleNamespace

import pytest

from course_lib.classroom import output, session


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """A fresh COURSE_HOME, and no lesson open."""
    monkeypatch.setenv("COURSE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(session, "_session", None)
    return tmp_path / "home"


@pytest.fixture
def page(monkeypatch):
    """The displays of a notebook with a kernel, in their order: dictionaries from MIME type to content."""
    shown = []
    monkeypatch.setattr(output, "get_ipython", lambda: SimpleNamespace(kernel=object()))
    monkeypatch.setattr(output, "display", lambda data, raw: shown.append(data))
    return shown


@pytest.fixture
def item(page):
    """Find a quiz, prediction or exercise of the open lesson."""
    return lambda kind, name: session.current_session().items[kind, name]


@pytest.fixture
def record():
    """Read the record of a quiz, prediction or exercise as it is in the file."""
    return lambda kind, name: session.current_session().entry(kind, name)
