"""Alternative tasks: a key draws one of each slot; what was not drawn is not told, and what was drawn is judged."""

import json
from dataclasses import replace

import pytest

from course_lib.data.place import CannotStart
from course_lib.grading.alternatives import as_in, chosen, drawn_by, every_choice, first, slots
from course_lib.grading.prove import as_released, of_each_other, trials
from course_lib.grading.release import release
from course_lib.grading.spec import load, read_assignment, read_released
from course_lib.grading.student import find_release
from course_lib.tasks.markdown import with_mistakes
from course_lib.tasks.solution import Solution
from tests.grading import courses
from tests.grading.unreleased import unreleased_course, write_source

SUBTRACT = "def subtract(a, b):\n    ### BEGIN SOLUTION\n    return a - b\n    ### END SOLUTION"
SUBTRACTS = """
SUBTRACT = Task(name="subtract", title="Subtract", asks="a, b", reference=lambda a, b: a - b, cases=(
    Case("Two matrices are subtracted", lambda draw: (draw(2, 3), draw(2, 3)), 3),
))
ASSIGNMENT = Assignment("07", notebook="sums", title="Sums", tasks=(ADD, SUBTRACT, DOUBLE))
"""
PLACE = "source/07/sums.ipynb"


def text(number, title):
    heading = {"cell_type": "markdown", "id": title, "source": f"## 1 · {title} (3 points)\n\nWe do what {title} says."}
    return heading | {"metadata": {"course": {"slot": "one", "alternative": number}}}


def with_alternatives():
    """The small assignment, whose first task has an alternative."""
    notebook = json.loads(json.dumps(courses.SOURCE))
    table = {"cell_type": "markdown", "id": "table", "metadata": {}, "source": "| 1 | Adding up | 3 |"}
    setup, add, check_add, *others = notebook["cells"]
    extra = [courses.solution("subtract", SUBTRACT), courses.check("check-subtract", "check(subtract)", 3)]
    for alternative, cells in (("a", (add, check_add)), ("b", extra)):
        for cell in cells:
            cell["metadata"]["course"] = {"slot": "one", "alternative": alternative}
    cells = [table, setup, text("a", "Adding up"), add, check_add, text("b", "Taking away"), *extra, *others]
    return notebook | {"cells": cells}


SOURCE = json.dumps(with_alternatives()).encode()
KEYS = {  # found by trying: the draw is the same on every machine
    name: next(key for key in map(str, range(99)) if drawn_by(key, "07")("one", {"a": set(), "b": set()}) == name)
    for name in "ab"
}


@pytest.fixture
def course(tmp_path, monkeypatch):
    monkeypatch.delenv("COURSE_EXCHANGE", raising=False)
    folders = unreleased_course(tmp_path / "course", checks=courses.SUMS_CHECKS + SUBTRACTS)
    write_source(folders, with_alternatives())
    return folders


def tasks(files):
    return [task.name for task in load(files).assignment.tasks]


def test_a_key_draws_the_same_each_time_and_assignments_and_slots_apart():
    alternatives = {"a": set(), "b": set()}
    drawn = ["".join(drawn_by("key", "05")(f"slot {n}", alternatives) for n in range(200)) for _ in range(2)]
    other = "".join(drawn_by("key", "06")(f"slot {n}", alternatives) for n in range(200))
    assert drawn[0] == drawn[1] != other
    assert 70 < drawn[0].count("a") < 130


def test_each_alternative_is_in_one_of_few_choices_and_a_notebook_without_slots_stays_as_it_is():
    drawn = [chosen(SOURCE, PLACE, choose) for choose in every_choice(SOURCE, PLACE)]
    assert [b"def add(" in one for one in drawn] == [True, False]
    assert [b"def subtract(" in one for one in drawn] == [False, True]
    source = json.dumps(courses.SOURCE).encode()
    assert chosen(source, PLACE, first) is source and len(every_choice(source, PLACE)) == 1


def test_alternatives_with_unequal_points_are_refused():
    source = SOURCE.replace(b'"points": 3', b'"points": 4', 1)
    with pytest.raises(ValueError, match="slot 'one' are worth unequal points: a 4, b 3"):
        slots(source, PLACE)


