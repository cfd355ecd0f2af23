"""The judge: who deserves points gets them, nobody else; and an assignment's proof."""

import dataclasses
import re

import pytest

from course_lib.data.place import CannotStart
from course_lib.grading import judge as judging
from course_lib.grading.batch import grade
from course_lib.grading.export import export
from course_lib.grading.feedback import feedback
from course_lib.grading.intake import Submission
from course_lib.grading.judge import ATTENTION, GRADED, NO_ANSWER, NOT_JUDGED, judge
from course_lib.grading.leaderboard import leaderboard
from course_lib.grading.marking import marking
from course_lib.grading.prove import prove
from course_lib.grading.release import release
from course_lib.grading.sandbox import Zygote
from course_lib.grading.spec import Assignment, AssignmentFiles, load, read_assignment
from course_lib.grading.stripped import STUB, clear_solution
from course_lib.grading.subject import seed_for
from course_lib.tasks import Check, Task
from tests.grading import tiny
from tests.grading.courses import NAME, STUBS, SUMS_CHECKS, cell, check, setup, small_course, solution

needs_sandbox = pytest.mark.needs("sandbox")
KEY = b"the key of the tests"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return read_assignment(tiny.write_course(tmp_path_factory.mktemp("course")).root, tiny.NAME)


def answered(files, **answers):
    given = {name: text for name, text in (tiny.RIGHT | answers).items() if text is not None}
    return Submission(student="ada", assignment=files.name, sha256="0" * 64, answers=given)


@pytest.fixture
def judged(files, zygote):
    def verdict(key=KEY, files=files, **answers):
        return judge(answered(files, **answers), files, key=key, zygote=zygote)

    return verdict


def points(verdict):
    return {name: task["points"] for name, task in verdict["tasks"].items()}


def findings(verdict, task):
    return [found for check in verdict["tasks"][task]["checks"] for found in check["findings"]]


def test_right_answers_earn_all_points_and_say_nothing(judged):
    verdict = judged()
    assert points(verdict) == tiny.FULL and (verdict["status"], verdict["notes"]) == (GRADED, [])
    assert [findings(verdict, task) for task in tiny.FULL] == [[], [], []]


@pytest.mark.parametrize("text", ["", "  \n", STUB, None, tiny.RIGHT["softmax"] and STUB + "\n\n"])
def test_no_answer_is_no_points_and_no_attention(judged, text):
    verdict = judged(softmax=text)
    assert {found["misconception"] for found in findings(verdict, "softmax")} == {NO_ANSWER}
    assert (verdict["tasks"]["softmax"]["answered"], verdict["status"]) == (False, GRADED)


def test_a_known_mistake_is_named_and_an_unknown_one_shown_by_how_much(judged):
    found = findings(judged(softmax="def softmax(x):\n    return x.exp() / x.exp().sum(0)\n"), "softmax")
    assert found[0]["misconception"] == "over the wrong axis"
    found = findings(judged(softmax="def softmax(x):\n    return x\n"), "softmax")
    assert "The result is off by up to" in found[0]["message"] and found[0]["hint"]


def test_an_error_in_the_cell_costs_only_what_it_breaks_and_is_told_first(judged):
    verdict = judged(attention=tiny.RIGHT["attention"] + "1 / 0\n")
    assert points(verdict) == tiny.FULL
    verdict = judged(attention="1 / 0\n" + tiny.RIGHT["attention"])
    first, second, *_ = findings(verdict, "attention")
    assert "Already when the cell is run" in first["message"] and "none that you have added" in second["hint"]
    assert "line 1, `1 / 0`: ZeroDivisionError" in first["message"]
    assert "NameError: name 'attention' is not defined" in second["message"]
    assert points(verdict)["Affine"] == 2.0


def test_equal_submissions_get_equal_verdicts_and_other_answers_other_inputs(judged):
    text = "def softmax(x):\n    raise ValueError(x.sum().item())\n"
    said = [findings(verdict, "softmax")[0]["message"] for verdict in (judged(softmax=text), judged(softmax=text))]
    assert said[0] == said[1]
    assert findings(judged(softmax=text, Affine=None), "softmax")[0]["message"] != said[0]
    assert findings(judged(b"another key", softmax=text), "softmax")[0]["message"] != said[0]


def test_seeds_depend_on_the_key_the_labels_and_every_answer():
    seeds = [
        seed_for(key, *labels, answers=answers)
        for key in (b"1", b"2")
        for labels in (("a", "bc"), ("ab", "c"))
        for answers in ({"x": "1"}, {"x": "2"}, {"x": "1", "y": ""})
    ]
    assert len(set(seeds)) == 12 and all(0 <= seed < 1 << 63 for seed in seeds)


