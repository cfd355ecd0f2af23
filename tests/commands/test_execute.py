"""One execution of a notebook, as `course run` and a build make it."""

import sys

import pytest

from course_lib.commands.execute import execute_notebook
from course_lib.commands.files import code_cells, read_notebook
from tests.authoring.conftest import outputs_text, write_code


def test_a_run_uses_this_interpreter_the_notebooks_folder_and_inline_figures(tmp_path, monkeypatch):
    """Though another kernel is installed under the name, and the caller draws without a screen."""
    spec = tmp_path / "data" / "kernels" / "python3" / "kernel.json"
    spec.parent.mkdir(parents=True)
    spec.write_text('{"argv": ["false"], "display_name": "other", "language": "python"}')
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "data"))
    monkeypatch.setenv("MPLBACKEND", "Agg")
    figure = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()"
    path = write_code(tmp_path / "n.ipynb", "import os, sys", "print(sys.executable)", "print(os.getcwd())", figure)
    before, seen = path.read_bytes(), []
    report = execute_notebook(path, timeout=600, on_cell=lambda done, total: seen.append((done, total)))
    assert outputs_text(report.notebook)[:3] == ["", f"{sys.executable}\n", f"{tmp_path}\n"]
    assert "image/png" in code_cells(report.notebook)[3].outputs[0].data
    assert (report.error, report.cells, len(report.cell_seconds)) == (None, 4, 4)
    assert report.seconds > sum(report.cell_seconds) > 0
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert path.read_bytes() == before


def test_a_run_stops_at_the_first_cell_that_fails_and_says_where(tmp_path):
    path = write_code(tmp_path / "n.ipynb", "a = 1", "1 / 0", "print('never')")
    before = path.read_bytes()
    report = execute_notebook(path, timeout=600, write=True)
    assert report.error == "code cell 2 raised ZeroDivisionError: division by zero"
    assert report.cells == 1 and outputs_text(report.notebook)[2] == ""
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("code", "seconds", "said"),
    [
        ("import time\ntime.sleep(600)", 1, "code cell 1 took longer than 1 s"),
        ("import os\nos._exit(1)", 600, "the kernel died in code cell 1; it may have run out of memory"),
    ],
)
def test_a_cell_that_takes_too_long_and_a_kernel_that_dies_are_reported(tmp_path, code, seconds, said):
    assert execute_notebook(write_code(tmp_path / "n.ipynb", code), timeout=seconds).error == said


def test_a_run_is_written_only_on_request(tmp_path):
    path = write_code(tmp_path / "n.ipynb", "print('here')")
    execute_notebook(path, timeout=600, write=True)
    assert outputs_text(read_notebook(path)) == ["here\n"]


@pytest.mark.parametrize("content", [None, "not json", '{"cells": 3}'])
def test_a_file_that_is_no_notebook_gets_one_clear_sentence(tmp_path, content):
    path = tmp_path / "n.ipynb"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ValueError, match=r"n\.ipynb"):
        execute_notebook(path, timeout=600)
