import io
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from course_lib.training import FitConfig, fit, progress
from course_lib.training.progress import NotebookLine, Silent, TerminalLine, start, use, using


@pytest.fixture(autouse=True)
def clean_slate(monkeypatch):
    monkeypatch.delenv("COURSE_PROGRESS", raising=False)
    use(None)
    yield
    use(None)


@pytest.fixture
def clock(monkeypatch):
    class Clock:
        now = 1000.0

        def monotonic(self):
            return self.now

    clock = Clock()
    monkeypatch.setattr(progress, "time", clock)
    return clock


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_nothing_is_drawn_where_nobody_looks(monkeypatch, capfd):
    shown = []
    assert isinstance(start("training"), Silent)  # pytest's stderr is no terminal
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert isinstance(start("training"), TerminalLine)
    use(lambda title: NotebookLine(title, shown.append))
    assert isinstance(start("training"), NotebookLine)
    monkeypatch.setenv("COURSE_PROGRESS", "off")
    display = start("training")
    assert isinstance(display, Silent)
    display.update(1, 2)
    display.close()
    assert shown == [] and sys.stderr.getvalue() == "" and capfd.readouterr() == ("", "")


def test_a_silent_training_prints_nothing(capfd):
    fit(nn.Linear(2, 1), lambda step: torch.ones(3, 2), lambda m, b: m(b).mean(), config=FitConfig(steps=3))
    assert capfd.readouterr() == ("", "")


def test_at_most_ten_updates_a_second_are_drawn(clock):
    shown = []
    display = NotebookLine("training", shown.append)
    for step in range(1, 1001):  # ten seconds
        clock.now += 0.01
        display.update(step, 1000)
    assert 90 <= len(shown) <= 101


def test_a_terminal_line_is_redrawn_in_place_and_wiped(clock, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    terminal = Terminal()
    display = TerminalLine("training", terminal)
    display.update(1, 30, loss=2.5)
    clock.now += 10
    display.update(11, 30, loss=1.25)
    first, second = terminal.getvalue().split("\r")[1:]
    assert first == "training · 1/30 · loss 2.5"
    assert second.rstrip() == "training · 11/30 · loss 1.25 · 19 s left"
    clock.now += 10
    display.update(12, 30)
    assert len(terminal.getvalue().split("\r")[-1]) == len(second)  # the longer line before is covered
    display.close()
    display.close()
    assert terminal.getvalue().split("\r")[-2].strip() == "" and terminal.getvalue().endswith("\r")


def test_a_narrow_terminal_never_wraps(clock, monkeypatch):
    monkeypatch.setenv("COLUMNS", "20")
    terminal = Terminal()
    display = TerminalLine("a long title of a training", terminal)
    for step in (1, 2):
        clock.now += 1
        display.update(step, 3)
    assert all(len(line) <= 19 for line in terminal.getvalue().split("\r"))


def test_a_notebook_line_is_html_and_clears_itself():
    shown = []
    display = NotebookLine("a < b", shown.append)
    display.update(1, 4, loss=0.5)
    display.close()
    assert '<progress value="1" max="4" aria-label="a &lt; b">' in shown[0]
    assert "a &lt; b · 1/4 · loss 0.5" in shown[0] and shown[1:] == [""]


def test_a_notebook_line_that_never_showed_anything_clears_nothing():
    shown = []
    NotebookLine("training", shown.append).close()
    assert shown == []


def test_a_resumed_run_estimates_from_where_it_went_on(clock):
    shown = []
    display = NotebookLine("training", shown.append)
    display.update(500, 1000)
    clock.now += 10
    display.update(600, 1000)
    assert shown[1].endswith("600/1000 · 40 s left")
    clock.now += 10
    display.update(600.0, 1000)
    assert shown[2].endswith("1 min 20 s left")


def test_a_display_for_one_block_gives_way_afterwards():
    use(lambda title: NotebookLine(title, print))
    with using(Silent):
        assert isinstance(start("inside"), Silent)
    assert isinstance(start("outside"), NotebookLine)


def test_the_display_is_closed_when_the_training_fails():
    shown = []
    display = NotebookLine("training", shown.append)

    def loss(model, batch):
        if shown:
            raise KeyError("a fault of the learner's")
        return model(batch).mean()

    with pytest.raises(KeyError):
        fit(nn.Linear(2, 1), lambda step: torch.ones(3, 2), loss, config=FitConfig(steps=9), progress=display)
    assert shown[-1] == ""


@pytest.mark.needs("linux")
def test_a_script_in_a_real_terminal_shows_a_line_and_leaves_none():
    code = """
from course_lib.training.progress import start
display = start("training")
display.update(1, 2, loss=0.5)
display.close()
"""
    main, terminal = pty.openpty()
    environment = {k: v for k, v in os.environ.items() if k != "COURSE_PROGRESS"} | {"COLUMNS": "60"}
    root = Path(__file__).parents[2]
    subprocess.run([sys.executable, "-c", code], stderr=terminal, env=environment, cwd=root, check=True)
    os.close(terminal)
    text = os.read(main, 1000).decode()
    os.close(main)
    assert "training · 1/2 · loss 0.5" in text and text.endswith("\r")


def test_the_training_floor_does_not_import_the_notebooks_tools():
    code = "import sys, course_lib.training.parallel; print({'IPython', 'ipywidgets'} & set(sys.modules))"
    root = Path(__file__).parents[2]
    result = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert result.stdout == "set()\n"