def test_each_cell_is_run_once_and_a_task_cannot_change_what_the_next_one_sees(judged):
    count = "import torch\ntorch.ran = 1 + getattr(torch, 'ran', 0)\n" + tiny.RIGHT["softmax"]
    spoil = "def attention(q, k, v):\n    global softmax\n    softmax = None\n    return v\n"
    after = "assert torch.ran == 1\nold = softmax\n" + tiny.RIGHT["Affine"].replace("return x", "old(x); return x")
    verdict = judged(softmax=count, attention=spoil, Affine=after)
    assert points(verdict)["Affine"] == 2.0


def test_after_a_task_that_ended_the_box_the_cells_before_are_run_again(judged):
    verdict = judged(softmax=tiny.RIGHT["softmax"], attention="def attention(q, k, v):\n    while True: pass\n",
                     Affine="softmax(torch.ones(2))\n" + tiny.RIGHT["Affine"])  # fmt: skip
    assert points(verdict) == {"softmax": 2.0, "attention": 0.0, "Affine": 2.0}
    assert "1 s of processor time" in findings(verdict, "attention")[0]["message"]


def test_running_cells_again_has_an_end(judged, monkeypatch):
    monkeypatch.setattr(judging._Sitting.__dataclass_fields__["again"], "default", 0.0)
    monkeypatch.setattr(judging._Sitting, "again", 0.0)
    verdict = judged(attention="def attention(q, k, v):\n    os._exit(0)\n", softmax="os.kill(os.getpid(), 9)")
    assert points(verdict)["softmax"] == 0.0


def test_what_was_tried_below_an_answer_and_takes_too_long_costs_nothing(judged, monkeypatch):
    monkeypatch.setattr(judging, "LOAD_SECONDS", 0.5)
    tried = tiny.RIGHT["softmax"] + "rows = 3\nfor _ in iter(int, 1):\n    softmax(torch.ones(rows))\n"
    assert points(judged(softmax=tried)) == tiny.FULL
    told = findings(judged(softmax="while True: pass\n"), "softmax")
    assert "NameError: name 'softmax' is not defined" in told[0]["message"]
    told = findings(judged(softmax="class softmax:\n    while True: pass\n"), "softmax")
    assert "While the cell was run, your code used more than 0.5 s" in told[0]["message"]


def test_a_helper_may_stand_in_an_answer_further_down(judged):
    softmax = tiny.RIGHT["softmax"].replace("(x - x.amax(-1, keepdim=True)).exp()", "powers_of(x)")
    helper = "def powers_of(x):\n    return (x - x.amax(-1, keepdim=True)).exp()\n"
    assert points(judged(softmax=softmax, Affine=tiny.RIGHT["Affine"] + helper)) == tiny.FULL
    told = findings(judged(softmax=softmax), "softmax")
    assert "NameError: name 'powers_of' is not defined" in told[0]["message"]


def test_a_cell_that_stops_gives_its_memory_back(judged):
    large = "kept = torch.ones(100_000_000)\nmore = [torch.zeros(400_000_000)]\nmore[1]\n"
    needs = tiny.RIGHT["Affine"].replace("return x", "torch.zeros(500_000_000)\n        return x")
    assert points(judged(softmax=tiny.RIGHT["softmax"] + large, Affine=needs)) == tiny.FULL


def test_a_slip_in_init_is_told_with_the_arguments_of_init(judged):
    (told,) = findings(judged(Affine=tiny.RIGHT["Affine"].replace("torch.ones(dim)", "torch.ones(dmi)")), "Affine")
    assert re.search(r"With dim = \d your function stopped", told["message"])
    assert "'dmi' is not defined" in told["message"]


def test_an_answer_that_fails_the_visible_example_earns_nothing_in_its_task(tmp_path, zygote):
    example = 'asks="x", example=((([1.5],), [3.0]),),'  # the right answer is the notebook's, where no other is given
    checks = SUMS_CHECKS.replace('asks="x", reference=lambda x: 2 * x,', example)
    files = read_assignment(small_course(tmp_path, checks=checks).root, NAME)
    for answer, earned in (("2 * x", 2), ("2 * x if x.numel() > 1 else x", 0)):
        answers = {"add": "def add(a, b): return a + b", "double": f"def double(x):\n    return {answer}"}
        submission = Submission(student="a", assignment=NAME, sha256="", answers=answers)
        found = judge(submission, files, key=KEY, zygote=zygote)
        assert points(found) == {"add": 3, "double": earned}
    assert {one["misconception"] for one in findings(found, "double")} == {"another result than by hand"}


