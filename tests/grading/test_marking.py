"""The marking page without names, dealt to tutors, and its marks back in the gradebook: all of them, or none."""

import json
import re

import pytest

from course_lib.data.place import CannotStart
from course_lib.grading import marking as module
from course_lib.grading.folders import instructor_key
from course_lib.grading.gradebook import answer_hash
from course_lib.grading.marking import FORMAT, marking, marks
from course_lib.grading.pseudonyms import pseudonyms
from tests.grading import courses
from tests.grading.courses import NAME, NOTEBOOK, nbgraders_book, row, submit

STUDENTS = {"ada": "Because **I** say so.", "bob": "It is $a + b$.", "eve": "<script>steal()</script>So.", "gus": ""}


@pytest.fixture(autouse=True)
def no_mathjax(monkeypatch):
    monkeypatch.setattr(module, "_mathjax", lambda: "")


@pytest.fixture
def folders(folders):
    for student, text in STUDENTS.items():
        record(folders, student, text)
    return folders


def record(folders, student, text):
    courses.record(folders, student, {"why": text} if text else {})


def pages(folders, **options):
    assert marking(NAME, folder=folders.root, **options) == 0
    return {path.name: path.read_text() for path in sorted((folders.root / "marking").iterdir())}


def order(page):
    return re.findall(r'data-student="([^"]+)"', page)


def names_of(folders):
    return pseudonyms(instructor_key(folders), f"marking {NAME}", STUDENTS)


def a_file(tmp_path, folders, *, assignment=NAME, **changes):
    """A downloaded file with one mark for ada."""
    mark = {"student": names_of(folders)["ada"], "cell": "why", "answer": answer_hash(STUDENTS["ada"])}
    mark |= {"points": 2.5, "comment": "Say more."} | changes
    path = tmp_path / "marks.json"
    path.write_text(json.dumps({"format": FORMAT, "assignment": assignment, "marks": [mark]}))
    return path


# the page ----------------------------------------------------------------------------------------------------


def test_the_page_has_each_answer_once_and_nobodys_name_and_runs_no_script_but_its_own(folders):
    (page,) = pages(folders).values()
    assert sorted(order(page)) == sorted(name for student, name in names_of(folders).items() if student != "gus")
    assert not re.search(r"\b(ada|bob|eve|gus)\b", page)
    assert "Because <strong>I</strong> say so." in page and "steal()" in page and "<script>steal" not in page
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]+)"', page)
    assert "default-src &#39;none&#39;" in policy and "unsafe-inline" not in policy.split("script-src")[1].split(";")[0]


def test_the_seed_gives_the_order_and_the_same_seed_the_same(folders):
    orders = {seed: order(*pages(folders, seed=seed).values()) for seed in range(6)}
    assert len({tuple(found) for found in orders.values()}) > 1
    assert order(*pages(folders, seed=0).values()) == orders[0]


def test_students_are_dealt_to_tutors_in_turn(folders, capsys):
    found = pages(folders, tutors=2)
    first, second = map(order, found.values())
    assert list(found) == [f"{NAME}-tutor-1.html", f"{NAME}-tutor-2.html"]
    assert (len(first), len(second)) == (2, 1) and not {*first} & {*second}
    assert "2 answers of 2 students" in capsys.readouterr().out


def test_a_submission_that_is_not_graded_as_it_is_now_is_left_out_and_told(folders, capsys):
    submit(folders, "ada", why="Another answer.")
    (page,) = pages(folders).values()
    assert len(order(page)) == 2 and "Not graded as they are now: 1 submission" in capsys.readouterr().out


# back --------------------------------------------------------------------------------------------------------


def test_marks_become_points_and_comments_by_hand(tmp_path, folders, capsys):
    assert row(folders).unread == ("why",)
    assert marks(a_file(tmp_path, folders), folder=folders.root) == 0
    ada = row(folders)
    assert (ada.points["why"], ada.remarks, ada.unread, ada.by_hand) == (2.5, {"why": "Say more."}, (), ("why",))
    assert row(folders, "bob").unread == ("why",)
    with nbgraders_book(folders) as book:  # as formgrader would have stored it
        grade = book.find_grade("why", NOTEBOOK, NAME, "ada")
        comment = book.find_comment("why", NOTEBOOK, NAME, "ada")
        assert (grade.manual_score, grade.needs_manual_grade, comment.manual_comment) == (2.5, False, "Say more.")
    assert "1 answer of assignment 07 marked.\nOf 2 students an answer is still unmarked." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"points": 4.5}, "gives .* 4.5 points for 'why', which has 0 to 4; nothing was changed"),
        ({"points": -1}, "which has 0 to 4"),
        ({"points": float("nan")}, "which has 0 to 4"),
        ({"points": "3"}, "is no file of marks"),
        ({"points": True}, "is no file of marks"),
        ({"student": "quiet-otter-0000"}, "does not belong to assignment 07"),
        ({"cell": "check-add"}, "does not belong to assignment 07"),
        ({"comment": "x" * 10_001}, "more than 10000 characters"),
        ({"assignment": "09"}, "is of assignment '09', which this course directory does not have"),
    ],
)
def test_a_file_that_does_not_fit_is_refused_by_one_sentence_and_nothing_is_changed(tmp_path, folders, changes, says):
    good = json.loads(a_file(tmp_path, folders).read_text())["marks"]
    path = a_file(tmp_path, folders, **changes)
    found = json.loads(path.read_text())
    path.write_text(json.dumps(found | {"marks": [*good, *found["marks"]]}))
    with pytest.raises(CannotStart, match=says):
        marks(path, folder=folders.root)
    assert row(folders).unread == ("why",) and row(folders).remarks == {}


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": "course marks 1"}', '{"format": 1, "marks": []}'])
def test_what_is_no_file_of_marks_is_refused(tmp_path, folders, text):
    path = tmp_path / "marks.json"
    path.write_text(text)
    with pytest.raises(CannotStart, match="is no file of marks"):
        marks(path, folder=folders.root)


def test_an_answer_that_changed_since_is_left_and_named(tmp_path, folders, capsys):
    path = a_file(tmp_path, folders)
    record(folders, "ada", "Another answer.")
    assert marks(path, folder=folders.root) == 0
    assert row(folders).unread == ("why",)
    assert f"left as they were: {names_of(folders)['ada']}" in capsys.readouterr().out


# pseudonyms --------------------------------------------------------------------------------------------------


def test_a_pseudonym_depends_on_key_and_purpose_and_not_on_the_class():
    alone, many = pseudonyms(b"k", "x", ["ada"]), pseudonyms(b"k", "x", ["ada", "bob"])
    assert alone["ada"] == many["ada"] != many["bob"]
    assert alone["ada"] not in (pseudonyms(b"k", "y", ["ada"])["ada"], pseudonyms(b"l", "x", ["ada"])["ada"])


def test_no_two_students_share_a_pseudonym(monkeypatch):
    monkeypatch.setattr("course_lib.grading.pseudonyms._name", lambda number: f"otter-{number % 3}")
    assert sorted(pseudonyms(b"k", "x", "abc").values()) == ["otter-0", "otter-1", "otter-2"]
