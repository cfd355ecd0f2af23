import pytest
import torch

from course_lib.grading.spec import (
    DIFFERS,
    STUB,
    Assignment,
    HiddenCheck,
    Task,
    agrees,
    clear_solution,
    difference,
    given,
    learns,
    load,
    property_check,
    read_assignment,
)
from course_lib.tasks import Check
from course_lib.tasks.findings import NOT_FINITE, WRONG_SHAPE, WRONG_TYPE
from tests.grading.courses import CHECKS, cell, small_course


def never(_):
    return []


def hidden(**changes):
    return HiddenCheck(**{"name": "it holds", "points": 1, "run": never} | changes)


@pytest.mark.parametrize("points", [0, -1, float("nan"), float("inf")])
def test_a_check_without_points_is_refused(points):
    with pytest.raises(ValueError, match="positive number of points"):
        hidden(points=points)


def test_a_check_without_words_is_refused():
    with pytest.raises(ValueError, match="needs a name"):
        hidden(name=" ")


@pytest.mark.parametrize(
    ("checks", "reason"),
    [
        ((), "no check"),
        ((hidden(), hidden()), "two checks with the name 'it holds'"),
        ((hidden(needs=("another",)),), "do not stand before"),
        ((hidden(needs=("b",)), hidden(name="b")), "do not stand before"),
    ],
)
def test_a_task_that_cannot_be_judged_is_refused(checks, reason):
    with pytest.raises(ValueError, match=reason):
        Task(name="a", title="A", checks=checks)


def test_a_task_whose_name_cannot_be_a_grade_id_is_refused():
    with pytest.raises(ValueError, match="letters, digits"):
        Task(name="../a", title="A", checks=(hidden(),))


def test_an_assignment_has_tasks_of_different_names():
    task = Task(name="a", title="A", checks=(hidden(points=2), hidden(name="b", points=0.5)))
    with pytest.raises(ValueError, match="two tasks with the name 'a'"):
        Assignment(name="05", notebook="n", title="N", tasks=(task, task))
    with pytest.raises(ValueError, match="no task"):
        Assignment(name="05", notebook="n", title="N", tasks=())
    assert Assignment(name="05", notebook="n", title="N", tasks=(task,)).points == 2.5


def test_a_property_check_is_taken_over_unchanged():
    check = Check(name="doubles", detects=("not doubled",), run=never)
    made = property_check(check, points=2, function="double")
    assert (made.run, made.name, made.detects, made.function) == (never, "doubles", ("not doubled",), "double")


@pytest.mark.parametrize("tolerance", [0, -1, 1, float("nan"), float("inf")])
def test_a_tolerance_that_lets_everything_or_nothing_pass_is_refused(tolerance):
    with pytest.raises(ValueError, match="tolerance"):
        agrees("a", points=1, inputs=lambda s: (), reference=torch.ones, tolerance=tolerance)


@pytest.mark.parametrize("levels", [{}, {0: 1}, {1.5: 1}])
def test_levels_of_learning_are_shares(levels):
    with pytest.raises(ValueError, match="levels"):
        learns("At least {level}", levels=levels, train=never, score=never)


def test_each_level_of_learning_is_a_check_of_its_own():
    easy, hard = learns("At least {level:.0%} right", levels={0.9: 2, 0.5: 1}, train=never, score=never)
    assert [(check.name, check.points) for check in (easy, hard)] == [
        ("At least 50% right", 1),
        ("At least 90% right", 2),
    ]


X = torch.tensor([[1.0, 2.0], [3.0, 4.0]])


@pytest.mark.parametrize(
    ("actual", "wanted", "wrong"),
    [
        (X.double() + 1e-7, X, None),
        (X.half(), X, None),
        (X + 1e-3, X, DIFFERS),
        (X.flatten(), X, WRONG_SHAPE),
        (X[:, :1], X, WRONG_SHAPE),
        (X.int(), X, WRONG_TYPE),
        (X.numpy(), X, WRONG_TYPE),
        (X.tolist(), X, WRONG_TYPE),
        (X.to(torch.complex64), X, WRONG_TYPE),
        (None, X, WRONG_TYPE),
        (X / 0, X, NOT_FINITE),
        (X * torch.nan, X, NOT_FINITE),
        (X.log() - torch.inf, X.log() - torch.inf, None),
        (X > 1, X > 1, None),
        (X > 2, X > 1, DIFFERS),
        ((X > 1).int(), X > 1, WRONG_TYPE),
        (X.short(), X.long(), None),
        (X, X.long(), WRONG_TYPE),
        ([X, X], (X, X), None),
        ([X], (X, X), WRONG_TYPE),
        ([X, X + 1], (X, X), DIFFERS),
        (0.5, 0.5, None),
        (torch.tensor(0.5), 0.5, None),
        (1, 1.0, None),
        (True, 1.0, WRONG_TYPE),
        (float("nan"), 1.0, NOT_FINITE),
        (0.6, 0.5, DIFFERS),
        ("a", "a", None),
        ("b", "a", DIFFERS),
        (1, "a", WRONG_TYPE),
        (True, 1, WRONG_TYPE),
    ],
)
def test_a_result_is_compared_by_kind_shape_and_value(actual, wanted, wrong):
    assert difference(actual, wanted, 1e-5) == wrong