def test_a_solution_that_is_the_published_one_but_for_names_and_comments_is_noted(judged):
    renamed = tiny.RIGHT["Affine"].replace("(dim)", "(size)").replace(", dim)", ", size: int)").replace("x", "z")
    verdict = judged(Affine=f'"""Mine."""\n# my own\n{renamed}')
    assert verdict["published"] == ["Affine"] and (verdict["status"], points(verdict)) == (GRADED, tiny.FULL)
    verdict = judged(Affine=tiny.RIGHT["Affine"].replace("x * self.weight", "self.weight * x"))
    assert verdict["published"] == []
    assert verdict["fingerprints"].keys() == {"Affine"}  # the others are too short to tell


def test_a_faulty_setup_cell_and_a_faulty_check_call_the_instructor(files, zygote):
    imports = b"import torch\\nfrom torch import nn"
    source = files.source_notebook.replace(imports, imports + b"\\n1 / 0")
    verdict = judge(answered(files), dataclasses.replace(files, source_notebook=source), key=KEY, zygote=zygote)
    assert verdict["status"] == ATTENTION and "'setup' stopped: ZeroDivisionError" in verdict["notes"][0]
    broken = files.checks.replace(b"lambda draw: (draw(*draw.sizes(2)),)", b"lambda draw: (draw(2) / nobody,)")
    verdict = judge(answered(files), dataclasses.replace(files, checks=broken), key=KEY, zygote=zygote)
    assert verdict["status"] == ATTENTION and "NameError in the check 'small inputs'" in verdict["notes"][0]
    assert findings(verdict, "softmax")[0]["misconception"] == NOT_JUDGED and verdict["student_notes"] == []


def test_a_check_that_asks_nothing_cannot_be_passed(files, zygote, monkeypatch):
    loaded = load(files)
    lazy = Check(name="lazy", detects=(), run=lambda subject: [], points=2.0)
    changed = dataclasses.replace(loaded.assignment.tasks[0], cases=(), also=(), example=(), checks=(lazy,))
    tasks = (changed, *loaded.assignment.tasks[1:])
    changed = dataclasses.replace(loaded, assignment=dataclasses.replace(loaded.assignment, tasks=tasks))
    monkeypatch.setattr(judging, "load", lambda files: changed)
    assert points(judge(answered(files), files, key=KEY, zygote=zygote))["softmax"] == 0.0


def test_an_empty_key_is_refused(files):
    with pytest.raises(ValueError, match="key is empty"):
        judge(answered(files), files, key=b"", zygote=Zygote(trusted=True))


@needs_sandbox
def test_without_walls_the_same_points_and_it_says_so(files):
    with Zygote(trusted=True) as zygote:
        verdict = judge(answered(files, softmax="def softmax(x):\n    return 0 * x\n"), files, key=KEY, zygote=zygote)
    assert points(verdict) == {"softmax": 0.0, "attention": 0.0, "Affine": 2.0}
    assert verdict["sandbox"] == "none: trusted students"


# proof ------------------------------------------------------------------------------------------------------


@needs_sandbox
def test_a_good_assignment_is_proved(tmp_path, capsys):
    folder = tiny.write_course(tmp_path)
    assert prove(tiny.NAME, folder=folder.root, workers=1) == 0
    said = capsys.readouterr().out
    assert "each earned what it deserves; 2 mistakes in tables: each was named." in said
    assert "zeros of the right shape" in said


@needs_sandbox
def test_an_argument_that_never_varies_and_a_leak_are_named_by_the_proof(tmp_path, capsys):
    never = SUMS_CHECKS.replace('asks="x", reference=lambda x:', 'asks="x, times", reference=lambda x, times:')
    folders = small_course(tmp_path, checks=never.replace("(draw(4),)", "(draw(4), 2)"))
    (folders.source(NAME) / "more.ipynb").write_text("{}")
    assert prove(NAME, folder=tmp_path, workers=1) == 1
    said = capsys.readouterr().out
    assert "double: an answer that ignores `times` earns all points" in said and "`x`" not in said
    assert "more.ipynb is a second notebook" in said


TELLS_NOTHING = "'over the wrong axis' ({'return powers': 'return 1 * powers'}) is told nothing"


@needs_sandbox
@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("(1000 * draw(*draw.sizes(2)),)", "(torch.zeros(2, 3),)", "passes the check 'large inputs'"),
        ("`-1` → `0`", "`return powers` → `return 1 * powers`", f"tasks.md:4: softmax: the mistake {TELLS_NOTHING}"),
        ("Nothing is added.\n", "", "is not told 'no bias'"),
    ],
)
def test_a_faulty_assignment_is_not(tmp_path, capsys, old, new, said):
    folders = tiny.write_course(tmp_path)
    (path,) = (path for path in folders.hidden(tiny.NAME).iterdir() if old in path.read_text())
    path.write_text(path.read_text().replace(old, new))
    assert prove(tiny.NAME, folder=folders.root, workers=1) == 1
    assert said in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("command", [release, grade, export, feedback, prove, marking, leaderboard])
