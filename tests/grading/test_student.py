"""A student's side: get an assignment, check it, hand it in, prove it; nothing that was written is lost."""

import hashlib
import json
import os
import pwd
import shutil
import subprocess
import sys
from contextlib import nullcontext
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from course_lib.data.place import CannotStart
from course_lib.grading import student, validation
from course_lib.grading.collect import collect
from course_lib.grading.exchange import SECRET, find_exchange
from course_lib.grading.release import publish
from course_lib.grading.spec import load
from course_lib.grading.student import fetch, list_assignments, read_receipt, submit, validate, verify
from course_lib.tasks import Check, Finding
from tests.grading.courses import NAME, NOTEBOOK, SOURCE
from tests.grading.unreleased import SOLVED, add_cell, answer, unreleased_course, write_source

FILE = f"{NOTEBOOK}.ipynb"
ME = pwd.getpwuid(os.getuid()).pw_name


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A course for one who learns alone; the student works in an empty folder."""
    folders = unreleased_course(tmp_path / "course")
    (tmp_path / "home").mkdir()
    monkeypatch.delenv("COURSE_EXCHANGE", raising=False)
    monkeypatch.setenv("COURSE_ASSIGNMENTS", str(folders.root))
    monkeypatch.chdir(tmp_path / "home")
    monkeypatch.setattr(student, "course_folder", lambda: tmp_path / "nowhere")
    return folders


@pytest.fixture
def copy(course):
    """The student's copy, fetched."""
    assert fetch(NAME) == 0
    return Path.cwd() / f"assignment_{NAME}" / FILE


