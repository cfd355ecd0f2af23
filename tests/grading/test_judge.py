import json
import re
import sys
import time

import pytest

from course_lib.grading import judge as judge_module
from course_lib.grading.intake import Submission, take_in
from course_lib.grading.judge import _Sitting, judge
from course_lib.grading.sandbox import SandboxError
from course_lib.grading.spec import read_assignment
from course_lib.grading.subject import seed_for
from course_lib.tasks.findings import (
    CHANGES_INPUT,
    CUT_OFF,
    GRADIENT_DIFFERS,
    GRADIENT_LOST,
    NOT_FINITE,
    OTHER_PARAMETERS,
    STOPPED,
    UNEXPLAINED,
    WRONG_SHAPE,
    WRONG_TYPE,
)
from tests.grading.courses import CHECKS, DOUBLE, HALVE, SETUP, cell, hand_in, notebook, small_course
from tests.grading.fakes import FakeBox, FakeZygote

KEY = b"the instructor's key"
GOOD = {"double": "def double(x):\n    return 2 * x", "halve": "def halve(x):\n    return x / factor"}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return read_assignment(small_course(tmp_path_factory.mktemp("course")), "01")


def handed_in(**answers):
    return Submission(student="ada", assignment="01", sha256="0" * 64, answers=GOOD | answers)


def verdict_on(files, *, key=KEY, zygote=None, **answers):
    return judge(handed_in(**answers), files, key=key, zygote=zygote or FakeZygote())


def points(verdict):
    return {name: task["points"] for name, task in verdict["tasks"].items()}


def findings(verdict, task="double", check=0):
    return [finding["misconception"] for finding in verdict["tasks"][task]["checks"][check]["findings"]]


def said(verdict):
    """All that a student may read of a verdict."""
    return json.dumps([verdict["notes"], [task | {"printed": ""} for task in verdict["tasks"].values()]])


def stopped(verdict, task):
    return verdict["tasks"][task]["checks"][0]["findings"][0]["message"]


# Scores -----------------------------------------------------------------------------------------------------


def test_a_right_answer_gets_all_points(files):
    verdict = verdict_on(files)
    assert json.loads(json.dumps(verdict)) == verdict
    assert {name: verdict[name] for name in ("schema", "assignment", "student", "submission", "status", "notes")} == {
        "schema": 1,
        "assignment": "01",
        "student": "ada",
        "submission": "0" * 64,
        "status": "graded",
        "notes": [],
    }
    assert (verdict["spec"], verdict["sandbox"]) == (files.hash, "bubblewrap")
    assert verdict["tasks"]["double"] == {
        "points": 3.0,
        "possible": 3.0,
        "answered": True,
        "ended": None,
        "printed": "",
        "checks": [
            {"name": "doubles small numbers", "points": 2.0, "possible": 2.0, "passed": True, "findings": []},
            {"name": "doubles large numbers", "points": 1.0, "possible": 1.0, "passed": True, "findings": []},
        ],
    }
    assert points(verdict) == {"double": 3, "halve": 1}


@pytest.mark.parametrize(
    "stub",
    [
        "",
        "  \n\n",
        "def double(x):\n    # YOUR CODE HERE\n    raise NotImplementedError()",
        "\n\ndef double(x):  \n    # YOUR CODE HERE\n    raise NotImplementedError()\n\n",
    ],
)
def test_no_answer_gets_nothing_and_needs_no_box(files, stub):
    zygote = FakeZygote()
    verdict = verdict_on(files, double=stub, zygote=zygote)
    assert points(verdict) == {"double": 0, "halve": 1} and len(zygote.boxes) == 1
    assert not verdict["tasks"]["double"]["answered"] and findings(verdict) == ["no answer"]


def test_a_submission_that_cannot_be_read_gets_nothing_and_a_persons_attention(files, tmp_path):
    verdict = judge(take_in(hand_in(tmp_path, b"{"), files), files, key=KEY, zygote=FakeZygote())
    assert points(verdict) == {"double": 0, "halve": 0}
    assert verdict["status"] == "needs attention" and "no notebook" in verdict["notes"][0]
    assert not verdict["readable"] and verdict_on(files)["readable"]


def test_each_check_counts_by_itself(files):
    verdict = verdict_on(files, double="def double(x):\n    return (2 * x).clamp(-100, 100)")
    assert points(verdict)["double"] == 2
    assert [check["passed"] for check in verdict["tasks"]["double"]["checks"]] == [True, False]


@pytest.mark.parametrize(
    ("answer", "misconception"),
    [
        ("def double(x):\n    return x", "not doubled"),
        ("def double(x):\n    return (2 * x)[None]", WRONG_SHAPE),
        ("def double(x):\n    return (2 * x).int()", WRONG_TYPE),
        ("def double(x):\n    return (2 * x).numpy()", WRONG_TYPE),
        ("def double(x):\n    return 2 * x, 1", WRONG_TYPE),
        ("def double(x):\n    pass", WRONG_TYPE),
        ("def double(x):\n    return x / 0", NOT_FINITE),
        ("def double(x):\n    x *= 2\n    return x", CHANGES_INPUT),
        ("def double(x):\n    return nothing", STOPPED),
        ("def twice(x):\n    return 2 * x", STOPPED),
        ("double = 3", STOPPED),
        ("def double(x):", STOPPED),
    ],
)
def test_what_is_wrong_is_named_and_costs_its_points(files, answer, misconception):
    verdict = verdict_on(files, double=answer)
    assert points(verdict) == {"double": 0, "halve": 1} and verdict["status"] == "graded"
    assert findings(verdict)[-1] == misconception
    assert all(finding["message"] for check in verdict["tasks"]["double"]["checks"] for finding in check["findings"])


