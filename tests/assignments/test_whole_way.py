"""Each delivered assignment goes an instructor's whole way, from its proof to the marks, with three students."""

import contextlib
import csv
import shutil

import nbformat
import pytest

from course_lib.data.place import course_folder
from course_lib.grading import batch, pools, prove, student, validation
from course_lib.grading.collect import collect
from course_lib.grading.export import export
from course_lib.grading.feedback import feedback
from course_lib.grading.folders import CONFIG, Folders
from course_lib.grading.gradebook import scores
from course_lib.grading.release import release
from course_lib.grading.spec import load, read_released
from tests.grading.test_batch import Here

DELIVERED = course_folder() / "notebooks" / "assignments"
NUMBERS = sorted(path.name for path in (DELIVERED / "source").iterdir())


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """The delivered assignments, in a course directory whose exchange takes submissions under any name."""
    root = tmp_path_factory.mktemp("instructor") / "course"
    for part in ("source", "hidden"):
        shutil.copytree(DELIVERED / part, root / part)
    settings = (DELIVERED / CONFIG).read_text()
    (root / CONFIG).write_text(f"{settings}\nc.Exchange.root = {str(root.parent / 'exchange')!r}\n")
    with (root / CONFIG).open("a") as config:
        config.write("c.CourseDirectory.course_id = 'dl'\nc.ExchangeCollect.check_owner = False\n")
    return Folders(root=root)


@pytest.fixture
def here(course, zygote, monkeypatch, tmp_path):
    """All judging in this process, in one sandbox."""

    @contextlib.contextmanager
    def executor(**options):
        yield Here(), 2

    monkeypatch.setattr(pools, "_zygote", lambda trusted, hidden: zygote)
    for module in (batch, prove):
        monkeypatch.setattr(module, "executor", executor)
    monkeypatch.setattr(prove, "KEYS", prove.KEYS[:1])  # the students draw twice more
    monkeypatch.setattr(validation, "Zygote", lambda trusted: contextlib.nullcontext(zygote))
    monkeypatch.setattr(validation, "sandbox_problem", lambda: None)
    monkeypatch.delenv("COURSE_EXCHANGE", raising=False)
    monkeypatch.setenv("COURSE_ASSIGNMENTS", str(course.root))
    monkeypatch.chdir(tmp_path)


def fill_in(copy, answers):
    notebook = nbformat.read(copy, as_version=4)
    for cell in notebook.cells:
        cell.source = answers.get(cell.metadata.get("nbgrader", {}).get("grade_id"), cell.source)
    nbformat.write(notebook, copy)


def go_the_whole_way(number, course, tmp_path, capsys):
    assert prove.prove(number) == 0, capsys.readouterr().out
    assert release(number, folder=course.root) == 0
    loaded = load(read_released(course.root, number))
    right = {cell.grade_id: cell.source for cell in loaded.cells if cell.kind == "solution"}
    first, *_, training = (task.name for task in loaded.assignment.tasks)  # trained by the proof: once is enough
    answers = {"ada": right | {training: loaded.stubs[training]}, "cy": {}}
    answers["bob"] = answers["ada"] | {first: loaded.stubs[first]}
    for name, given in answers.items():
        assert student.fetch(number, to=tmp_path / name) == 0
        (copy,) = (tmp_path / name).glob("*.ipynb")
        fill_in(copy, given)
        if name == "ada":
            assert student.validate(number, notebook=copy) == 1  # the written answer is missing
            said = capsys.readouterr().out
            assert " NO " not in said and said.count("  ok ") == len(right) - 1
        assert student.submit(number, notebook=copy, student=name) == 0
    assert collect(number, folder=course.root) == 0
    assert batch.grade(number, folder=course.root) == 0
    points = sum(loaded.check_points.values()) - loaded.check_points[training]
    earned = {row.student: row.total for row in scores(course.gradebook, number)}
    assert earned == {"ada": points, "bob": points - loaded.check_points[first], "cy": 0}
    assert feedback(number, folder=course.root) == 0
    (page,) = course.feedback("bob", number).glob("*.html")
    assert "no answer yet" in page.read_text()
    assert export(number, folder=course.root, layout="plain") == 0
    with next(course.exports.glob(f"*{number}*.csv")).open(newline="", encoding="utf-8-sig") as file:
        assert {row["student"] for row in csv.DictReader(file)} == set(answers)


# pytest gives each class to a worker of its own: the two halves run side by side.


@pytest.mark.needs("sandbox")
class TestEverySecondAssignment:
    @pytest.mark.parametrize("number", NUMBERS[::2])
    def test_goes_the_whole_way(self, number, course, here, tmp_path, capsys):
        go_the_whole_way(number, course, tmp_path, capsys)


@pytest.mark.needs("sandbox")
class TestTheOtherAssignments:
    @pytest.mark.parametrize("number", NUMBERS[1::2])
    def test_goes_the_whole_way(self, number, course, here, tmp_path, capsys):
        go_the_whole_way(number, course, tmp_path, capsys)
