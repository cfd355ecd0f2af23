"""Small notebooks to work on: each test plants its fault in a copy of one that keeps every rule."""

import base64
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from course_lib.authoring.lesson_rules import Lesson
from course_lib.authoring.notebooks import normalise, write_notebook
from course_lib.authoring.stamps import STAMP, make_stamp
from course_lib.classroom.page import Number, Prediction, Quiz, Section
from course_lib.commands.files import code_cells

PIXEL = base64.b64encode(b"a picture").decode()


def playground():
    """Stands for one whose module states its goals with Goal("...", reached)."""


def small_page():
    """What lesson 05's page would be, were it as small as its notebook here."""
    task = SimpleNamespace(minutes=20)
    return SimpleNamespace(
        sections=(
            Section("Whole game", 3, holds=("translator",)),
            Section("Prediction", 7, holds=("bleu", "length", "heads")),
            Section("By hand", 12, holds=("axis", "sum", "bug", "shape", "root")),
            Section("Write", 20, holds=("softmax", "attention", "split")),
            Section("Train", 13),
            Section("Look inside", 15, holds=("masks",)),
            Section("Card", 5),
            Section("More", 15, holds=("positions",), optional=True),
        ),
        quizzes={name: Quiz("Which?", {"this": "Yes."}, answer=0) for name in ("axis", "shape")}
        | {name: Number("How much?", answer=1) for name in ("sum", "root")}
        | {"bug": Quiz("Where?", {"here": "Yes."}, answer=0, kind="bug")},
        predictions={name: Prediction("How much?", low=0, high=9) for name in ("bleu", "length", "heads")},
        results={name: None for name in ("bleu", "length")},
        tasks={name: task for name in ("softmax", "attention", "split", "positions")},
        playgrounds={"translator": playground, "masks": playground},
    )


TITLES = ("Whole game", "Prediction", "By hand", "Write", "Train", "Look inside", "Card")


def heading(section, text=""):
    title = "More" if section == "optional" else f"{section} · {TITLES[section - 1]}"
    return new_markdown_cell(f"## {title}\n\n{text}", metadata={"tags": [f"section:{section}"]})


def printing(source, text="1.25\n", **fields):
    return new_code_cell(source, outputs=[new_output("stream", name="stdout", text=text)], **fields)


def showing(source, plain, **fields):
    return new_code_cell(source, outputs=[new_output("display_data", data={"text/plain": plain})], **fields)


def figure(alt):
    data = {"image/png": PIXEL, "text/plain": f"Figure: {alt}"}
    return new_output("display_data", data=data, metadata={"image/png": {"alt": alt}})


def asking(names):
    return [new_code_cell(f'page.exercise("{name}")\npage.check("{name}", f)') for name in names]


@pytest.fixture
def lesson(tmp_path, monkeypatch):
    """A lesson that keeps every rule, as a build would leave it."""
    page = small_page()
    cells = [
        new_code_cell("from course_lib.lessons.lesson_05 import page\n\npage.open()"),
        heading(1),
        new_code_cell('page.play("translator", model)'),
        heading(2),
        *(new_code_cell(f'page.predict("{name}")') for name in page.predictions),
        heading(3),
        *(new_code_cell(f'page.quiz("{name}")') for name in page.quizzes),
        heading(4),
        *asking(["softmax", "attention", "split"]),
        new_code_cell('attend = page.use("attention", my_attention)'),
        showing("show_source(attention)", "# course_lib.functional.attention\ndef attention():\n    pass"),
        heading(5),
        showing('page.result("bleu", scores)', "Figure: two lines\n✓ Attention stays\n✓ The other falls\n"),
        printing("print(clock())", metadata={"tags": ["nbval-ignore-output"]}),
        showing('page.result("length", scores)', "Figure: bars\n✓ It holds\n"),
        heading(6),
        new_code_cell('page.play("masks")'),
        heading(7),
        new_code_cell("page.close()"),
        heading("optional"),
        *asking(["positions"]),
    ]
    notebook = new_notebook(cells=cells)
    notebook.metadata["course"] = {"lesson": "05", "kind": "lesson"}
    module = ModuleType("course_lib.lessons.lesson_05")
    module.page = page
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return stored(Lesson(path=tmp_path / "05_attention.ipynb", notebook=notebook, page=page))


def stored(lesson: Lesson) -> Lesson:
    """The lesson as a build of this very content would store it."""
    normalise(lesson.notebook)
    lesson.notebook.metadata[STAMP] = make_stamp(lesson.notebook)
    write_notebook(lesson.notebook, lesson.path)
    return Lesson(path=lesson.path, notebook=lesson.notebook, page=lesson.page)


def write_code(path: Path, *sources: str) -> Path:
    """A notebook without outputs that holds these code cells."""
    cells = [new_code_cell(source, id=f"cell{number}") for number, source in enumerate(sources)]
    nbformat.write(new_notebook(cells=cells), path)
    return path


def outputs_text(notebook):
    """What each code cell printed."""
    return ["".join(o.get("text", "") for o in cell.outputs) for cell in code_cells(notebook)]
