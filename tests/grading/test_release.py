"""Releases: they give nothing away, register points, leave grades alone, and are made whole or not at all."""

import json
import os
import shutil
import stat
from pathlib import Path

import pytest
from nbgrader.apps import NbGraderAPI
from nbgrader.auth import Authenticator
from nbgrader.coursedir import CourseDirectory
from nbgrader.exchange import ExchangeError
from nbgrader.exchange.default import ExchangeFetchAssignment
from traitlets.config import Config

from course_lib.data.place import CannotStart
from course_lib.grading.alternatives import chosen, first
from course_lib.grading.folders import Folders, read_config
from course_lib.grading.release import release
from course_lib.grading.spec import load, read_assignment
from course_lib.grading.stripped import STUB, WRITTEN_STUB
from tests.grading.courses import NAME, NOTEBOOK, POINTS, STUBS, SUMS_CHECKS, by_hand, nbgraders_book
from tests.grading.unreleased import CONFIG, unreleased_course, write_source

ROOT = Path(__file__).parents[2]
FILE = f"{NOTEBOOK}.ipynb"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """One released course for all: nbgrader takes its time for a new gradebook."""
    folders = unreleased_course(tmp_path_factory.mktemp("model"))
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("COURSE_EXCHANGE", raising=False)
        patch.setenv("PATH", "/usr/bin:/bin")  # as without an activated environment: alembic is not there
        assert release(NAME, folder=folders.root) == 0
    return folders


@pytest.fixture
def course(model, tmp_path, monkeypatch):
    monkeypatch.delenv("COURSE_EXCHANGE", raising=False)
    return Folders(root=Path(shutil.copytree(model.root, tmp_path / "course")))


def cells(path):
    return json.loads(path.read_text())["cells"]


def grade_id(cell):
    return cell["metadata"].get("nbgrader", {}).get("grade_id")


def source(folders):
    return json.loads((folders.source(NAME) / FILE).read_text())


def change_first_cell(folders, text):
    notebook = source(folders)
    notebook["cells"][0]["source"] = text
    write_source(folders, notebook)


def hand_in(folders):
    """As if there were a submission of ada's."""
    with nbgraders_book(folders) as book:
        book.add_student("ada")
        book.add_submission(NAME, "ada")


def everything(folders):
    """All bytes below a folder, to see that nothing has changed."""
    return {path: path.read_bytes() for path in sorted(folders.root.rglob("*")) if path.is_file()}


# ------------------------------------------------------------------------------------------------ what it holds


@pytest.fixture(scope="module")
def attention(tmp_path_factory):
    """Assignment 05, as it is, released."""
    folders = Folders(root=tmp_path_factory.mktemp("attention") / "course")
    for part in ("source", "hidden"):
        shutil.copytree(ROOT / "notebooks" / "assignments" / part / "05", folders.root / part / "05")
    shutil.copy(CONFIG, folders.config)
    release("05", folder=folders.root)
    return folders


def test_assignment_05_is_released_without_solutions_hidden_checks_and_outputs(attention):
    path = attention.release("05") / "attention.ipynb"
    text = "\n".join("".join(cell["source"]) for cell in cells(path))
    whole = path.read_text()
    assert [file.name for file in attention.release("05").iterdir()] == ["attention.ipynb"]
    for cell in cells(path):
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [] and cell["execution_count"] is None
    loaded, written = load(read_assignment(attention.root, "05")), []
    stubs = {line for stub in loaded.stubs.values() for line in stub.splitlines()}
    answers = [cell.source for cell in loaded.cells if cell.kind == "solution"]
    solutions = [line.strip() for answer in answers for line in answer.splitlines() if line not in stubs]
    for cell in cells(attention.source("05") / "attention.ipynb"):
        facts = cell["metadata"].get("nbgrader", {})
        if facts.get("grade") and facts.get("solution"):
            written += "".join(cell["source"]).splitlines()
    hidden = [line for file in attention.hidden("05").glob("*.*") for line in file.read_text().splitlines()]
    hidden = [line for line in hidden if not line.startswith(("import ", "from "))]
    long = [line.strip() for line in [*solutions, *written, *hidden] if len(line.strip()) > 30]
    assert len(solutions) > 20 and len(written) > 5 and len(long) > 100
    helper = next("".join(cell["source"]) for cell in cells(path) if grade_id(cell) == "dictionaries")
    assert [line for line in long if line in text and line not in helper] == []
    assert not any(mark in whole for mark in ("SOLUTION", "HIDDEN", "hidden/05", "tasks.py"))