def test_what_a_cell_defines_before_its_error_is_judged(files):
    verdict = verdict_on(files, double=GOOD["double"] + "\n1 / 0")
    assert points(verdict)["double"] == 3
    verdict = verdict_on(files, double="1 / 0\n" + GOOD["double"])
    first = verdict["tasks"]["double"]["checks"][0]["findings"]
    assert points(verdict)["double"] == 0
    assert "Already when the cell is run" in first[0]["message"] and "`ZeroDivisionError`" in first[0]["message"]


def test_an_error_in_another_cell_is_that_cells(files):
    assert points(verdict_on(files, double="1 / 0")) == {"double": 0, "halve": 1}


# Boxes ------------------------------------------------------------------------------------------------------


def test_each_task_has_a_box_of_its_own_and_all_are_closed(files):
    zygote = FakeZygote()
    verdict_on(files, zygote=zygote)
    assert [sorted(set(box.names) & {"double", "halve"}) for box in zygote.boxes] == [["double"], ["double", "halve"]]
    assert all(box.ended for box in zygote.boxes)


def test_a_cell_that_ends_the_box_costs_its_own_task_only_and_its_time_only_once(files):
    zygote = FakeZygote()
    verdict = verdict_on(files, double="print('bye')\nraise SystemExit('time')", zygote=zygote)
    assert points(verdict) == {"double": 0, "halve": 1} and len(zygote.boxes) == 2
    task = verdict["tasks"]["double"]
    assert (task["ended"], task["printed"], verdict["status"]) == ("time", "bye\n", "graded")
    assert "While the cell was run, your code ran longer than 10 s" in task["checks"][1]["findings"][0]["message"]


def test_a_cell_that_was_left_out_once_is_not_tried_again_for_its_own_task(tmp_path):
    # Tasks in another order than their cells: the deadly cell is met first in another task.
    backwards = CHECKS.replace("ASSIGNMENT = Assignment", "_A = Assignment") + (
        '\nASSIGNMENT = Assignment(name="01", notebook="small", title="Small", tasks=_A.tasks[::-1])\n'
    )
    zygote = FakeZygote()
    verdict = verdict_on(
        read_assignment(small_course(tmp_path, checks=backwards), "01"),
        double="raise SystemExit('memory')",
        zygote=zygote,
    )
    assert points(verdict) == {"halve": 1, "double": 0} and len(zygote.boxes) == 2
    assert "used more memory than allowed" in said(verdict)


# Slow cells -------------------------------------------------------------------------------------------------

FOUR = """
from course_lib.grading.spec import *

ASSIGNMENT = Assignment(name="01", notebook="small", title="Small", tasks=tuple(
    Task(name=name, title=name.title(), checks=(
        agrees("adds one", points=1, reference=lambda x: x + 1, inputs=lambda subject: (subject.random(3),)),
    ))
    for name in ("one", "two", "three", "four")
))
"""
PLUS = "def {name}(x):\n    return x + 1\n"
SLOW = "import time\ntime.sleep(5)\n" + PLUS.format(name="one")
USES = "def {name}(x):\n    return one(x)\n"


@pytest.fixture
def four(tmp_path, monkeypatch):
    """Judges an assignment of four tasks by a clock that sleeping alone moves; answers are right if not given."""
    clock = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(time, "sleep", lambda seconds: clock.append(clock.pop() + seconds))
    names = ("one", "two", "three", "four")
    cells = [cell(name, solution=True) for name in names]
    cells += [cell(f"check-{name}", grade=True, points=1) for name in names]
    files = read_assignment(small_course(tmp_path, checks=FOUR, source=notebook(cells).decode()), "01")

    def judged(*, again=None, files=files, **answers):
        if again is not None:
            monkeypatch.setattr(judge_module, "AGAIN_SECONDS", again)
        zygote = FakeZygote()
        answers = {name: PLUS.format(name=name) for name in names} | answers
        submission = Submission(student="ada", assignment="01", sha256="0" * 64, answers=answers)
        verdict = judge(submission, files, key=KEY, zygote=zygote)
        runs = sum("one" in box.names for box in zygote.boxes)
        return verdict, runs

    return judged


def test_a_slow_cell_earns_its_points_and_is_run_once_where_no_other_needs_it(four):
    verdict, runs = four(one=SLOW)
    assert points(verdict) == dict.fromkeys(("one", "two", "three", "four"), 1) and runs == 1


def test_a_slow_cell_is_run_again_for_the_tasks_that_need_it_alone(four):
    through = "def {name}(x):\n    return two(x)\n"
    verdict, runs = four(one=SLOW, two=USES.format(name="two"), four=through.format(name="four"))
    assert points(verdict) == dict.fromkeys(("one", "two", "three", "four"), 1) and runs == 3


def test_a_quick_cell_is_run_for_all_tasks_behind_it(four):
    verdict, runs = four()
    assert points(verdict) == dict.fromkeys(("one", "two", "three", "four"), 1) and runs == 4