@pytest.fixture
def exchange(course, tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_EXCHANGE", str(tmp_path / "exchange"))
    course.config.write_text(course.config.read_text() + "\nc.CourseDirectory.course_id = 'deep-learning'\n")
    exchange = find_exchange(course.root)
    course.release(NAME).mkdir(parents=True)
    (course.release(NAME) / FILE).write_text(json.dumps(SOURCE).replace("return a + b", "pass"))
    publish(exchange, course, NAME)
    return exchange


def change_assignment(course):
    notebook = json.loads((course.source(NAME) / FILE).read_text())
    notebook["cells"][0]["source"] = "import torch  # new"
    write_source(course, notebook)


def submissions(copy):
    return sorted((copy.parent / "submissions").glob("*.ipynb"))


# ------------------------------------------------------------------------------------------------ fetch


def test_a_fetched_assignment_has_no_solutions_and_lies_beside_the_lessons(course, tmp_path, monkeypatch, capsys):
    (tmp_path / "course-itself" / "notebooks").mkdir(parents=True)
    monkeypatch.setattr(student, "course_folder", lambda: tmp_path / "course-itself")
    assert fetch(NAME) == 0
    copy = tmp_path / "course-itself" / "notebooks" / f"assignment_{NAME}" / FILE
    assert "SOLUTION" not in copy.read_text() and "return a + b" not in copy.read_text()
    said = capsys.readouterr().out
    assert str(copy) in said and f"course assign validate {NAME}\n" in said and f"course assign submit {NAME}\n" in said
    fetch(NAME, to=tmp_path / "my work")
    assert f"course assign submit {NAME} --notebook '{tmp_path / 'my work' / FILE}'" in capsys.readouterr().out


@pytest.mark.parametrize("content", [None, b"", b"{", b"not a notebook"])
def test_a_copy_is_never_overwritten(copy, course, capsys, content):
    answer(copy, add=SOLVED["add"])
    if content is not None:
        copy.write_bytes(content)
    before = copy.read_bytes()
    change_assignment(course)
    assert fetch(NAME) == 1
    assert copy.read_bytes() == before
    assert f"{copy} already, and it is left as it is" in (said := capsys.readouterr().out) and "--again" in said


def test_again_puts_a_new_copy_beside_each_earlier_one(copy):
    answer(copy, add=SOLVED["add"])
    before = copy.read_bytes()
    for number in (2, 3):
        assert fetch(NAME, again=True) == 0
        assert "SOLUTION" not in (copy.parent / f"{NOTEBOOK}-{number}.ipynb").read_text()
    assert copy.read_bytes() == before


@pytest.mark.parametrize("name", ["8", "../07", "", "07/../07"])
def test_an_unknown_assignment_is_refused_with_those_that_there_are(course, name):
    with pytest.raises(CannotStart, match=f"There are: {NAME}"):
        fetch(name)
    assert list(Path.cwd().iterdir()) == []


def test_the_list_says_what_there_is_and_what_was_submitted(copy, capsys):
    submit(NAME)
    capsys.readouterr()
    assert list_assignments() == 0
    said = capsys.readouterr().out
    assert NAME in said and str(copy) in said and "Submitted 1 time, last at 20" in said


def test_a_student_needs_nothing_of_the_instructors_and_to_list_and_fetch_nothing_that_takes_seconds(course, copy):
    answer(copy, **SOLVED)
    code = (
        "import sys\n"
        "slow = dict.fromkeys(('torch', 'numpy', 'scipy', 'matplotlib', 'IPython'))\n"
        "sys.modules |= slow | dict.fromkeys(('nbgrader', 'filelock', 'sqlalchemy', 'distributed', 'rapidfuzz'))\n"
        "from course_lib.grading.student import *\n"
        f"assert list_assignments() == 0 and fetch({NAME!r}, to='elsewhere') == 0\n"
        "for name in slow: del sys.modules[name]\n"
        f"assert fetch({NAME!r}, to={str(copy.parent)!r}) == 1 and submit({NAME!r}, notebook={str(copy)!r}) == 0\n"
    )
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert (Path("elsewhere") / FILE).is_file() and len(submissions(copy)) == 1


# ------------------------------------------------------------------------------------------------ submit


def test_a_submission_is_the_notebook_as_saved_with_a_receipt_and_collected_under_its_name(copy, course, capsys):
    answer(copy, **SOLVED)
    assert submit(NAME, student="Ada Lovelace") == 0
    (file,) = submissions(copy)
    assert file.read_bytes() == copy.read_bytes()
    (receipt_file,) = file.parent.glob("*.receipt.json")
    receipt = read_receipt(receipt_file)
    assert receipt.sha256 == hashlib.sha256(copy.read_bytes()).hexdigest()
    assert (receipt.student, receipt.assignment) == ("Ada-Lovelace", NAME)
    assert datetime.fromisoformat(receipt.submitted).tzinfo is not None
    said = capsys.readouterr().out
    assert all(text in said for text in (str(file), receipt.sha256, str(receipt_file), "hand in this file"))
    assert "This would cost points" not in said
    collect(NAME, source=file.parent, folder=course.root)
    assert (course.submitted("Ada-Lovelace", NAME) / FILE).read_bytes() == copy.read_bytes()


def test_a_name_that_was_not_given_is_pointed_out(copy, capsys):
    submit(NAME, student="ada")
    assert "not you?" not in capsys.readouterr().out
    submit(NAME)
    said = capsys.readouterr().out
    assert f"student             {ME}, your account's name; not you? Submit again with --student NAME" in said


def test_earlier_submissions_stay(copy):
    for add in ("first", "second", "third"):
        answer(copy, add=f"def add(a, b):\n    return '{add}'")
        submit(NAME)
    texts = [file.read_text() for file in submissions(copy)]
    assert [sum(word in text for text in texts) for word in ("first", "second", "third")] == [1, 1, 1]
    assert len(texts) == 3 and len(list((copy.parent / "submissions").glob("*.receipt.json"))) == 3


def drop(copy, grade_id):
    notebook = json.loads(copy.read_text())
    notebook["cells"] = [c for c in notebook["cells"] if c["metadata"].get("nbgrader", {}).get("grade_id") != grade_id]
    copy.write_text(json.dumps(notebook))


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda copy: None, "The cell 'double' is as it was handed out"),
        (lambda copy: answer(copy, double="  \n "), "The cell 'double' is as it was handed out"),
        (lambda copy: drop(copy, "double"), "The cell 'double' is missing"),
    ],
)
def test_what_would_cost_points_is_said_and_submitted_all_the_same(copy, capsys, spoil, said):
    answer(copy, add=SOLVED["add"], why=SOLVED["why"])
    spoil(copy)
    assert submit(NAME) == 0
    output = capsys.readouterr().out
    assert said in output and "'why'" not in output and len(submissions(copy)) == 1


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda copy: copy.write_text("{"), "is no notebook, only a part of one"),
        (lambda copy: copy.write_text(copy.read_text() + " " * 20_000_000), "larger than 20 MB"),
        (lambda copy: copy.symlink_to(copy.rename(copy.with_name("other"))), "a link"),
        (lambda copy: copy.unlink(), f"course assign fetch {NAME}"),
    ],
)
def test_what_is_no_notebook_is_not_submitted(copy, spoil, said):
    spoil(copy)
    with pytest.raises(CannotStart, match=said):
        submit(NAME)
    assert not (copy.parent / "submissions").exists()


def test_a_notebook_of_another_name_is_submitted_when_named(copy, tmp_path):
    other = Path(shutil.copy(copy, tmp_path / "my answers.ipynb"))
    submit(NAME, notebook=other)
    assert submissions(other)[0].name.endswith(f"_{FILE}")