def test_a_release_holds_the_stubs_and_nothing_else_of_the_cells_and_says_what_comes_next(course, capsys):
    notebook = source(course)
    notebook["cells"][0]["metadata"]["note"] = notebook["metadata"]["note"] = "the solution"
    write_source(course, notebook)
    release(NAME, folder=course.root)
    assert "the solution" not in (course.release(NAME) / FILE).read_text()
    found = {grade_id(cell): "".join(cell["source"]) for cell in cells(course.release(NAME) / FILE)}
    assert found.items() >= (STUBS | {"setup": "import torch"}).items()
    said = capsys.readouterr().out
    assert str(course.release(NAME) / FILE) in said and f"course assign collect {NAME}" in said
    assert "2 tasks judged by checks, 1 written answer graded by hand; 9 points" in said


def test_nbgraders_own_conversion_makes_the_same_cells(attention, tmp_path):
    folders = Folders(root=Path(shutil.copytree(attention.root, tmp_path / "course")))
    shutil.rmtree(folders.release("05"))
    source = folders.source("05") / "attention.ipynb"
    source.write_bytes(chosen(source.read_bytes(), "source", first))
    config = read_config(folders.root)
    said = NbGraderAPI(CourseDirectory(config=config, root=str(folders.root)), config=config).generate_assignment("05")
    assert said["success"], said["log"]
    theirs, ours = (cells(place.release("05") / "attention.ipynb") for place in (folders, attention))

    def shown(cell):
        tags = cell["metadata"].get("nbgrader", {})
        locks = [cell["metadata"].get(key) for key in ("editable", "deletable")]
        return cell["cell_type"], "".join(cell["source"]), locks, tags.get("points"), tags.get("checksum")

    assert [shown(cell) for cell in ours] == [shown(cell) for cell in theirs]


def test_the_gradebook_knows_the_points_of_each_cell(course):
    with nbgraders_book(course) as book:
        cells = book.find_notebook(NOTEBOOK, NAME).grade_cells
        assert {cell.name: cell.max_score for cell in cells} == POINTS
        assert len(book.db.connection().exec_driver_sql("SELECT version_num FROM alembic_version").all()) == 1


# ------------------------------------------------------------------------------------------------ again


def test_grades_stay_when_an_assignment_is_released_again(course):
    hand_in(course)
    by_hand(course, check_add={"manual_score": 3.5}, why={"manual_comment": "Well said."})
    change_first_cell(course, "import torch  # and nothing else")
    release(NAME, folder=course.root)
    assert "nothing else" in (course.release(NAME) / FILE).read_text()
    with nbgraders_book(course) as book:
        assert book.find_grade("check-add", NOTEBOOK, NAME, "ada").manual_score == 3.5
        assert book.find_comment("why", NOTEBOOK, NAME, "ada").comment == "Well said."


def rename(folders, before, after):
    """Gives the assignment's notebook another name."""
    os.rename(folders.source(NAME) / f"{before}.ipynb", folders.source(NAME) / f"{after}.ipynb")
    tasks = folders.hidden(NAME) / "tasks.py"
    tasks.write_text(tasks.read_text().replace(f'notebook="{before}"', f'notebook="{after}"'))


def test_a_notebook_of_another_name_takes_the_place_of_the_first_until_there_are_submissions(course):
    rename(course, NOTEBOOK, "more-sums")
    release(NAME, folder=course.root)
    assert [path.name for path in course.release(NAME).iterdir()] == ["more-sums.ipynb"]
    with nbgraders_book(course) as book:
        assert [part.name for part in book.find_assignment(NAME).notebooks] == ["more-sums"]
    hand_in(course)
    rename(course, "more-sums", NOTEBOOK)
    with pytest.raises(CannotStart, match="there are submissions of the notebook 'more-sums'"):
        release(NAME, folder=course.root)