def test_running_slow_cells_again_has_an_end_that_is_told(four):
    uses = {name: USES.format(name=name) for name in ("two", "three", "four")}
    verdict, runs = four(one=SLOW, again=9, **uses)
    assert points(verdict) == {"one": 1, "two": 1, "three": 0, "four": 0} and runs == 2
    first, second = verdict["tasks"]["three"]["checks"][0]["findings"]
    assert first["misconception"] == "a slow cell was left out" and "the one to “One”" in first["message"]
    assert "Take out of that cell what takes its time" in first["hint"]
    assert "`one`, which the answer to “One” defines, but that cell took too long" in second["message"]
    assert json.dumps(four(one=SLOW, again=9, **uses)[0]["tasks"]) == json.dumps(verdict["tasks"])


def test_a_task_that_is_right_without_the_slow_cell_loses_nothing(four):
    safe = "def two(x):\n    try:\n        return one(x)\n    except NameError:\n        return x + 1"
    verdict, runs = four(one=SLOW, two=safe, again=0)
    assert points(verdict)["two"] == 1 and verdict["tasks"]["two"]["checks"][0]["findings"] == [] and runs == 1


def test_a_slow_cell_counts_for_its_own_task_whatever_was_used_up(four):
    slow = {name: SLOW + PLUS.format(name=name) for name in ("two", "three", "four")}
    verdict, _ = four(one=SLOW, again=0, **slow)
    assert points(verdict) == dict.fromkeys(("one", "two", "three", "four"), 1)


def test_a_slow_cell_that_was_met_in_another_task_still_counts_for_its_own(four, tmp_path):
    backwards = FOUR.replace('("one", "two", "three", "four")', '("four", "three", "two", "one")')
    source = (tmp_path / "source" / "01" / "small.ipynb").read_text()
    files = read_assignment(small_course(tmp_path, checks=backwards, source=source), "01")
    verdict, runs = four(files=files, one=SLOW)
    assert points(verdict) == dict.fromkeys(("one", "two", "three", "four"), 1) and runs == 2


def test_a_cell_that_gets_slow_later_is_left_out_from_then_on(four):
    changing = "import sys, time\ntime.sleep(5 * hasattr(sys, 'seen'))\nsys.seen = 1\n" + PLUS.format(name="one")
    try:
        verdict, runs = four(one=changing, four=USES.format(name="four"), again=4)
    finally:
        vars(sys).pop("seen", None)
    assert points(verdict) == {"one": 1, "two": 1, "three": 1, "four": 0} and runs == 2


def test_a_cell_that_never_ends_is_not_called_slow(four):
    ends = SLOW + "raise SystemExit('time')"
    verdict, _ = four(again=4, one=ends, two=USES.format(name="two"))
    assert points(verdict) == {"one": 0, "two": 0, "three": 1, "four": 1}
    assert "left out" not in said(verdict) and "ran longer than 10 s" in said(verdict)


def test_cells_whose_names_cannot_be_found_are_taken_to_need_all(four, monkeypatch):
    real = FakeBox.call
    monkeypatch.setattr(FakeBox, "call", lambda box, to, *a, **b: 7 if to == "needs" else real(box, to, *a, **b))
    verdict, runs = four(one=SLOW, four=USES.format(name="four"))
    assert points(verdict)["four"] == 1 and runs == 4


@pytest.mark.needs("sandbox")
def test_what_needs_a_slow_cell_is_found_in_the_sandbox(files, zygote, monkeypatch):
    monkeypatch.setattr(judge_module, "QUICK_SECONDS", 0.2)
    slow = "import time\ntime.sleep(0.3)\nprint('run')\n" + GOOD["double"]
    verdict = verdict_on(files, double=slow, zygote=zygote)
    assert points(verdict) == {"double": 3, "halve": 1} and seen(verdict, "halve") == ""
    verdict = verdict_on(files, double=slow, halve="def halve(x):\n    return double(x) / 4", zygote=zygote)
    assert points(verdict) == {"double": 3, "halve": 1} and seen(verdict, "halve") == "run\n"


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("time", "ran longer than 5 s"),
        ("cpu", "used more computing time than allowed"),
        ("memory", "used more memory than allowed"),
        ("processes", "started more processes or threads than allowed"),
        ("exit", "ended the process"),
        ("protocol", "disturbed the connection to the judge"),
        ("something new", "was stopped by the sandbox"),
    ],
)
def test_the_end_of_the_box_costs_that_check_and_all_later_ones(files, reason, words):
    answer = f"def double(x):\n    if x.ndim == 1: raise SystemExit({reason!r})\n    return 2 * x"
    verdict = verdict_on(files, double=answer)
    assert points(verdict) == {"double": 2, "halve": 1} and verdict["tasks"]["double"]["ended"] == reason
    assert f"Your code {words}." in verdict["tasks"]["double"]["checks"][1]["findings"][0]["message"]
    hint = verdict["tasks"]["double"]["checks"][1]["findings"][0]["hint"]
    assert ("fewer steps, a smaller network" in hint) == (reason in ("time", "cpu"))
    verdict = verdict_on(files, double=f"def double(x):\n    raise SystemExit({reason!r})")
    assert points(verdict) == {"double": 0, "halve": 1}
    assert findings(verdict) == findings(verdict, check=1) == ["your code was ended"]


