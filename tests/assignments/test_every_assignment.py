"""What holds for every assignment: its checks and its text. Its proof: test_whole_way."""

import contextlib
import functools
import io
import re
from types import SimpleNamespace

import nbformat
import pytest

from course_lib.classroom.assignments import NotPassed, check
from course_lib.data.place import course_folder
from course_lib.grading.alternatives import every_choice, slots
from course_lib.grading.folders import Folders
from course_lib.grading.judge import CALL_SECONDS, LOAD_SECONDS
from course_lib.grading.sandbox import Limits
from course_lib.grading.spec import load, read_assignment
from course_lib.grading.validation import visible_tasks
from course_lib.tasks import Draw, run_checks
from course_lib.tasks.wrong import made_by

BY_HAND = dict.fromkeys(("02", "03", "04", "06", "07", "08"), ["experiment", "in-your-own-words"])  # by a person
FOLDERS = Folders(root=course_folder() / "notebooks" / "assignments")
NUMBERS = sorted(path.name for path in (FOLDERS.root / "hidden").iterdir() if (path / "tasks.py").is_file())


@functools.cache
def read(number):
    """An assignment: its files, its notebook, what is hidden and what is shown of it."""
    files = read_assignment(FOLDERS.root, number)
    loaded = load(files)
    return SimpleNamespace(
        files=files,
        loaded=loaded,
        notebook=nbformat.reads(files.source_notebook.decode(), as_version=4),
        tables={table.name: table for table in loaded.assignment.tasks},
        shown=visible_tasks(number),
        releases=[files.chosen(choose) for choose in every_choice(files.source_notebook, files.place)],
        slots=slots(files.source_notebook, files.place),
    )


def tag(cell, name):
    return cell.metadata.get("nbgrader", {}).get(name)


every_assignment = pytest.mark.parametrize("number", NUMBERS)
every_table = pytest.mark.parametrize(
    ("number", "name"), [(number, name) for number in NUMBERS for name in read(number).tables]
)


# drawn ----------------------------------------------------------------------------------------------


@every_table
def test_sizes_and_numbers_are_drawn(number, name):
    table = read(number).tables[name]
    if table.cases:
        drawn = [str([case.inputs(Draw(seed)) for case in table.cases]) for seed in (1, 1, 2)]
        assert drawn[0] == drawn[1] != drawn[2]


# visible --------------------------------------------------------------------------------------------


@every_table
def test_what_is_shown_of_a_task_fits_its_table(number, name):
    table, shown = read(number).tables[name], read(number).shown[name]
    assert list(read(number).shown) == list(read(number).tables)
    assert (shown.asks, shown.title, shown.example) == (table.asks, table.title, table.example)
    if table.reference:
        assert run_checks(made_by(table), shown.all_checks).passed


UNSEEN = {  # slips that need more than numbers small enough for a calculation by hand
    "changes its input",
    "equal weights for a query that sees nothing",
    "features of the heads interleaved",
    "heads mixed up by a reshape",
    "NaN for a query that sees nothing",
    "padding multiplied by zero",
    "a ready-made function",
    "times rounded",
}


@pytest.mark.parametrize("number", ["03", "04", "05"])
def test_nearly_every_known_slip_fails_in_the_notebook_already(number):
    for name, table in read(number).tables.items():
        shown = read(number).shown[name].all_checks
        unseen = [
            mistake.name
            for mistake in table.mistakes
            if table.cases
            and mistake.ways
            and mistake.name not in UNSEEN
            and run_checks(made_by(table, mistake.ways[0]), shown, asks=table.asks).passed
        ]
        assert unseen == (["missing scale", "divided by d instead of its square root"] if name[0] == "G" else [])


@every_table
def test_the_released_cell_can_be_run_and_is_not_written_yet(number, name):
    known, names = read(number), {"__name__": "__main__"}
    for source in (*(cell.source for cell in known.loaded.cells if cell.kind == "setup"), known.loaded.stubs[name]):
        exec(source, names)
    with pytest.raises(NotPassed, match="not written yet"), contextlib.redirect_stdout(io.StringIO()):
        check(known.shown[name], names[name])