def test_a_cell_more_is_refused_once_there_are_submissions(course):
    hand_in(course)
    before = (course.release(NAME) / FILE).read_bytes()
    notebook = source(course)
    more = json.loads(json.dumps(notebook["cells"][0]))
    more["metadata"]["nbgrader"]["grade_id"] = "more"
    notebook["cells"].append(more | {"id": "more"})
    write_source(course, notebook)
    with pytest.raises(CannotStart, match="nothing was released. It says: .*there are submissions associated"):
        release(NAME, folder=course.root)
    assert (course.release(NAME) / FILE).read_bytes() == before


# ------------------------------------------------------------------------------------------------ refused


def in_another_file(folders, notebook):
    (folders.source(NAME) / "notes.json").write_text('["    return (a.clone() + b.clone())"]')
    solution = "    ### BEGIN SOLUTION\n    return (a.clone() + b.clone())\n    ### END SOLUTION"
    notebook["cells"][1]["source"] = f"def add(a, b):\n{solution}"


def hidden_check(folders, notebook):
    notebook["cells"][2]["source"] = SUMS_CHECKS.splitlines()[5]


def hidden_tests_of_nbgraders(folders, notebook):
    notebook["cells"].append({"cell_type": "markdown", "id": "m", "metadata": {}, "source": "See END HIDDEN TESTS"})


def second_notebook(folders, notebook):
    shutil.copy(folders.source(NAME) / FILE, folders.source(NAME) / "answers.ipynb")


def beside_the_notebook(folders, notebook):
    shutil.copy(folders.hidden(NAME) / "tasks.py", folders.source(NAME) / "helpers.py")


@pytest.mark.parametrize(
    ("leak", "said"),
    [
        (in_another_file, r"notes.json holds 'return \(a.clone\(\)"),
        (hidden_check, "sums.ipynb holds '"),
        (hidden_tests_of_nbgraders, "cell 7 holds nbgrader's mark 'END HIDDEN TESTS'"),
        (second_notebook, "answers.ipynb is a second notebook"),
        (beside_the_notebook, "helpers.py holds '"),
    ],
)
def test_a_release_that_would_give_something_away_is_refused_and_nothing_changes(course, leak, said):
    leak(course, notebook := source(course))
    write_source(course, notebook)
    before = everything(course)
    with pytest.raises(CannotStart, match=said):
        release(NAME, folder=course.root)
    assert everything(course) == before


def test_points_that_do_not_agree_are_refused_before_anything_is_made(tmp_path):
    folders = unreleased_course(tmp_path)
    notebook = source(folders)
    notebook["cells"][2]["metadata"]["nbgrader"]["points"] = 5
    write_source(folders, notebook)
    before = everything(folders)
    with pytest.raises(CannotStart, match="lacks: .*'check-add' with 3 points.*'check-add' with 5 points"):
        release(NAME, folder=folders.root)
    assert everything(folders) == before


# ------------------------------------------------------------------------------------------------ the exchange


def test_the_exchange_gets_the_release_as_nbgrader_lays_it_out(course, tmp_path, monkeypatch, capsys):
    exchange = tmp_path / "exchange"
    monkeypatch.setenv("COURSE_EXCHANGE", str(exchange))
    for _ in range(2):  # again is safe
        release(NAME, folder=course.root)
    place = exchange / "deep-learning" / "outbound" / NAME
    assert str(place) in capsys.readouterr().out
    assert (place / FILE).read_bytes() == (course.release(NAME) / FILE).read_bytes()
    assert stat.S_IMODE((exchange / "deep-learning" / "inbound").stat().st_mode) & 0o777 == 0o733
    monkeypatch.chdir(tmp_path)
    config = Config({"Exchange": {"root": str(exchange), "assignment_dir": str(tmp_path)}})
    directory = CourseDirectory(course_id="deep-learning", assignment_id=NAME, config=config)
    ExchangeFetchAssignment(coursedir=directory, authenticator=Authenticator(), config=config).start()
    assert (tmp_path / NAME / FILE).read_bytes() == (place / FILE).read_bytes()
    directory.assignment_id = "08"
    with pytest.raises(ExchangeError):
        ExchangeFetchAssignment(coursedir=directory, authenticator=Authenticator(), config=config).start()


# ------------------------------------------------------------------------------------------------ the settings


def test_nbgrader_makes_the_stubs_that_the_judge_knows():
    config = read_config(CONFIG.parent)
    assert config.ClearSolutions.code_stub == {"python": STUB} and config.ClearSolutions.text_stub == WRITTEN_STUB