def test_an_end_that_a_check_overlooks_still_costs_it(tmp_path):
    checks = CHECKS.replace("wrong = (probe.tensor", "wrong = _careless(probe, x) or (probe.tensor") + (
        "\ndef _careless(probe, x):\n    try:\n        probe.call(x)\n    except Exception:\n        pass\n"
    )
    checks = checks.replace(
        "    wrong = _careless", "    if _careless(probe, x) is None: return []\n    wrong = _careless"
    )
    files = read_assignment(small_course(tmp_path, checks=checks), "01")
    assert points(verdict_on(files, double="def double(x):\n    raise SystemExit('exit')"))["double"] == 0


def test_the_assignments_own_error_asks_for_a_persons_attention(tmp_path):
    cells = [cell("setup", source="1 / 0", locked=True), cell("double", source=DOUBLE, solution=True)]
    cells += [cell("check-double", grade=True, points=3), cell("halve", source=HALVE, solution=True)]
    broken = notebook([*cells, cell("check-halve", grade=True, points=1)]).decode()
    verdict = verdict_on(read_assignment(small_course(tmp_path, source=broken), "01"))
    assert verdict["status"] == "needs attention" and points(verdict) == {"double": 3, "halve": 0}
    assert verdict["notes"] == ["The assignment's own cell 'setup' stopped with an error (ZeroDivisionError)."]


def test_trusted_students_are_stamped_into_the_verdict(files):
    assert verdict_on(files, zygote=FakeZygote(trusted=True))["sandbox"] == "none: trusted students"


def test_an_empty_key_is_refused(files):
    with pytest.raises(ValueError, match="key is empty"):
        verdict_on(files, key=b"")


# Hidden inputs ----------------------------------------------------------------------------------------------

SPY = "def double(x):\n    print(x.tolist())\n    return 2 * x"


def seen(verdict, task="double"):
    return verdict["tasks"][task]["printed"]


def test_the_same_submission_gets_the_same_verdict(files):
    first, second = (verdict_on(files, double=SPY) | {"seconds": 0} for _ in range(2))
    assert first == second and len(seen(first)) > 50


def test_inputs_depend_on_the_key_and_on_all_answers(files):
    inputs = [seen(verdict_on(files, double=SPY)), seen(verdict_on(files, double=SPY, key=b"another"))]
    inputs += [seen(verdict_on(files, double=SPY + "\n")), seen(verdict_on(files, double=SPY, halve="1"))]
    assert len(set(inputs)) == 4


def test_inputs_do_not_depend_on_the_student_and_on_the_order_of_checks(files, tmp_path):
    submission = Submission(student="bob", assignment="01", sha256="1" * 64, answers=GOOD | {"double": SPY})
    first = seen(judge(submission, files, key=KEY, zygote=FakeZygote()))
    assert first == seen(verdict_on(files, double=SPY))
    turned = CHECKS.replace("property_check(DOUBLES, points=2),\n", "").replace(
        "(1e6 * subject.random(3))),\n", "(1e6 * subject.random(3))), property_check(DOUBLES, points=2),\n"
    )
    second = seen(verdict_on(read_assignment(small_course(tmp_path, checks=turned), "01"), double=SPY))
    assert first.splitlines() == second.splitlines()[::-1]


def test_each_check_has_inputs_of_its_own():
    seeds = {seed_for(KEY, *labels, answers=GOOD) for labels in (("a", "b"), ("a", "c"), ("d", "b"), ("ab",))}
    assert len(seeds) == 4
    assert seed_for(KEY, "a", "b", answers=dict(reversed(GOOD.items()))) in seeds


CARRIERS = [
    "raise ValueError(repr(x.tolist()))",
    "raise type('N' + '_'.join(str(v) for v in x.flatten().tolist()), (Exception,), {})(x.tolist())",
    "return type('N' + '_'.join(str(v) for v in x.flatten().tolist()), (), {})()",
    "return torch.zeros([int(abs(v) * 1000) % 999 + 1001 for v in x.flatten().tolist()[:2]])",
    "return torch.zeros(int(abs(x.flatten()[0]) * 1000) % 999 + 1001).long()",
    "return repr(x.tolist())",
    "return [x, x]",
    "return x + 1",
    "return {str(x.tolist()): x}",
    "return float(x.flatten()[0])",
    "return x * float('nan')",
    "x.copy_(7 * x)\n    return x",
    "raise SystemExit('exit ' + repr(x.tolist()))",
    "print(x.tolist())\n    return 2 * x * (1 + (x.ndim == 1))",
]


@pytest.mark.parametrize("carrier", CARRIERS)
def test_nothing_of_the_hidden_inputs_reaches_what_students_read(files, carrier):
    spied = f"def double(x):\n    print(x.tolist())\n    {carrier}"
    verdict = verdict_on(files, double=spied)
    numbers = re.findall(r"\d+\.\d+", seen(verdict))
    assert len(numbers) >= 6 or "exit" in carrier
    words = said(verdict)
    words = words.replace(verdict["tasks"]["double"]["ended"] or "-", "")  # a real box ends for reasons of ours only
    for number in numbers:
        assert number not in words and f"{float(number):.2g}" not in re.findall(r"\d+\.\d+", words)
        assert str(int(float(number) * 1000) % 999 + 1001) not in words
    assert points(verdict)["double"] in (0, 2)


