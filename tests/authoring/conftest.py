"""Small notebooks to work on: each test plants its fault in a copy of one that keeps every rule."""

import base64
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from course_lib.authoring.lesson_rules import LESSON_PARTS, Lesson
from course_lib.authoring.notebooks import normalise, write_notebook
from course_lib.authoring.stamps import STAMP, make_stamp

PIXEL = base64.b64encode(b"a picture").decode()


def heading(part, text=""):
    return new_markdown_cell(f"## {part.capitalize()}\n\n{text}", metadata={"tags": [f"part:{part}"]})


def printing(source, text="1.25\n", **fields):
    return new_code_cell(source, outputs=[new_output("stream", name="stdout", text=text)], **fields)


def figure(alt):
    data = {"image/png": PIXEL, "text/plain": f"Figure: {alt}"}
    return new_output("display_data", data=data, metadata={"image/png": {"alt": alt}})


@pytest.fixture
def lesson(tmp_path):
    """A lesson that keeps every rule, as a build would leave it."""
    content = {
        "objectives": [],
        "idea": [new_code_cell("show(picture)", outputs=[figure("Words joined by lines")])],
        "implementation": [printing("show_source(attention)")],
        "experiment": [new_code_cell("".join(f"predict('{name}')\n" for name in "abcd")), printing("print(bleu)")],
        "widget": [new_code_cell("play()", metadata={"tags": ["widget"]})],
        "questions": [new_code_cell(f"quiz('question-{n}')") for n in range(8)],
        "exercises": [new_code_cell(f"exercise('{n}')\nclassroom.check('{n}', f)") for n in range(4)],
        "practice": [
            printing("print(clock())", metadata={"tags": ["nbval-ignore-output"]}),
            printing("claim(fast, 'It is fast')", text="✓ It is fast\n"),
        ],
    }
    notebook = new_notebook()
    for part in LESSON_PARTS:
        notebook.cells.append(heading(part, "It takes 75 minutes." if part == "objectives" else ""))
        notebook.cells += content.get(part, [])
    notebook.metadata["course"] = {"lesson": "05", "kind": "lesson", "minutes": 75, "at_least": {"widgets": 1}}
    return stored(notebook, tmp_path / "05_attention.ipynb")


def stored(notebook, path: Path) -> Lesson:
    """The notebook as a build of this very content would store it."""
    normalise(notebook)
    notebook.metadata[STAMP] = make_stamp(notebook)
    write_notebook(notebook, path)
    return Lesson(path=path, notebook=notebook)


def write_code(path: Path, *sources: str) -> Path:
    """A notebook without outputs that holds these code cells."""
    cells = [new_code_cell(source, id=f"cell{number}") for number, source in enumerate(sources)]
    nbformat.write(new_notebook(cells=cells), path)
    return path
