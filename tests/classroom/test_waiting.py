"""What runs shows a bar in its place on the page, and leaves nothing behind."""

from types import SimpleNamespace

import pytest

from course_lib.classroom import Page, waiting
from course_lib.training import progress


@pytest.fixture
def bars(monkeypatch):
    """One list for each display on the page: what it showed, one after the other."""
    shown = []

    def display(data, raw, display_id):
        history = [data["text/html"]]
        shown.append(history)
        return SimpleNamespace(update=lambda data, raw: history.append(data["text/html"]))

    monkeypatch.setattr(waiting, "display", display)
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_UPDATES", 0)
    monkeypatch.delenv("COURSE_PROGRESS", raising=False)
    return shown


def test_a_bar_is_redrawn_in_one_place_and_cleared_at_the_end(bars):
    line = waiting.notebook_line("training")
    assert bars == []  # nothing on the page before there is something to see
    line.update(1, 4)
    line.update(2, 4)
    line.close()
    assert len(bars) == 1 and 'value="1"' in bars[0][0] and 'value="2"' in bars[0][1] and bars[0][2] == ""


def test_an_open_lesson_shows_training_in_the_notebook(bars, page):
    Page("05").open()
    display = progress.start("training")
    display.update(1, 2)
    assert len(bars) == 1


def test_nothing_is_drawn_where_progress_is_turned_off(bars, page, monkeypatch):
    monkeypatch.setenv("COURSE_PROGRESS", "off")
    Page("05").open()
    progress.start("training").update(1, 2)
    assert bars == []