def test_texts_do_not_depend_on_the_inputs(files):
    for carrier in CARRIERS:
        answer = f"def double(x):\n    {carrier}"
        one, other = (verdict_on(files, double=answer, key=key) for key in (b"1", b"2"))
        if "exit" not in carrier:
            assert said(one) == said(other)


@pytest.mark.parametrize(
    ("answer", "misconception"),
    [
        ("return x ** 2 + 1", UNEXPLAINED),
        ("return x.exp() / x.exp().sum(dim=0)", "softmax over the wrong axis"),
        ("return x.double().numpy()", WRONG_TYPE),
        ("return x[0]", WRONG_SHAPE),
        ("raise LookupError(x)", STOPPED),
    ],
)
def test_a_property_check_of_the_course_says_nothing_of_its_inputs(tmp_path, answer, misconception):
    extra = (
        "from course_lib.tasks import Task as Table\n"
        "from course_lib.tasks.attention import FORMULA, SOFTMAX_MISTAKES, softmax\n"
        "SOFTMAX = Table(name='double', title='', asks='x', reference=softmax, cases=(FORMULA,),"
        " mistakes=SOFTMAX_MISTAKES)"
    )
    checks = "property_check(SOFTMAX.all_checks[0], points=3),"
    (finding,) = (
        judged_by(tmp_path, checks, extra=extra, double=f"def double(x):\n    {answer}")["tasks"]["double"]["checks"][0]
    )["findings"]
    assert finding["misconception"] == misconception
    assert finding["message"] and not re.search(r"[0-9]", finding["message"] + finding["hint"].replace("dim=-1", ""))


def test_what_was_printed_is_cut_and_made_visible(files):
    verdict = verdict_on(files, double="print('\\x1b[31m\\u202e' + 'a' * 5000)\n" + GOOD["double"])
    assert seen(verdict).startswith("⟨U+001B⟩[31m⟨U+202E⟩aaa") and seen(verdict).count("a") < 2000


# Checks at fault --------------------------------------------------------------------------------------------


def judged_by(tmp_path, double_checks, *, zygote=None, extra="", tags_points=None, **answers):
    """The verdict where the task "double" has other checks; its points are made to fit."""
    lines = CHECKS.replace(
        CHECKS[CHECKS.index("        property_check(") : CHECKS.index('    )),\n    Task(name="halve')],
        double_checks + "\n",
    )
    lines = lines.replace("ASSIGNMENT =", extra + "\nASSIGNMENT =")
    text = json.loads(notebook([]))
    text["cells"] = [
        cell("setup", source=SETUP, locked=True),
        cell("double", source=DOUBLE, solution=True),
        cell("check-double", grade=True, points=tags_points or 3),
        cell("halve", source=HALVE, solution=True),
        cell("check-halve", grade=True, points=1),
    ]
    files = read_assignment(small_course(tmp_path, checks=lines, source=json.dumps(text)), "01")
    return verdict_on(files, zygote=zygote, **answers)


@pytest.mark.parametrize(
    "body",
    ["1 / 0", "return []", "subject.call(subject.random(2)); return None", "subject.call(1); return ['x']", "return 1"],
)
def test_a_check_that_fails_itself_gives_nothing_and_asks_for_a_person(tmp_path, body):
    faulty = f"def _faulty(subject):\n    {body}\n"
    checks = "HiddenCheck(name='faulty', points=2, run=_faulty), property_check(DOUBLES, points=1),"
    verdict = judged_by(tmp_path, checks, extra=faulty)
    assert verdict["status"] == "needs attention" and points(verdict) == {"double": 1, "halve": 1}
    assert findings(verdict) == ["could not be judged"] and "'faulty' of task 'double'" in verdict["notes"][0]


@pytest.mark.parametrize("reference", ["torch.zeros_like", "lambda x: x[:0]", "lambda x: x / 0 * 0"])
def test_a_reference_that_a_shape_alone_would_match_gives_no_points(tmp_path, reference):
    extra = f"import torch\nREFERENCE = {reference}\n"
    checks = "agrees('a', points=3, inputs=lambda s: (s.random(3),), reference=REFERENCE),"
    verdict = judged_by(tmp_path, checks, extra=extra, double="def double(x):\n    return REFERENCE(x)")
    assert points(verdict)["double"] == 0 and verdict["status"] == "needs attention"


def test_a_check_waits_for_those_that_it_needs(tmp_path):
    checks = (
        "property_check(DOUBLES, points=1),"
        "HiddenCheck(name='any', points=2, needs=('doubles small numbers',), run=lambda s: s.call(s.random(1)) and []),"
    )
    extra = "from course_lib.grading.spec import HiddenCheck"
    checks = checks.replace("s.call(s.random(1)) and []", "[s.call(s.random(1)), []][1]")
    assert points(judged_by(tmp_path, checks, extra=extra))["double"] == 3
    verdict = judged_by(tmp_path, checks, extra=extra, double="def double(x):\n    return x")
    assert points(verdict)["double"] == 0 and findings(verdict, check=1) == ["not looked at"]


