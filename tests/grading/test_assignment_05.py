"""Assignment 05: the reference earns everything, the release nothing, each known-wrong answer what it deserves."""

import contextlib
import io
import json
import re

import nbformat
import pytest
from nbclient import NotebookClient

from course_lib.classroom.assignments import NotPassed, check
from course_lib.data.place import course_folder
from course_lib.grading.folders import Folders
from course_lib.grading.intake import Submission
from course_lib.grading.judge import GRADED, judge
from course_lib.grading.prove import KEYS, examine, gaps, read_wrong_solutions, trials
from course_lib.grading.spec import load, read_assignment
from course_lib.grading.stripped import student_version
from course_lib.grading.tables import made_by
from course_lib.grading.validation import KEY
from course_lib.grading.visible import visible_files, visible_tasks
from course_lib.tasks import Draw, run_checks

FOLDERS = Folders(root=course_folder() / "notebooks" / "assignments")
FILES = read_assignment(FOLDERS.root, "05")
LOADED = load(FILES)
TABLES = {table.name: table for table in LOADED.assignment.tables}
WRONG = read_wrong_solutions(FOLDERS, "05")
REFERENCE, RELEASE, *MISTAKES = trials(LOADED, WRONG)
NOTEBOOK = nbformat.reads(FILES.source_notebook.decode(), as_version=4)
TASKS = [task.name for task in LOADED.assignment.tasks]


def tag(cell, name):
    return cell.metadata.get("nbgrader", {}).get(name)


def run(*answers):
    """The names that the notebook's own cells and these answers define."""
    names = {"__name__": "__main__"}
    for source in (*(cell.source for cell in LOADED.cells if cell.kind == "setup"), *answers):
        exec(source, names)
    return names


# judged ---------------------------------------------------------------------------------------------


@pytest.mark.needs("sandbox")
@pytest.mark.parametrize("trial", MISTAKES, ids=lambda trial: f"{trial.task}: {trial.name}")
def test_a_wrong_answer_fails_the_checks_that_it_should(trial, zygote):
    assert examine(trial, KEYS[0], FILES, zygote).deviations == ()


@pytest.mark.needs("sandbox")
@pytest.mark.parametrize("key", KEYS, ids=["first inputs", "second inputs", "third inputs"])
def test_the_reference_earns_all_points(key, zygote):
    outcome = examine(REFERENCE, key, FILES, zygote)
    assert (outcome.earned, outcome.possible, outcome.deviations) == (90, 90, ())


@pytest.mark.needs("sandbox")
def test_the_release_earns_nothing(zygote):
    outcome = examine(RELEASE, KEYS[0], FILES, zygote)
    assert (outcome.earned, outcome.possible, outcome.deviations) == (0, 90, ())


def test_every_mistake_of_every_table_costs_points_and_is_named():
    assert gaps(LOADED, WRONG) == []


# visible --------------------------------------------------------------------------------------------


def test_what_is_shown_of_a_task_fits_its_table():
    shown = visible_tasks("05")
    assert list(shown) == TASKS
    for name, table in TABLES.items():
        assert (shown[name].asks, shown[name].title, shown[name].example) == (table.asks, table.title, table.example)
        if table.reference:
            assert run_checks(made_by(table), shown[name].all_checks).passed


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"activation": "none"}, {"read": "U h"}),
        ({"joined": "swapped"}, {"masking": "zeroed"}),
        ({"axis": -2}, {"activation": "outside"}),
    ],
)
def test_two_mistakes_are_named_together(first, second):
    table = TABLES["additive_attention"]
    told = {name for check in table.all_checks for name in told_by(table, check, **first, **second)}
    for knobs in (first, second):
        assert {known.name for known in table.mistakes if tuple(knobs.items()) in known.ways} <= told


def told_by(table, check, **knobs):
    return run_checks(made_by(table, **knobs), [check], asks=table.asks).misconceptions


def test_a_mistake_costs_only_where_it_is_asked_for():
    table = TABLES["additive_attention"]
    contexts, hidden, nothing, *_ = table.all_checks
    assert told_by(table, contexts, activation="none") == ["missing tanh"]
    assert told_by(table, hidden, activation="none") == told_by(table, nothing, activation="none") == []
    assert told_by(table, hidden, activation="none", masking="after") == ["mask after the softmax"]
    assert told_by(table, nothing, activation="none", blind="nan") == ["NaN for a query that sees nothing"]


@pytest.mark.parametrize("name", [name for name, table in TABLES.items() if table.cases])
def test_sizes_and_numbers_are_drawn(name):
    def drawn(seed):
        return [case.inputs(Draw(seed)) for case in TABLES[name].cases]

    assert str(drawn(1)) == str(drawn(1)) != str(drawn(2))
    shapes = {
        str([getattr(part, "shape", 0) for part in TABLES[name].draw(None, Draw(seed)).args]) for seed in range(9)
    }
    assert len(shapes) > 5 or name == "alignment_error_rate"


@pytest.fixture(scope="module")
def visible_checks_as_files():
    """What `course assign validate` gives to the judge in place of the hidden checks."""
    released = nbformat.writes(student_version(FILES.source_notebook, "source"))
    return visible_files("05", FILES.notebook, released.encode())