def test_an_unknown_assignment_is_refused_with_those_that_there_are(tmp_path, command):
    small_course(tmp_path)
    with pytest.raises(CannotStart, match="There is no assignment '99' .* there is: 07"):
        command("99", folder=tmp_path)


# what an assignment is --------------------------------------------------------------------------------------


def test_files_that_fit_are_loaded(tmp_path):
    loaded = load(read_assignment(small_course(tmp_path).root, NAME))
    assert loaded.check_points == {"add": 3.0, "double": 2.0} and loaded.manual_cells == {"why": 4.0}
    assert [made.kind for made in loaded.cells] == ["setup", "solution", "solution"]
    assert {name: loaded.stubs[name] for name in ("add", "double")} == {name: STUBS[name] for name in ("add", "double")}
    task = loaded.assignment.tasks[1]
    assert (task.points, task.asks) == (2.0, "x")


SOLVED = cell("x", source="### BEGIN SOLUTION", locked=True)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"checks": None}, "is not complete: .*tasks.py: No such file"),
        ({"checks": "1 / 0"}, "does not load: ZeroDivisionError"),
        ({"checks": "ASSIGNMENT = 3"}, "has to define ASSIGNMENT"),
        ({"checks": SUMS_CHECKS.replace('"07"', '"02"')}, r"has to define ASSIGNMENT = Assignment\('07'"),
        ({"checks": SUMS_CHECKS.replace('"sums"', '"large"')}, "is not complete: .*large.ipynb: No such file"),
        (
            {"checks": SUMS_CHECKS.replace("), 2),", "), 7),")},
            "lacks: .*'check-add' with 8 .* too much: .*'check-add' with 3",
        ),
        ({"leave_out": "add"}, "lacks: autograded answer 'add'. It has too much: nothing"),
        (
            {"leave_out": "check-double"},
            "lacks: autograded tests 'check-double' with 2 points. It has too much: nothing",
        ),
        ({"extra": [solution("third", "x = 1")]}, "lacks: nothing. It has too much: autograded answer 'third'"),
        ({"extra": [check("check-third", "", 1)]}, "too much: autograded tests 'check-third'"),
        ({"extra": [setup("setup", "")]}, "two cells with the grade_id 'setup'"),
        ({"extra": [SOLVED]}, "cell 7 holds a solution, but is no solution"),
        ({"source": b"{"}, "cannot be read as a notebook"),
    ],
)
def test_files_that_do_not_fit_each_other_are_told_apart(tmp_path, options, said):
    small_course(tmp_path, **options)
    with pytest.raises(CannotStart, match=said):
        read_assignment(tmp_path, NAME)


def test_a_task_and_an_assignment_refuse_what_cannot_be_judged():
    one = Check(name="a", detects=(), run=list, points=1.0)
    free, poor = (dataclasses.replace(one, points=points) for points in (0.0, float("nan")))
    for tasks, said in (
        ([], "has no task"),
        ([("t", one), ("t", one)], "two tasks with the name 't'"),
        ([("no blanks", one)], "letters, digits"),
        ([("t", free)], "no check that is worth points"),
        ([("t", one, one)], "two checks with the name 'a'"),
        ([("t", poor)], "'a' needs a positive number of points"),
    ):
        made = tuple(Task(name, "T", asks="x", checks=tuple(checks)) for name, *checks in tasks)
        with pytest.raises(ValueError, match=said):
            Assignment("01", notebook="n", title="T", tasks=made)


def test_the_hash_changes_with_notebook_and_checks():
    files = AssignmentFiles(name="01", notebook="n", source_notebook=b"a", checks=b"b")
    others = [dataclasses.replace(files, **{name: b"c"}) for name in ("checks", "source_notebook")]
    assert len({files.hash, *(other.hash for other in others)}) == 3


def test_solutions_are_cleared_as_nbgrader_does_it():
    assert clear_solution("x = 1", "cell") == STUB
    assert clear_solution("a\n  ### BEGIN SOLUTION\n  b\n  ### END SOLUTION\nc", "cell", stub="S") == "a\n  S\nc"
    for text in ("### BEGIN SOLUTION", "### END SOLUTION", 2 * "### BEGIN SOLUTION\n" + "### END SOLUTION"):
        with pytest.raises(ValueError, match="BEGIN SOLUTION"):
            clear_solution(text, "cell")