def test_a_finding_speaks_of_its_own_error_and_not_of_the_last(tmp_path):
    extra = """
from course_lib.tasks.findings import Fault

def _asks_again(subject):
    try:
        return [subject.tensor(subject.random(3)), []][1]
    except Fault:
        subject.call(1)
        raise
"""
    checks = "HiddenCheck(name='asks again', points=3, run=_asks_again),"
    answer = "def double(x):\n    return {}[x] if torch.is_tensor(x) else 2"
    (found,) = judged_by(tmp_path, checks, extra=extra, double=answer)["tasks"]["double"]["checks"][0]["findings"]
    assert "`KeyError`" in found["message"]


def test_an_answer_that_agrees_with_a_known_mistake_is_told_so(tmp_path):
    checks = (
        "agrees('a', points=3, inputs=lambda s: given(s.random(3)), reference=lambda x: 2 * x,"
        "mistakes=(Mistake(misconception='squared', formula=lambda x: x * x, message='It is squared.'),)),"
    )
    verdict = judged_by(tmp_path, checks, double="def double(x):\n    return x ** 2")
    assert findings(verdict) == ["squared"] and points(verdict)["double"] == 0


@pytest.mark.parametrize("pack", ["[x]", "(x, 1)", "{'a': [x]}", "x.numpy()"])
@pytest.mark.parametrize("ask", ["subject.call(given)", "subject.make('double', given)"])
def test_an_answer_cannot_overwrite_the_judges_own_inputs(tmp_path, pack, ask):
    extra = f"""
import torch

def _trusts(subject):
    x = subject.random(3)
    before, given = x.clone(), {pack}
    try:
        {ask}
        raise RuntimeError("not noticed")
    finally:
        if not torch.equal(x, before):
            raise RuntimeError("overwritten")
"""
    answer = """def double(x):
    while not hasattr(x, "shape"):
        x = x["a"] if isinstance(x, dict) else x[0]
    x[:] = 0"""
    checks = "HiddenCheck(name='trusts', points=3, run=_trusts),"
    assert findings(judged_by(tmp_path, checks, extra=extra, double=answer)) == [CHANGES_INPUT]


def test_a_check_can_ask_for_other_functions_methods_and_numbers(tmp_path):
    extra = """
def _asks(subject):
    kept = subject.make("Kept", 3)
    assert subject.function("three").number() == 3.0
    assert kept.method("double_it", 2) == 12
    assert all(0 <= n < 5 for n in subject.integers(0, 5, 20).tolist())
    return []
"""
    answer = """
import torch


def three():
    return torch.tensor(3)


class Kept:
    def __init__(self, size):
        self.size = size

    def double_it(self, times):
        return 2 * times * self.size
"""
    verdict = judged_by(tmp_path, "HiddenCheck(name='a', points=3, run=_asks),", extra=extra, double=answer)
    assert points(verdict)["double"] == 3


def test_what_is_made_once_does_not_depend_on_who_asks_first(tmp_path):
    extra = """
def _once(subject):
    subject.once("shared", lambda shared: shared.call(shared.random(2)))
    return []

ONE, TWO = (HiddenCheck(name=name, points=1.5, run=_once) for name in ("one", "two"))
"""
    first, second = (
        seen(judged_by(tmp_path, checks, extra=extra, double=SPY)) for checks in ("ONE, TWO,", "TWO, ONE,")
    )
    assert first == second and len(first.splitlines()) == 1


# Modules and training ---------------------------------------------------------------------------------------

LINEAR = """
import torch
from torch import nn


class Twice(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.proj = nn.Linear(size, 2)

    def forward(self, x):
        return 2 * self.proj(x)
"""
MODULE = """module_agrees("With your parameters it computes 2 (W x + b)", points=3, build=(4,), reference=Twice,
              inputs=lambda s: (s.random(3, 4),), gradients=True, function="Twice"),"""


@pytest.mark.parametrize(
    ("change", "misconception"),
    [
        (("", ""), None),
        (("2 * ", ""), "result differs from the reference"),
        (("self.proj(x)", "self.proj(x).detach()"), STOPPED),
        (
            ("self.proj(x)", "(self.proj(x) - self.proj.bias + self.proj.bias.detach())"),
            "gradient differs from the reference",
        ),
        (("self.proj", "self.lin"), OTHER_PARAMETERS),
        (("nn.Linear(size, 2)", "nn.Linear(size, 2, bias=False)"), OTHER_PARAMETERS),
        (("nn.Linear(size, 2)", "nn.Linear(size, 3)"), OTHER_PARAMETERS),
        (("        super().__init__()\n", ""), STOPPED),
        (("2 * self.proj(x)", "torch.zeros(3, 2)"), "result differs from the reference"),
        (("nn.Linear(size, 2)", "nn.Linear(size, 2)\n        self.register_buffer('mine', torch.ones(3))"), None),
    ],
)
def test_a_module_is_judged_with_the_judges_own_parameters(tmp_path, change, misconception):
    verdict = judged_by(tmp_path, MODULE, extra=LINEAR, double=LINEAR.replace(*change))
    assert findings(verdict) == ([misconception] if misconception else [])
    assert points(verdict)["double"] == (0 if misconception else 3)


def test_gradients_are_compared_argument_by_argument(tmp_path):
    checks = """module_agrees("Gradients", points=3, build=(), reference=Scaled, gradients=True, function="Scaled",
                             inputs=lambda s: (3, s.random(2), s.random(2))),"""
    module = """
import torch


class Scaled(torch.nn.Module):
    def forward(self, times, x, y):
        return times * x * y
"""
    assert points(judged_by(tmp_path, checks, extra=module, double=module))["double"] == 3
    detached = module.replace("* y", "* y.detach()")
    assert points(judged_by(tmp_path, checks, extra=module, double=detached))["double"] == 0


