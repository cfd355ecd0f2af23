"""nbgrader's own autograde, as its command and formgrader's button call it, with the judge in place of a kernel."""

import json
import shutil

import nbformat
import pytest
from nbgrader.apps import NbGraderAPI
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import Execute
from traitlets.config import Config

from course_lib.data.place import course_folder
from course_lib.grading import batch, nbgrader_plugin, pools
from course_lib.grading.batch import grade
from course_lib.grading.folders import grading_lock, read_config
from course_lib.grading.nbgrader_plugin import StartFromRelease
from course_lib.grading.sandbox import SandboxError, Zygote
from tests.grading.courses import GOOD, HALF_WRONG, NAME, NOTEBOOK, by_hand, row, submit

pytestmark = pytest.mark.needs("sandbox")


@pytest.fixture(autouse=True)
def one_zygote_and_no_kernel(zygote, monkeypatch):
    """The plugin keeps its zygote for the process; these tests leave none behind."""
    monkeypatch.setattr(pools, "_zygote", lambda trusted, hidden: Zygote(trusted=True) if trusted else zygote)
    monkeypatch.setattr(Execute, "preprocess", lambda *_, **__: pytest.fail("a kernel was to be started"))


def nbgrader(folders, **settings):
    """nbgrader's API with the settings of the course's own nbgrader_config.py."""
    config = read_config(course_folder() / "notebooks" / "assignments")
    config.CourseDirectory.root = str(folders.root)
    config.CourseDirectory.course_id = ""
    config.merge(Config(settings))
    return NbGraderAPI(CourseDirectory(config=config), config=config)


def graded(folders, student="ada"):
    return folders.autograded(student, NAME) / f"{NOTEBOOK}.ipynb"


def outcome(folders, student="ada", **settings):
    return nbgrader(folders, **settings).autograde(NAME, student)


def test_autograde_judges_in_the_sandbox_and_records_as_course_grade_does(folders, capsys):
    def texts():
        return [cell.source for cell in nbformat.read(graded(folders), as_version=4).cells]

    submit(folders, "ada", **HALF_WRONG)
    said = outcome(folders)
    assert said["success"], said
    found = row(folders)
    assert found.points == {"check-add": 3.0, "check-double": 0.0, "why": 0.0}
    assert found.unread == ("why",)
    cells = nbformat.read(graded(folders), as_version=4).cells
    assert "return x" in cells[3].source and "[failed] Each number is doubled" in cells[4].outputs[0].text
    assert cells[5].source == "So."
    by_plugin, sources = row(folders).verdict, texts()
    grade(NAME, folder=folders.root, workers=1)
    assert "0 graded now, 1 graded before" in capsys.readouterr().out
    grade(NAME, folder=folders.root, again=True, workers=1)
    assert row(folders).verdict == by_plugin
    assert texts() == sources


def test_points_and_comments_by_hand_survive_the_button(folders):
    submit(folders, "ada", **HALF_WRONG)
    assert outcome(folders)["success"]
    by_hand(folders, check_double={"manual_score": 1.5}, double={"manual_comment": "Nearly!"})
    by_hand(folders, why={"manual_score": 4.0, "needs_manual_grade": False})
    assert outcome(folders)["success"]
    found = row(folders)
    assert (found.points["check-double"], found.remarks["double"], found.total) == (1.5, "Nearly!", 8.5)
    assert found.unread == ()


def test_code_that_would_run_in_a_kernel_runs_nowhere(folders, tmp_path):
    """A cell that is no answer is never run, and an answer has no way to this machine's files."""
    marker = tmp_path / "marker"
    submit(folders, "ada", add=f"open({str(marker)!r}, 'w')\n{GOOD['add']}", double=GOOD["double"])
    path = folders.submitted("ada", NAME) / f"{NOTEBOOK}.ipynb"
    notebook = json.loads(path.read_text())
    own = {"cell_type": "code", "id": "own", "metadata": {}, "outputs": [], "execution_count": None}
    notebook["cells"].insert(0, own | {"source": f"open({str(marker)!r}, 'w')"})
    path.write_text(json.dumps(notebook))
    assert outcome(folders)["success"]
    assert not marker.exists()
    assert row(folders).points["check-double"] == 2.0


