"""A cell that stops shows a learner one sentence, or her own error, and none of the course's."""

import re

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

SETUP = """\
from course_lib.classroom import Page
from course_lib.tasks import Case, Task

def plus(x):
    return x + 1

numbers = Case(name="numbers", inputs=lambda draw: (draw(3),))
page = Page("06", tasks={"plus": Task(
    name="plus", title="Add one", asks="x", reference=plus, cases=(numbers,), hints=("+",))})
page.open()

def run(by, value):
    return by(value)"""
STOPS = {
    "kept": "def stop():\n    raise KeyboardInterrupt\n\npage.keep('model', stop)",
    "not kept": "raise KeyboardInterrupt",
    "own": """\
def my_plus(x):
    if isinstance(x, str):
        raise IndexError("a bug of mine")
    return x + 1

page.keep("own", run, by=page.use("plus", my_plus), value="text")""",
    "unwrapped": "def training():\n    raise IndexError('a bug of mine')\n\npage.keep('training', training)",
}


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """What each cell shows when it stops, as lines without colours."""
    cells = [new_code_cell(source) for source in (SETUP, *STOPS.values())]
    notebook = new_notebook(cells=cells)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COURSE_HOME", str(tmp_path_factory.mktemp("home")))
        NotebookClient(notebook, kernel_name="python3", allow_errors=True).execute()
    assert nbformat.validate(notebook) is None and not notebook.cells[0].outputs[-1].output_type == "error"
    errors = [cell.outputs[-1]["traceback"] for cell in notebook.cells[1:]]
    return dict(zip(STOPS, (re.sub(r"\x1b\[[\d;]*m", "", "\n".join(lines)) for lines in errors), strict=True))


@pytest.mark.parametrize("name", ["kept", "not kept"])
def test_an_interrupt_is_one_sentence(shown, name):
    assert shown[name].startswith("Interrupted: ") and "\n" not in shown[name]


def test_an_error_in_the_learners_function_is_shown_in_her_lines_alone(shown):
    assert shown["own"].startswith(
        "Your function 'my_plus', on which the lesson runs, stopped: IndexError: a bug of mine"
    )
    assert 'raise IndexError("a bug of mine")' in shown["own"] and shown["own"].endswith("IndexError: a bug of mine")
    assert "course_lib" not in shown["own"] and "During handling" not in shown["own"]


@pytest.mark.parametrize("name", ["own", "unwrapped"])
def test_no_error_of_the_course_stands_before_that_of_the_learner(shown, name):
    assert "FileNotFoundError" not in shown[name] and "exception" not in shown[name]
    assert shown[name].endswith("IndexError: a bug of mine")
