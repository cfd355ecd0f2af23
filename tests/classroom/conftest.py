"""A page that catches what the classroom displays, with and without a kernel behind it."""

from types import SimpleNamespace

import pytest

from course_lib.classroom import output
from course_lib.classroom.output import WIDGET_VIEW
from course_lib.classroom.store import ProgressStore
from course_lib.training import progress


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """A fresh COURSE_HOME, and no display of progress left from another test."""
    monkeypatch.setenv("COURSE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(progress, "_registered", None)
    return tmp_path / "home"


@pytest.fixture
def page(monkeypatch):
    """The displays of a notebook with a kernel, in their order: dictionaries from MIME type to content."""
    shown = []
    monkeypatch.setattr(output, "get_ipython", lambda: SimpleNamespace(kernel=object()))
    monkeypatch.setattr(output, "display", lambda data, raw: shown.append(data))
    return shown


@pytest.fixture
def stored(page):
    """What a stored notebook keeps of the displays: all but the widgets."""
    return lambda: [{mime: text for mime, text in shown.items() if mime != WIDGET_VIEW} for shown in page]


@pytest.fixture
def record():
    """Read the record of an item as it is in the file."""
    return lambda kind, name, lesson="06": ProgressStore().entry(lesson, kind, name)