# written --------------------------------------------------------------------------------------------


@every_assignment
def test_the_notebook_is_valid_and_holds_no_output(number):
    notebook = read(number).notebook
    nbformat.validate(notebook)
    assert notebook.metadata.kernelspec.name == "python3"
    assert len({cell.id for cell in notebook.cells}) == len(notebook.cells)
    for cell in notebook.cells:
        assert cell.cell_type == "markdown" or (cell.outputs == [] and cell.execution_count is None)


@every_assignment
def test_each_task_has_a_statement_a_cell_to_fill_in_and_a_check(number):
    cells = read(number).notebook.cells
    order = [tag(cell, "grade_id") for cell in cells]
    for task in read(number).tables:
        start, behind = order.index(task), order.index(f"check-{task}")
        assert behind == start + 1 and "### BEGIN SOLUTION" in cells[start].source
        assert f'check(ASSIGNMENT["{task}"], {task})' in cells[behind].source


@every_assignment
def test_points_and_titles_in_the_text_are_those_of_the_tables_and_sum_to_a_hundred(number):
    for release in read(number).releases:
        _points_and_titles_fit(number, load(release), nbformat.reads(release.source_notebook.decode(), 4).cells)


def _points_and_titles_fit(number, loaded, cells):
    given = [*loaded.check_points.values(), *loaded.manual_cells.values()]
    headings = [cell.source.splitlines()[0] for cell in cells if cell.source.startswith("## ")]
    rows = re.findall(r"^\| (\d) \| (.+?) \| (\d+) \| (\d+) \|$", cells[0].source, re.MULTILINE)
    by_hand = BY_HAND.get(number, ["in-your-own-words"])
    assert sum(given) == 100 and [*loaded.manual_cells] == by_hand
    assert headings == [f"## {n} · {title} ({points} points)" for n, title, points, _ in rows]
    assert [int(points) for *_, points, _ in rows] == given
    assert 120 <= sum(int(minutes) for *_, minutes in rows) <= 180 and "**It takes** 2 to 3 hours" in cells[0].source
    assert [title for _, title, *_ in rows][: -len(by_hand)] == [task.title for task in loaded.assignment.tasks]


@every_assignment
def test_tasks_for_half_of_the_points_have_an_alternative(number):
    loaded = read(number).loaded
    worth = {task.name: loaded.check_points[task.name] for task in loaded.assignment.tasks}
    for slot, alternatives in read(number).slots.items():
        assert len(alternatives) >= 2, f"the slot {slot} has one task alone"
    firsts = set().union(*(alternatives[min(alternatives)] for alternatives in read(number).slots.values()))
    there = sum(points for name, points in worth.items() if name in firsts)
    assert there >= 50, f"{there:g} points have alternatives"


@every_assignment
def test_the_text_names_every_limit(number):
    cells = read(number).notebook.cells
    cell, call, memory = f"{LOAD_SECONDS:g} seconds", f"{CALL_SECONDS:g}", f"{Limits().memory >> 30} GB"
    (limits,) = re.findall(r"^\*\*Limits\.\*\* .+?(?=\n\n)", cells[0].source, re.MULTILINE | re.DOTALL)
    assert re.search(rf"a cell may take {cell}.+ a call .+ {call},.+ {memory}", limits.replace("\n", " "))
    text = "\n".join(cell.source for cell in cells).replace("\n", " ")
    for task in read(number).shown.values():
        assert task.seconds is None or f"the grader stops after {task.seconds:g}" in text.lower()


@every_assignment
def test_answers_need_only_what_the_first_cell_imports(number):
    sources = [  # of all that the grader keeps and runs
        cell.source
        for cell in read(number).notebook.cells
        if cell.cell_type == "code" and tag(cell, "grade_id") and not tag(cell, "grade")
    ]
    imports = re.findall(r"^(?:import|from) (\w+)", "\n".join(sources), re.MULTILINE)
    assert set(imports) <= {"collections", "einops", "math", "numpy", "torch"}
