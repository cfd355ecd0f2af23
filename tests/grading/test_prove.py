"""`course assign prove` sees when an assignment's checks give points that an answer does not deserve."""

import pytest

from course_lib.data.place import CannotStart
from course_lib.grading import prove as proving
from course_lib.grading.prove import WrongSolution, gaps, prove
from course_lib.grading.sandbox import SandboxError
from course_lib.grading.spec import load, read_assignment
from tests.grading.courses import CHECKS, small_course

pytestmark = pytest.mark.needs("sandbox")

SMALL, LARGE = "doubles small numbers", "doubles large numbers"
DOUBLE = [
    ("adds one", "def double(x):\n    return 2 * x + 1", f"passes=({LARGE!r},)"),
    ("cuts off", "def double(x):\n    return (2 * x).clamp(-99, 99)", f"fails=({LARGE!r},)"),
    ("as it was", "def double(x):\n    return x", "passes=(), says='not doubled'"),
]
HALVE = [(f"divides by {n}", f"def halve(x):\n    return x / {n}", "fails=('halves',)") for n in (3, 4)]


def wrong_solutions(double=DOUBLE, halve=HALVE):
    def lines(solutions):
        return "".join(f"WrongSolution(name={n!r}, answer={a!r}, {expected})," for n, a, expected in solutions)

    return (
        "from course_lib.grading.prove import WrongSolution\n"
        f"WRONG = {{'double': [{lines(double)}], 'halve': [{lines(halve)}]}}\n"
    )


@pytest.fixture
def shared(kept_zygote, monkeypatch):
    monkeypatch.setattr(proving, "Zygote", kept_zygote)


@pytest.fixture
def proved(tmp_path, shared, capsys, monkeypatch):
    """Writes a course with these files and proves it: the exit code, and the lines of deviations.

    Two wrong solutions of a task are enough here, and one judging of the reference.
    """
    monkeypatch.setattr(proving, "FEWEST", 2)
    monkeypatch.setattr(proving, "KEYS", proving.KEYS[:1])

    def write(*, wrong=None, checks=CHECKS, **course):
        small_course(tmp_path, checks=checks, **course)
        (tmp_path / "hidden" / "01" / "wrong_solutions.py").write_text(wrong_solutions() if wrong is None else wrong)
        code = prove("01", folder=tmp_path, workers=2)
        return code, [line[2:] for line in capsys.readouterr().out.splitlines() if line.startswith("✗")]

    return write


def test_an_assignment_whose_answers_earn_what_they_deserve_is_proved(proved):
    assert proved() == (0, [])


def test_a_wrong_solution_that_passes_is_named_with_its_check(proved):
    lucky = [*DOUBLE, ("right", "def double(x):\n    return x + x", f"fails=({SMALL!r},)")]
    code, lines = proved(wrong=wrong_solutions(double=lucky))
    assert code == 1
    assert lines == [
        f"double: 'right' passes the check {SMALL!r}, which it should fail",
        "double: 'right' earns 3 points in place of 1",
    ]


def test_a_wrong_solution_that_loses_too_much_is_named_with_the_reason(proved):
    unlucky = [*DOUBLE, ("unlucky", "def double(x):\n    return 3 * x", f"passes=({LARGE!r},)")]
    code, lines = proved(wrong=wrong_solutions(double=unlucky))
    assert code == 1 and len(lines) == 2
    assert lines[0].startswith(f"double: 'unlucky' fails the check {LARGE!r}, which it should pass (result differs")


def test_a_report_that_does_not_name_the_mistake_is_a_deviation(proved):
    silent = [*DOUBLE, ("halves", "def double(x):\n    return x / 2", "passes=(), says='halved instead'")]
    code, lines = proved(wrong=wrong_solutions(double=silent))
    assert code == 1 and lines[0].startswith("double: 'halves' is not told 'halved instead', but: not doubled, ")


BLUNT = CHECKS.replace(
    'agrees("halves", points=1,',
    'HiddenCheck(name="is called", points=0.5, run=lambda s: (s.call(s.random(4)), [])[1]),\n'
    '        agrees("halves", points=0.5,',
)