def test_feedback_and_formgraders_list_work_on_what_was_graded(folders):
    submit(folders, "ada", **GOOD)
    tools = nbgrader(folders)
    assert tools.autograde(NAME, "ada")["success"]
    assert tools.generate_feedback(NAME, "ada")["success"]
    assert "Two matrices are added" in (folders.feedback("ada", NAME) / f"{NOTEBOOK}.html").read_text()
    (submission,) = tools.get_submissions(NAME)
    assert (submission["score"], submission["autograded"], submission["needs_manual_grade"]) == (5.0, True, True)


def no_sandbox(*_, **__):
    raise SandboxError("there is no bubblewrap here")


@pytest.mark.parametrize(
    ("place", "name", "broken"),
    [
        (pools, "_zygote", no_sandbox),
        (nbgrader_plugin.Gradebook, "record", lambda *_, **__: 1 / 0),
        (batch, "take_in", lambda *_, **__: 1 / 0),
    ],
)
def test_whatever_goes_wrong_is_an_error_without_points(folders, monkeypatch, place, name, broken):
    submit(folders, "ada", **GOOD)
    monkeypatch.setattr(place, name, broken)
    assert not outcome(folders)["success"]
    assert row(folders).total == 0.0
    assert not graded(folders).exists()


def test_while_another_grader_is_at_work_it_waits_and_then_says_so(folders, monkeypatch):
    submit(folders, "ada", **GOOD)
    monkeypatch.setattr(nbgrader_plugin, "SECONDS_TO_WAIT", 0.2)
    with grading_lock(folders):
        said = outcome(folders)
    assert not said["success"] and "Another grader is at work" in said["log"]
    assert row(folders).total == 0.0


def test_lateness_costs_what_the_course_directorys_settings_say(folders):
    submit(folders, "ada", when="2026-03-03 12:00:00 UTC", **GOOD)
    said = outcome(folders, AssignLatePenalties={"plugin_class": "tests.grading.test_gradebook.PointADay"})
    assert said["success"], said["log"]
    assert (row(folders).penalty, row(folders).total) == (2.0, 3.0)


def resources(folders, notebook=NOTEBOOK):
    """What nbgrader says of a notebook to those that work on it."""
    asked = {"student": "ada", "assignment": NAME, "notebook": notebook}
    return {"nbgrader": asked, "metadata": {"path": str(folders.submitted("ada", NAME))}}


def test_a_notebook_that_was_not_released_is_no_answer_to_its_tasks(folders):
    submit(folders, "ada", **GOOD)
    mine = folders.submitted("ada", NAME) / f"{NOTEBOOK}.ipynb"
    mine.rename(mine.with_name("products.ipynb"))
    said = outcome(folders)
    assert not said["success"] and row(folders).total == 0.0
    with pytest.raises(FileNotFoundError, match="release/07/products.ipynb"):
        StartFromRelease()(nbformat.v4.new_notebook(), resources(folders, "products"))


def test_nbgraders_own_steps_begin_with_the_release_and_nothing_of_the_submission(folders):
    submit(folders, "ada", **GOOD)
    submitted = nbformat.read(folders.submitted("ada", NAME) / f"{NOTEBOOK}.ipynb", as_version=4)
    begun, _ = StartFromRelease()(submitted, resources(folders))
    assert begun == nbformat.read(folders.release(NAME) / f"{NOTEBOOK}.ipynb", as_version=4) != submitted


def test_what_is_not_released_and_another_layout_of_folders_are_refused(folders):
    submit(folders, "ada", **GOOD)
    said = outcome(folders, CourseDirectory={"autograded_directory": "elsewhere"})
    assert not said["success"] and "leave CourseDirectory.directory_structure" in said["log"]
    shutil.rmtree(folders.release(NAME))
    said = outcome(folders)
    assert not said["success"] and f"release/{NAME}/{NOTEBOOK}.ipynb" in said["log"]
    assert row(folders).total == 0.0