@pytest.mark.parametrize("name", ["", "///", "a" * 200])
def test_a_name_that_no_folder_can_have_is_refused(copy, name):
    with pytest.raises(CannotStart, match="cannot be a student's name"):
        submit(NAME, student=name)


# ------------------------------------------------------------------------------------------------ the exchange


def test_the_exchange_gets_a_whole_copy_in_nbgraders_layout(exchange, course, capsys):
    fetch(NAME)
    copy = Path.cwd() / f"assignment_{NAME}" / FILE
    assert "pass" in copy.read_text()  # the exchange comes before the course itself
    submit(NAME)
    assert f"student             {ME}\n" in (said := capsys.readouterr().out)
    assert exchange.check_owner and "not you?" not in said  # where the account is the student no other name is offered
    submit(NAME)
    first, second = sorted(exchange.inbound.iterdir())
    for place in (first, second):
        who, what, when, _ = place.name.split("+")
        assert (who, what) == (ME, NAME) and when.endswith(" UTC")
        assert (place / FILE).read_bytes() == copy.read_bytes()
        assert (place / "timestamp.txt").read_text() == when
    receipts = [read_receipt(path) for path in (copy.parent / "submissions").glob("*.receipt.json")]
    assert {receipt.secret for receipt in receipts} == {(place / SECRET).read_text() for place in (first, second)}
    assert collect(NAME, folder=course.root) == 0
    assert (course.submitted(ME, NAME) / FILE).read_bytes() == copy.read_bytes()


def test_a_student_without_a_course_directory_needs_only_the_exchange(exchange, monkeypatch):
    monkeypatch.delenv("COURSE_ASSIGNMENTS")
    monkeypatch.setattr("course_lib.grading.folders.course_folder", lambda: Path.cwd())
    fetch(NAME)
    submit(NAME)
    assert len(list(exchange.inbound.iterdir())) == 1
    (exchange.root / "another-course" / "outbound").mkdir(parents=True)
    with pytest.raises(CannotStart, match="needs the course's name"):
        submit(NAME)


def test_nobody_submits_to_the_exchange_under_another_name(exchange):
    fetch(NAME)
    with pytest.raises(CannotStart, match="under the name of your account, and not as 'bob'"):
        submit(NAME, student="bob")
    assert list(exchange.inbound.iterdir()) == []


def test_an_exchange_that_takes_nothing_leaves_no_receipt(exchange, monkeypatch):
    fetch(NAME)
    copy = Path.cwd() / f"assignment_{NAME}" / FILE
    exchange.inbound.rmdir()
    exchange.inbound.write_text("")
    with pytest.raises(CannotStart, match="Nothing was submitted: the exchange .* does not take it"):
        submit(NAME)
    assert not (copy.parent / "submissions").exists()


# ------------------------------------------------------------------------------------------------ receipts


@pytest.fixture
def receipt(copy):
    submit(NAME, student="ada")
    return next((copy.parent / "submissions").glob("*.receipt.json"))


def test_a_receipt_knows_its_file_and_one_changed_byte_is_another_file(receipt, copy, tmp_path, capsys):
    assert verify(receipt) == 0
    assert "the same: " in capsys.readouterr().out
    (file,) = submissions(copy)
    file.write_bytes(file.read_bytes().replace(b"torch", b"Torch", 1))
    assert verify(receipt) == 1
    assert "ANOTHER FILE" in capsys.readouterr().out
    with pytest.raises(CannotStart, match="is no file that can be read"):
        verify(Path(shutil.copy(receipt, tmp_path)))


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b"\xff", b'{"schema": 2}', b"[" * 100_000])
def test_what_is_no_receipt_is_refused(tmp_path, content):
    path = tmp_path / "x.receipt.json"
    path.write_bytes(content)
    with pytest.raises(CannotStart, match="is no receipt"):
        verify(path)


# ------------------------------------------------------------------------------------------------ validate


def right_sum(probe):
    x = probe.random(2, 3)
    good = (probe.tensor(x, x, shape=(2, 3)) - 2 * x).abs().max() < 1e-6
    return [] if good else [Finding(misconception="no sum", message="That is not the sum.", hint="Use +.")]


ADDS = Check(name="adds", detects=("no sum",), run=right_sum)


@pytest.fixture
def give_checks(monkeypatch):
    """Sets the visible checks of the small assignment."""

    def give(**tasks):
        tables = {name: SimpleNamespace(all_checks=checks, asks="", forbids=()) for name, checks in tasks.items()}
        monkeypatch.setattr(validation, "visible_tasks", lambda name: tables)
        load.cache_clear()  # it keeps what the same files held before

    yield give
    load.cache_clear()