def test_a_check_that_nothing_fails_is_found(proved):
    assert proved(checks=BLUNT) == (1, ["halve: no wrong solution fails the check 'is called'"])


def test_a_check_that_cannot_fail_is_found_when_a_wrong_solution_should_fail_it(proved):
    both = [(name, answer, "passes=()") for name, answer, _ in HALVE]
    code, lines = proved(checks=BLUNT, wrong=wrong_solutions(halve=both))
    assert code == 1 and len(lines) == 4
    assert "halve: 'divides by 3' passes the check 'is called', which it should fail" in lines
    assert "halve: 'divides by 3' earns 0.5 points in place of 0" in lines


def test_a_reference_that_loses_points_is_found(proved):
    code, lines = proved(checks=CHECKS.replace("lambda x: x / 2", "lambda x: x / 3"))
    assert code == 1
    assert lines[0].startswith("the reference fails the check 'halves', which it should pass")
    assert "the reference earns 3 points in place of 4" in lines
    assert "halve: 'divides by 3' passes the check 'halves', which it should fail" in lines


def test_too_few_wrong_solutions_and_one_that_fails_nothing_are_found(tmp_path):
    small_course(tmp_path)
    wrong = [WrongSolution(name=str(number), answer="", fails=("halves",)) for number in range(5)]
    right = WrongSolution(name="right", answer="", fails=())
    both = WrongSolution(name="both", answer="", passes=())
    loaded = load(read_assignment(tmp_path, "01"))
    assert gaps(loaded, {"double": (both,) * 6, "halve": (*wrong, right)}) == [
        "halve: 'right' fails no check, so it proves nothing"
    ]
    assert gaps(loaded, {"double": (both,) * 6, "halve": tuple(wrong)}) == [
        "halve: 5 wrong solutions, at least 6 are needed"
    ]


def test_a_judging_that_needs_attention_is_found(proved):
    broken = CHECKS.replace("reference=lambda x: x / 2", "reference=lambda x: x / 0 if (x > 0).all() else x.nope")
    code, lines = proved(checks=broken)
    assert code == 1 and any("the reference needs attention: " in line for line in lines)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("", "has to define WRONG"),
        ("WRONG = {'double': [1 / 0]}", "does not load: ZeroDivisionError"),
        (wrong_solutions().replace("'halve':", "'quarter':"), "'quarter', which is no task"),
        (wrong_solutions(halve=[*HALVE, HALVE[0]]), "'halve' has two wrong solutions with the name 'divides by 3'"),
        (wrong_solutions().replace("'halves'", "'thirds'"), "'thirds', which is no check of task 'halve'"),
    ],
)
def test_wrong_solutions_that_do_not_fit_are_refused(proved, wrong, said):
    with pytest.raises(CannotStart, match=said):
        proved(wrong=wrong)


def test_what_is_missing_is_said(tmp_path, shared):
    small_course(tmp_path)
    with pytest.raises(CannotStart, match="no wrong solutions to prove it with: .*wrong_solutions.py is missing"):
        prove("01", folder=tmp_path)
    with pytest.raises(CannotStart, match="no assignment '99'"):
        prove("99", folder=tmp_path)


def test_without_a_sandbox_nothing_is_proved(tmp_path, monkeypatch):
    def none():
        raise SandboxError("install bubblewrap")

    monkeypatch.setattr(proving, "Zygote", none)
    small_course(tmp_path)
    (tmp_path / "hidden" / "01" / "wrong_solutions.py").write_text(wrong_solutions())
    with pytest.raises(CannotStart, match="install bubblewrap"):
        prove("01", folder=tmp_path)


@pytest.mark.parametrize("given", [{}, {"passes": (), "fails": ()}])
def test_a_wrong_solution_says_what_it_passes_or_what_it_fails(given):
    with pytest.raises(ValueError, match="'x' needs either passes or fails"):
        WrongSolution(name="x", answer="", **given)