@pytest.mark.parametrize(
    ("key", "there", "absent"), [(None, "add", "subtract"), ("a", "add", "subtract"), ("b", "subtract", "add")]
)
def test_a_release_holds_what_was_drawn_and_nothing_of_the_other(course, key, there, absent, capsys):
    assert release("07", folder=course.root, draw=KEYS.get(key)) == 0
    released = (course.release("07") / "sums.ipynb").read_text()
    titles = {"add": "Adding up", "subtract": "Taking away"}
    assert f"def {there}(" in released and f"{absent}(" not in released and titles[absent] not in released
    assert f"| 1 | {titles[there]} | 3 |" in released
    assert f": {there}." in capsys.readouterr().out
    assert tasks(read_released(course.root, "07")) == [there, "double"]
    assert tasks(read_assignment(course.root, "07")) == ["add", "subtract", "double"]


def test_a_release_is_not_replaced_by_another_draw_nor_made_by_an_empty_key(course):
    with pytest.raises(CannotStart, match="needs a key"):
        release("07", folder=course.root, draw=" ")
    assert release("07", folder=course.root, draw=KEYS["b"]) == 0
    with pytest.raises(CannotStart, match=r"other alternatives \(subtract\)"):
        release("07", folder=course.root)
    assert release("07", folder=course.root, draw=KEYS["b"]) == 0


def test_text_of_the_other_alternative_is_a_leak(course):
    (course.source("07") / "hint.txt").write_text("We do what Taking away says.")
    with pytest.raises(CannotStart, match="We do what Taking away says"):
        release("07", folder=course.root)


def test_at_home_a_copy_is_compared_with_its_own_alternatives(course, monkeypatch):
    monkeypatch.setenv("COURSE_ASSIGNMENTS", str(course.root))
    for name, other in (("add", "subtract"), ("subtract", "add")):
        copy = chosen(SOURCE, PLACE, as_in(f'"grade_id": "{name}"'.encode()))
        found = find_release("07", copy=copy).content.decode()
        assert f"def {name}(" in found and other not in found


def test_a_draw_is_another_assignment_to_the_judge_and_the_solution_of_one_is_tried_in_place_of_the_other(course):
    files = read_assignment(course.root, "07")
    assert len({files.hash, files.chosen(first).hash, files.chosen(drawn_by(KEYS["b"], "07")).hash}) == 3
    tried = {trial.task: trial.answers[trial.task] for trial in of_each_other(files)}
    assert "def add" in tried["add"] and "a - b" in tried["add"] and "a + b" in tried["subtract"]
    assert trials(load(files.chosen(first)))[0].answers.keys() == {"add", "double"}


def test_in_each_draw_its_alternatives_are_judged_and_solutions_that_use_one(course):
    def judged(files):
        releases = [files.chosen(choose) for choose in every_choice(files.source_notebook, files.place)]
        return [
            {trial.task for trial in as_released(released, files, trial="") if trial.files is released}
            for released in releases
        ]

    files = read_assignment(course.root, "07")
    assert judged(files) == [{"add"}, {"subtract"}]
    uses = files.source_notebook.replace(b"return 2 * x", b"return add(x, x)")
    assert uses != files.source_notebook
    assert judged(replace(files, source_notebook=uses)) == [{"add", "double"}, {"subtract", "double"}]


def test_mistakes_below_two_names_are_those_of_both(course):
    loaded = load(read_assignment(course.root, "07"))
    solutions = {name: Solution(f"def {name}(a, b):\n    return a + b\n") for name in ("add", "subtract")}
    both = "# add, subtract\n\n## Mistakes\n### once more\n- `a + b` → `a + b + b`\nToo much.\n"
    one = "# subtract\n\n## Mistakes\n### twice\n- `a + b` → `a + 2 * b`\nToo much.\n"
    tasks = with_mistakes(loaded.assignment.tasks, (both + one).encode(), solutions, "tasks.md")
    named = {task.name: [mistake.name for mistake in task.mistakes] for task in tasks}
    assert named == {"add": ["once more"], "subtract": ["once more", "twice"], "double": []}