TRAINING = """
import torch


def _train(subject):
    x = subject.random(64, 2)
    return subject.make("fit", x, (x[:, 0] > 0).long(), seconds=20)


def _score(subject, model):
    x = subject.random(200, 2)
    return (model.tensor(x, shape=(200, 2)).argmax(dim=1) == (x[:, 0] > 0)).float().mean()
"""
LEVELS = 'learns("At least {level:.0%} are right", levels={0.7: 1, 0.95: 2}, train=_train, score=_score)'
FIT = """
import torch
print("training")


def fit(x, y):
    print("one training")
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    for _ in range(STEPS):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    return model
"""


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (FIT.replace("STEPS", "150"), 3),
        ("def fit(x, y):\n    return lambda x: torch.stack([-x[:, 0] - 0.4, x[:, 0] - 0.4 * x[:, 0].abs()], 1)", 1),
        ("def fit(x, y):\n    return lambda x: torch.zeros(len(x), 2)", 0),
        ("def fit(x, y):\n    return lambda x: torch.zeros(len(x), 2) * float('nan')", 0),
        ("def fit(x, y):\n    return None", 0),
        ("def fit(x, y):\n    raise ValueError", 0),
    ],
)
def test_a_training_is_scored_on_held_out_inputs_by_levels(tmp_path, answer, expected):
    verdict = judged_by(tmp_path, f"*{LEVELS},", extra=TRAINING, double=answer)
    assert points(verdict)["double"] == expected and verdict["status"] == "graded"
    assert seen(verdict).count("one training") <= 1


def test_a_score_that_is_no_number_reaches_no_level(tmp_path):
    levels = LEVELS.replace("score=_score", "score=lambda *_: float('nan')") + ","
    assert points(judged_by(tmp_path, f"*{levels}", extra=TRAINING, double=FIT.replace("STEPS", "1")))["double"] == 0


# The real box -----------------------------------------------------------------------------------------------


@pytest.mark.needs("sandbox")
@pytest.mark.parametrize(
    ("answer", "expected", "ended"),
    [
        (GOOD["double"], 3, None),
        ("import os\nos._exit(0)", 0, "exit"),
        ("def double(x):\n    import os\n    os._exit(0)", 0, "exit"),
        ("def double(x):\n    if x.ndim == 1: import os; os.abort()\n    return 2 * x", 2, "exit"),
        ("def double(x):\n    return torch.zeros(10 ** 12)", 0, None),
        ("def double(x):\n    x *= 2\n    return x", 0, None),
    ],
)
def test_in_the_real_box_too(files, zygote, answer, expected, ended):
    verdict = verdict_on(files, zygote=zygote, double=answer)
    assert points(verdict) == {"double": expected, "halve": 1}
    assert verdict["tasks"]["double"]["ended"] == ended


@pytest.mark.needs("sandbox")
def test_a_module_and_its_gradients_come_through_the_real_wall(tmp_path, zygote):
    assert points(judged_by(tmp_path, MODULE, extra=LINEAR, double=LINEAR, zygote=zygote))["double"] == 3


FLOWS = """
from course_lib.tasks import Case, gradients
from course_lib.tasks import Task as Table

TWICE = Table(
    name="double",
    title="",
    asks="x",
    reference=lambda x: 2 * x,
    cases=(Case("twice", lambda draw: (draw(2, 3),)),),
    also=(gradients,),
)
"""


@pytest.mark.needs("sandbox")
@pytest.mark.parametrize(
    ("answer", "misconception"),
    [
        (GOOD["double"], None),
        ("def double(x):\n    return torch.tensor((2 * x).tolist())", CUT_OFF),
        ("def double(x):\n    return torch.from_numpy(2 * x.numpy())", CUT_OFF),
        ("def double(x):\n    return 2 * x.detach() + torch.ones(3, requires_grad=True)", GRADIENT_LOST),
        ("def double(x):\n    return x + x.detach()", GRADIENT_DIFFERS),
        ("def double(x):\n    return 2 * nothing", STOPPED),
    ],
)
def test_a_table_follows_gradients_through_the_wall(tmp_path, zygote, answer, misconception):
    check = "property_check(TWICE.all_checks[1], points=3),"
    verdict = judged_by(tmp_path, check, extra=FLOWS, double=answer, zygote=zygote)
    assert findings(verdict) == ([misconception] if misconception else []) and verdict["status"] == "graded"
    assert points(verdict) == {"double": 0 if misconception else 3, "halve": 1}


@pytest.mark.needs("sandbox")
def test_a_training_in_the_real_box_is_repeated_to_the_last_check(tmp_path, zygote):
    answer = FIT.replace("STEPS", "150")
    first, second = (
        judged_by(tmp_path, f"*{LEVELS},", extra=TRAINING, double=answer, zygote=zygote) | {"seconds": 0}
        for _ in range(2)
    )
    assert first == second and points(first)["double"] == 3