def validated(answers, files, zygote):
    """What the visible checks find in each of these answers when the judge runs them in the sandbox."""
    submission = Submission(student="ada", assignment="05", sha256="0" * 64, answers=answers)
    verdict = judge(submission, files, key=KEY, zygote=zygote)
    assert verdict["status"] == GRADED
    checked = {name: verdict["tasks"][name]["checks"] for name in answers}
    return {name: [found for check in checks for found in check["findings"]] for name, checks in checked.items()}


@pytest.mark.needs("sandbox")
def test_validate_finds_nothing_in_the_reference(visible_checks_as_files, zygote):
    assert validated(REFERENCE.answers, visible_checks_as_files, zygote) == {name: [] for name in TASKS}


@pytest.mark.needs("sandbox")
def test_validate_finds_what_the_example_shows(visible_checks_as_files, zygote):
    wrong = {
        trial.task: trial.answers[trial.task]
        for trial in MISTAKES
        if trial.name in ("always zero", "zeros of the right shape")
    }
    found = validated(wrong, visible_checks_as_files, zygote)
    assert len(wrong) == 4 and {name: found[name][0]["misconception"] for name in wrong} == dict.fromkeys(
        wrong, "another result than by hand"
    )


@pytest.mark.parametrize("task", TASKS)
def test_the_released_cell_can_be_run_and_is_not_written_yet(task):
    with pytest.raises(NotPassed, match="not written yet"), contextlib.redirect_stdout(io.StringIO()):
        check(visible_tasks("05")[task], run(LOADED.stubs[task])[task])


def test_the_source_notebook_passes_its_own_checks(tmp_path):
    notebook = nbformat.reads(FILES.source_notebook.decode(), as_version=4)
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [json.dumps(cell.outputs) for cell in notebook.cells if tag(cell, "grade") and cell.cell_type == "code"]
    assert len(shown) == len(TASKS) and all("All right" in text for text in shown)


# written --------------------------------------------------------------------------------------------


def test_the_notebook_is_valid_and_holds_no_output():
    nbformat.validate(NOTEBOOK)
    assert NOTEBOOK.metadata.kernelspec.name == "python3"
    ids = [cell.id for cell in NOTEBOOK.cells]
    assert len(set(ids)) == len(ids)
    for cell in NOTEBOOK.cells:
        assert cell.cell_type == "markdown" or (cell.outputs == [] and cell.execution_count is None)


def test_each_task_has_a_statement_with_an_example_a_cell_to_fill_in_and_a_check():
    order = [tag(cell, "grade_id") for cell in NOTEBOOK.cells]
    for task in TASKS:
        start, check = order.index(task), order.index(f"check-{task}")
        assert check == start + 1 and "### BEGIN SOLUTION" in NOTEBOOK.cells[start].source
        assert f'check(ASSIGNMENT["{task}"], {task})' in NOTEBOOK.cells[check].source
        words = [cell.source for cell in NOTEBOOK.cells[:start] if cell.source.startswith("## ")][-1]
        assert "**By hand.**" in words or "{3: 5, 0: 2, 6: 2, 1: 7, 4: 0}" in words


def test_only_cells_to_fill_in_can_be_changed():
    for cell in NOTEBOOK.cells:
        if tag(cell, "grade_id"):
            assert tag(cell, "locked") != tag(cell, "solution")
        else:
            assert cell.id == "look-at-one"


def test_points_in_the_text_are_those_of_the_cells_and_sum_to_a_hundred():
    given = [*LOADED.check_points.values(), *LOADED.manual_cells.values()]
    assert sum(given) == 100 and list(LOADED.manual_cells) == ["in-your-own-words"]
    headings = [cell.source.splitlines()[0] for cell in NOTEBOOK.cells if cell.source.startswith("## ")]
    assert [int(re.search(r"\((\d+) points\)", heading)[1]) for heading in headings] == given
    rows = re.findall(r"^\| \d \| (.+?) \| (\d+) \| (\d+) \|$", NOTEBOOK.cells[0].source, re.MULTILINE)
    assert [int(points) for _, points, _ in rows] == given
    assert 60 <= sum(int(minutes) for _, _, minutes in rows) <= 90
    assert [heading.split(" · ")[1].split(" (")[0] for heading in headings] == [title for title, _, _ in rows]
    assert [task.title for task in LOADED.assignment.tasks] == [title for title, _, _ in rows][:-1]


def test_the_code_of_the_statements_runs_before_anything_is_filled_in(capsys):
    (example,) = (cell for cell in NOTEBOOK.cells if cell.cell_type == "code" and not tag(cell, "grade_id"))
    names = run(*LOADED.stubs.values(), example.source)
    assert "inputs (300, 6, 2) targets (300,)" in capsys.readouterr().out
    for row, target in zip(names["inputs"].tolist(), names["targets"].tolist(), strict=True):
        assert dict(row[1:])[row[0][0]] == target and row[0][1] == 8


def test_answers_need_only_what_the_first_cell_imports():
    imports = [
        line.split()[1].split(".")[0]
        for cell in NOTEBOOK.cells
        if cell.cell_type == "code" and not tag(cell, "grade")
        for line in cell.source.splitlines()
        if line.startswith(("import ", "from "))
    ]
    assert set(imports) == {"einops", "math", "numpy", "torch"}


def test_names_of_hidden_checks_hold_no_number_of_an_input():
    for task in LOADED.assignment.tasks:
        for asked in task.checks:
            assert set(re.findall(r"\d+", asked.name)) <= {"32", "64", "70", "90", "95"}