def test_arguments_are_written_as_in_the_call():
    assert (given(1, mask=2).args, given(1, mask=2).kwargs) == ((1,), {"mask": 2})


# The released text ------------------------------------------------------------------------------------------

SOLVED = "def f(x):\n    y = x\n    ### BEGIN SOLUTION\n    y = 2 * x\n    ### END SOLUTION\n    return y"


def test_a_solution_becomes_the_stub_at_its_own_depth():
    assert clear_solution(SOLVED) == (
        "def f(x):\n    y = x\n    # YOUR CODE HERE\n    raise NotImplementedError()\n    return y"
    )


def test_a_solution_cell_without_marks_becomes_the_stub_as_a_whole():
    assert clear_solution("x = 1\ny = 2") == STUB


def test_the_released_text_is_the_one_that_nbgrader_makes():
    nbformat = pytest.importorskip("nbformat.v4")
    from nbgrader.preprocessors import ClearSolutions

    for source in (SOLVED, "x = 1", SOLVED + "\n" + SOLVED.replace("f(x)", "g(x)")):
        tags = {"grade_id": "f", "grade": False, "solution": True, "locked": False, "schema_version": 3}
        made = nbformat.new_notebook(cells=[nbformat.new_code_cell(source, metadata={"nbgrader": tags})])
        ClearSolutions().preprocess(made, {})
        assert made.cells[0].source == clear_solution(source)


@pytest.mark.parametrize(
    "source", ["### BEGIN SOLUTION\n1", "### BEGIN SOLUTION\n### BEGIN SOLUTION\n### END SOLUTION"]
)
def test_a_solution_region_that_is_not_closed_is_refused(source):
    with pytest.raises(ValueError, match="BEGIN SOLUTION"):
        clear_solution(source)


# Files ------------------------------------------------------------------------------------------------------


def test_an_assignment_is_read_with_its_cells_in_order(tmp_path):
    loaded = load(read_assignment(small_course(tmp_path), "01"))
    assert [(cell.grade_id, cell.kind) for cell in loaded.cells] == [
        ("setup", "setup"),
        ("double", "solution"),
        ("halve", "solution"),
    ]
    assert "2 * x" in loaded.cells[1].source and "2 * x" not in loaded.stubs["double"]
    assert (loaded.check_points, loaded.manual_cells) == ({"double": 3, "halve": 1}, {"why": 2})


def test_the_files_are_loaded_once(tmp_path):
    files = read_assignment(small_course(tmp_path), "01")
    assert load(files) is load(read_assignment(tmp_path, "01"))


def test_the_hash_changes_with_notebook_checks_and_judging_code(tmp_path, monkeypatch):
    hashes = [read_assignment(small_course(tmp_path), "01").hash]
    hashes.append(read_assignment(small_course(tmp_path), "01").hash)
    hashes.append(read_assignment(small_course(tmp_path, checks=CHECKS + "\n# a comment\n"), "01").hash)
    hashes.append(read_assignment(small_course(tmp_path, extra=[cell("note", source="1", locked=True)]), "01").hash)
    monkeypatch.setattr("course_lib.grading.spec._code_hash", lambda: "other code")
    hashes.append(read_assignment(small_course(tmp_path), "01").hash)
    assert hashes[0] == hashes[1] and len(set(hashes)) == 4


def faulty_courses():
    yield "unknown", {}, "no assignment 'unknown'.*there is: 01"
    yield "../source", {}, "no assignment"
    yield "01", {"checks": None}, "tasks.py is missing"
    yield "01", {"checks": "1 / 0"}, "does not load: ZeroDivisionError"
    yield "01", {"checks": "x = 1"}, "has to define ASSIGNMENT"
    yield "01", {"checks": CHECKS.replace('notebook="small"', 'notebook="large"')}, "large.ipynb is missing"
    yield "01", {"checks": CHECKS.replace('name="01"', 'name="02"')}, "is for assignment '02'"
    yield "01", {"checks": CHECKS.replace("points=2", "points=7")}, "give 8 points, but the cell 'check-double'.*says 3"
    yield "01", {"leave_out": "check-double"}, "no cell 'check-double'"
    yield "01", {"leave_out": "double"}, "no solution cell 'double'"
    yield "01", {"extra": [cell("triple", solution=True)]}, "tasks.py has no task"
    yield "01", {"extra": [cell("check-triple", grade=True, points=1)]}, "belongs to no task"
    yield "01", {"extra": [cell("double", solution=True)]}, "two cells with the grade_id 'double'"
    yield "01", {"source": "{"}, "cannot be read as a notebook"


@pytest.mark.parametrize(("name", "changes", "reason"), list(faulty_courses()))
def test_an_assignment_that_does_not_fit_together_is_refused_in_words(tmp_path, name, changes, reason):
    with pytest.raises(ValueError, match=reason):
        read_assignment(small_course(tmp_path, **changes), name)