@pytest.fixture
def checks(give_checks):
    """Visible checks of the small assignment: one for `add`, none for `double`."""
    give_checks(add=[ADDS])


@pytest.fixture
def in_the_sandbox(zygote, monkeypatch):
    """The zygote of all tests, in place of a new one for each."""
    monkeypatch.setattr(validation, "Zygote", lambda *, trusted: nullcontext(None if trusted else zygote))


def test_a_good_notebook_is_validated_in_the_sandbox(copy, checks, in_the_sandbox, capsys):
    answer(copy, **SOLVED)
    assert validate(NAME) == 0
    said = capsys.readouterr().out
    assert "ok add: 1 of 1 visible check passed" in said
    assert "double: has no visible check, so nobody has looked at it" in said
    assert "sandbox is not to be had" not in said and f"Hand it in: course assign submit {NAME}\n" in said
    assert said.endswith("A person reads and grades, and nothing here looks at: why.\n")


@pytest.mark.parametrize("named", [True, False])
def test_validating_needs_no_exchange(copy, course, checks, in_the_sandbox, monkeypatch, tmp_path, named):
    if named:
        course.config.write_text(course.config.read_text() + "\nc.CourseDirectory.course_id = 'deep-learning'\n")
    monkeypatch.setenv("COURSE_EXCHANGE", str(tmp_path / "not-there-yet"))
    answer(copy, **SOLVED)
    assert validate(NAME, notebook=copy) == 0
    with pytest.raises(CannotStart, match="not-there-yet"):
        submit(NAME, notebook=copy)


def test_validate_names_what_would_cost_points(copy, checks, in_the_sandbox, capsys):
    add_cell(copy, "%time import scipy\n\ndef helper(x):\n    return x\n\nfactor = 2")
    body = "    from antigravity_of_mine import fly\n    return helper(a) * factor"
    answer(copy, add=f"import json\nimport course_lib\n\ndef add(a, b):\n{body}", why="Because.")
    assert validate(NAME) == 1
    said = capsys.readouterr().out
    assert "NO add: 0 of 1 visible check passed" in said
    assert "'add' uses 'helper', which a cell of your own defines" in said and "'add' uses 'factor'" in said
    assert "No module named 'course_lib'. Use what the first cell imports" in said and "scipy" not in said
    assert "The cell 'double' is as it was handed out" in said and "'why'" not in said
    assert "double: no answer yet" in said


def test_without_a_sandbox_it_says_so_and_validates_all_the_same(copy, checks, monkeypatch, capsys):
    monkeypatch.setattr(validation, "sandbox_problem", lambda: "install bubblewrap: sudo apt-get install bubblewrap")
    answer(copy, **SOLVED | {"add": "def add(a, b):\n    return a - b"})
    assert validate(NAME) == 1
    said = capsys.readouterr().out
    assert "sandbox is not to be had here: install bubblewrap" in said and "on your own machine" in said
    assert "NO add: 0 of 1" in said and "That is not the sum. Use +." in said


def test_what_is_no_notebook_or_has_no_cells_for_answers_is_neither_validated_nor_submitted(copy):
    cells = json.loads(copy.read_text())
    copy.write_text(json.dumps(cells | {"cells": cells["cells"][:1]}))
    for command in (validate, submit):
        with pytest.raises(CannotStart, match="none of the cells for code of assignment 07"):
            command(NAME)
    copy.write_text("{")
    with pytest.raises(CannotStart, match="is no notebook.*in .ipynb_checkpoints.* course assign fetch 07 --again"):
        validate(NAME)
    assert submissions(copy) == []


def test_who_validates_an_untouched_copy_is_told_to_save(copy, checks, in_the_sandbox, capsys):
    validate(NAME)
    assert "save it in JupyterLab (Ctrl+S) and validate again" in capsys.readouterr().out


def test_a_function_that_is_not_there_passes_no_visible_check(copy, in_the_sandbox, give_checks, capsys):
    twice = Check(name="twice", detects=(), run=lambda probe: [probe.call(torch.ones(2), 1), []][1], gate=True)
    give_checks(add=[twice, ADDS])
    answer(copy, **SOLVED)
    validate(NAME)
    assert "ok add: 2 of 2 visible checks passed" in capsys.readouterr().out
    answer(copy, **SOLVED | {"add": "def plus(a, b):\n    return a + b"})
    validate(NAME)
    said = capsys.readouterr().out
    assert "NO add: 0 of 2 visible checks passed" in said and "NameError: name 'add' is not defined" in said
