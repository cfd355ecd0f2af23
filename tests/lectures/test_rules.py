"""Every lesson that is taught keeps the rules of a lecture, and each rule can be broken."""

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from course_lib.commands.files import read_notebook
from course_lib.commands.lessons import lessons
from course_lib.lectures.rules import FORMULAS, lecture_problems, with_formula
from course_lib.lectures.story import compose

NOTES = "**Say.** " + "word " * 20
FIGURE = new_output("display_data", {"text/html": "<img alt='' src=''>", "text/plain": "Figure: Waves."})
STEPPER = new_output("display_data", {"text/html": '<div class="course-stepper"></div>', "text/plain": "A demo"})


@pytest.mark.parametrize("path", lessons(), ids=lambda path: path.stem)
def test_every_lecture_keeps_the_rules(path):
    assert lecture_problems(read_notebook(path)) == []


def lecture(full=90):
    """A small lecture that keeps every rule: 14 slides in 30 minutes, 28 in 60, 40 in 90, as far as it goes."""
    cells = []
    for number in range({30: 14, 60: 28, 90: 40}[full]):
        cell = new_code_cell("print(1)", outputs=[new_output("stream", name="stdout", text="1\n")])
        paths = [30, 60, 90] if number < 14 else [60, 90] if number < 28 else [90]
        paths = [path for path in paths if path <= full]
        text = "# A lecture" if number == 0 else f"## Slide {number}"
        minutes = 2.2 if number < 28 else 2.3
        cell.metadata["lecture"] = {"slides": [{"text": text, "notes": NOTES, "paths": paths, "minutes": minutes}]}
        cells.append(cell)
    return new_notebook(cells=cells)


def broken(number=1, cell=None, full=90, **fields):
    notebook = lecture(full)
    old = notebook.cells[number]
    if cell is not None:
        cell.metadata["lecture"] = old.metadata["lecture"]
        notebook.cells[number] = cell
    notebook.cells[number].metadata["lecture"]["slides"][0] |= fields
    return notebook


def shortened(full, left):
    notebook = lecture(full)
    notebook.cells = notebook.cells[:left]
    return notebook


@pytest.mark.parametrize(
    "notebook",
    [
        *map(lecture, (30, 60, 90)),
        new_notebook(cells=[new_markdown_cell("# No lecture")]),
        broken(30, notes=f"{NOTES} [Before](#/slide-29), [first](#slide-1)."),  # each path of it has these slides
    ],
)
def test_a_lecture_that_keeps_the_rules_or_is_none_has_no_problem(notebook):
    assert lecture_problems(nbformat.from_dict(notebook)) == []


def test_only_paths_that_are_offered_have_a_length_to_keep():
    notebook = lecture(60)
    for cell in notebook.cells[14:]:
        cell.metadata["lecture"]["slides"][0]["minutes"] = 1
    assert lecture_problems(notebook) == ["the slides of the lecture of 60 minutes take 44.8 minutes"]


@pytest.mark.parametrize(
    ("notebook", "sentence"),
    [
        (broken(minutes=20), "the lecture of 30 minutes take 48.6 minutes"),
        (broken(text="## Slide 2"), "2 slides have the name 'slide-2'"),
        (broken(0, text="## No title"), "opens with a title slide"),
        (broken(notes="Hello."), "'Slide 1' has notes of 1 words"),
        (broken(paths=[30, 60]), "'Slide 1' is not in the full lecture"),
        (broken(full=60, paths=[30]), "'Slide 1' is not in the full lecture"),
        (broken(0, full=60, paths=[60]), "opens with a title slide ('# ...') in every path"),
        (broken(cell=new_code_cell("x = 1\n" * 13), show=["code"]), "13 lines of code; 12"),
        (broken(cell=new_code_cell("x" * 61), show=["code"]), "a line of code of 61 characters; 60"),
        (
            broken(cell=new_code_cell("", outputs=[new_output("stream", text="\n" * 25 + "1")]), show=["text"]),
            "26 lines of output",
        ),
        (broken(cell=new_code_cell("", outputs=[FIGURE]), show=["figure"]), "a figure without alt text"),
        (broken(cell=new_code_cell("", outputs=[FIGURE]), show=["widget"]), "states no steps"),
        (
            broken(cell=new_code_cell("1", outputs=[STEPPER]), show=["widget", "code"]),
            "nothing but its heading stands beside it",
        ),
        (broken(notes=f"{NOTES} [Before](#/slide-30)."), "of 30 minutes links to 'slide-30', which is not in it"),
        (broken(show=["figure"]), "its cell has no such output"),
        (broken(minutes=0), "takes 0 minutes"),
        (shortened(90, 34), "lecture of 90 minutes has 34 slides; 35 to 45"),
        (shortened(60, 22), "lecture of 60 minutes has 22 slides; 23 to 30"),
        (shortened(30, 11), "lecture of 30 minutes has 11 slides; 12 to 15"),
    ],
)
def test_a_rule_that_is_broken_is_named(notebook, sentence):
    assert any(sentence in problem for problem in lecture_problems(nbformat.from_dict(notebook)))


def test_a_fifth_of_all_slides_show_a_formula():
    counts = {path.stem: with_formula(read_notebook(path)) for path in lessons()}
    shown, slides = (sum(column) for column in zip(*counts.values(), strict=True))
    assert shown >= FORMULAS * slides, counts


def test_a_formula_is_the_lessons_own_and_is_named_by_its_beginning():
    notebook = lecture(30)
    notebook.cells.append(new_markdown_cell("Then $h = W x$, and\n\n$$\ny = \\tanh(h)\n$$\n\n$$y' = 1 - y^2.$$"))
    slide = notebook.cells[1].metadata["lecture"]["slides"][0]
    slide["formula"] = ["h =", "y'"]
    cell = next(cell for cell in compose(notebook).cells if cell.source.startswith("## Slide 1\n"))
    assert cell.source == "## Slide 1\n\n$$h = W x$$\n\n$$y' = 1 - y^2$$" and with_formula(notebook) == (1, 14)
    slide["formula"] = ["y"]
    assert "2 formulas of the lesson begin with 'y', not one" in lecture_problems(notebook)[0]