@pytest.mark.needs("sandbox")
def test_time_that_a_task_uses_up_ends_its_box(tmp_path, zygote):
    slow = "def double(x):\n    import time\n    time.sleep(1.2)\n    return 2 * x"
    verdict = judged_by(
        tmp_path,
        "property_check(DOUBLES, points=2, seconds=5), property_check(DOUBLES, name='again', points=1),"
        "), seconds=2, limits=Limits(memory=1 << 30",
        extra="from course_lib.grading.sandbox import Limits",
        double=slow,
        zygote=zygote,
    )
    assert points(verdict) == {"double": 2, "halve": 1} and verdict["tasks"]["double"]["ended"] == "time"
    assert "ran longer than 2 s" in said(verdict)


# Names that are not defined ---------------------------------------------------------------------------------


def test_a_name_that_nothing_defines_is_told(files):
    halve = (
        "def halve(x):\n    try:\n        return helper(x, factor)\n    except ValueError as e:\n        return str(e)"
    )
    verdict = verdict_on(files, halve=halve)
    assert "it uses `helper`, which is not defined." in stopped(verdict, "halve")
    assert "Move it into the answer." in said(verdict) and points(verdict) == {"double": 3, "halve": 0}
    verdict = verdict_on(files, halve="half = 1 / faktor\n\n" + GOOD["halve"])
    assert "Already when the cell is run: Your code stopped with a `NameError`: it uses `faktor`" in said(verdict)


@pytest.mark.parametrize(
    ("double", "told"),
    [
        ("def double(x)\n    return 2 * x", "did not run to its end"),
        ("1 / 0\ndef double(x):\n    return 2 * x", "did not run to its end"),
        ("raise SystemExit('time')\ndef double(x):\n    return 2 * x", "did not run to its end"),
    ],
)
def test_a_name_of_another_answer_that_did_not_run_leads_there(files, double, told):
    verdict = verdict_on(files, double=double, halve="def halve(x):\n    return double(x) / 4")
    assert f"`double`, which the answer to “Double” defines, but that cell {told}" in stopped(verdict, "halve")


def test_a_name_that_a_later_answer_defines_is_told_as_such(files):
    verdict = verdict_on(files, double="def double(x):\n    return 4 * halve(x)")
    assert "`halve`, which the answer to “Halve” defines, and that comes later." in stopped(verdict, "double")


def test_a_function_that_is_not_called_as_in_the_task_is_told(files):
    verdict = verdict_on(files, double="def twice(x):\n    return 2 * x")
    assert "the task asks for `double`, which the cell does not define." in stopped(verdict, "double")
    assert "letter for letter" in said(verdict)


def test_a_function_behind_an_error_of_its_cell_is_not_taken_for_a_missing_one(files):
    verdict = verdict_on(files, double="1 / 0\n" + GOOD["double"])
    first, second = verdict["tasks"]["double"]["checks"][0]["findings"]
    assert "`ZeroDivisionError`" in first["message"] and "after restarting the kernel" in first["hint"]
    assert "the cell stopped before all its names were defined." in second["message"]
    assert second["hint"] == "Repair what stops the cell first."


@pytest.mark.needs("sandbox")
@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("%matplotlib inline", "lines that begin with `%` or `!` are no Python"),
        ("import asyncio\nawait asyncio.sleep(0)", "`await` outside of a function"),
        ("torch.zeros(1).cuda()", "judged without a GPU"),
        ("import pdb\npdb.set_trace()", "Leave out `set_trace()`"),
        ("import warnings\nwarnings.simplefilter('error')\nwarnings.warn('slow')", "a warning, which counts as"),
        ("input()", "an `EOFError`: it waits for something to be typed in."),
        ("input()", "Leave out `input()`: nobody types there."),
        ("exit()", "an answer must not end Python"),
    ],
)
def test_what_works_in_a_notebook_alone_is_told(files, zygote, line, words):
    assert words in said(verdict_on(files, double=f"{line}\n1 / 0", zygote=zygote))


def test_the_errors_own_name_is_never_told(files):
    halve = "def halve(x):\n    raise NameError(f'name {x.sum()} is not defined', name=str(float(x.sum())))"
    verdict = verdict_on(files, halve=halve)
    assert "it uses a name that is not defined" in stopped(verdict, "halve")


def test_what_is_told_of_names_is_a_word_of_the_answer(files, monkeypatch):
    real, lies = FakeBox.call, ["secret", "x" * 99, 7, [], "halve"]
    monkeypatch.setattr(FakeBox, "call", lambda box, to, *a, **b: lies if to == "missing" else real(box, to, *a, **b))
    verdict = verdict_on(files, halve="def halve(x):\n    raise NameError  # " + "x" * 99)
    assert "it uses `halve`, which" in stopped(verdict, "halve")


def test_a_sandbox_that_is_lost_while_names_are_looked_up_is_no_fault_of_the_answer(files, monkeypatch):
    asked = []

    def lose(*question):
        asked.append(question)
        if len(asked) == 1:
            raise SandboxError("lost")

    monkeypatch.setattr(_Sitting, "_ask_names", lose)
    with pytest.raises(SandboxError):
        verdict_on(files, halve="def halve(x):\n    return helper(x)")


@pytest.mark.needs("sandbox")
def test_names_are_looked_up_in_the_sandbox(files, zygote):
    verdict = verdict_on(files, halve="def halve(x):\n    return helper(x)", zygote=zygote)
    assert "it uses `helper`, which is not defined." in stopped(verdict, "halve")
