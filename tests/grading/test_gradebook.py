"""What the gradebook takes from a verdict, and what a person's hand has written there and stays."""

import json
import os
import sqlite3
from datetime import datetime

import pytest
from nbgrader import api
from nbgrader.apps import NbGraderAPI
from nbgrader.coursedir import CourseDirectory
from nbgrader.plugins import BasePlugin
from traitlets.config import Config

from course_lib.data.place import CannotStart
from course_lib.grading.folders import write_whole
from course_lib.grading.gradebook import Gradebook, graded_notebook, parse_time, scores
from tests.grading.courses import NAME, NOTEBOOK, POINTS, by_hand, nbgraders_book, released, row, submit, verdict

ON_TIME = datetime(2026, 2, 28, 12)
TWO_DAYS_LATE = datetime(2026, 3, 3, 12)


@pytest.fixture
def book(folders):
    with opened(folders) as book:
        yield book


def opened(folders, **settings):
    return Gradebook(folders.gradebook, assignment=NAME, notebook=NOTEBOOK, **settings)


def of_all(folders, *names):
    """What the gradebook has of each student, in the order of these names."""
    return {row.student: tuple(getattr(row, name) for name in names) for row in scores(folders.gradebook, NAME)}


def points_for_adding(folders):
    return {row.student: row.points["check-add"] for row in scores(folders.gradebook, NAME)}


def late(plugin=f"{__name__}.PointADay"):
    return Config({"AssignLatePenalties": {"plugin_class": plugin}})


class PointADay(BasePlugin):
    def late_submission_penalty(self, student_id, score, total_seconds_late):
        return total_seconds_late / 86400


class APointOff(BasePlugin):
    def late_submission_penalty(self, student_id, score, total_seconds_late):
        return 1


class APointMore(BasePlugin):
    def late_submission_penalty(self, student_id, score, total_seconds_late):
        return -1


def test_nbgraders_own_tools_see_points_and_time(folders, book):
    book.record(verdict("ada", add=1.0), {"why": "Because."}, submitted=ON_TIME)
    with nbgraders_book(folders) as theirs:
        found = theirs.find_submission_notebook(NOTEBOOK, NAME, "ada")
        assert (found.code_score, found.max_score, found.assignment.timestamp) == (3.0, 9.0, ON_TIME)
        assert not found.flagged
        judged = {"check-add": 1.0, "check-double": 2.0, "why": None}
        assert {grade.name: grade.auto_score for grade in found.grades} == judged
    submit(folders, "ada")
    write_whole(folders.autograded("ada", NAME) / f"{NOTEBOOK}.ipynb", b"{}")
    config = Config({"CourseDirectory": {"root": str(folders.root)}})
    submission = NbGraderAPI(CourseDirectory(config=config), config=config).get_submission(NAME, "ada")
    assert (submission["score"], submission["needs_manual_grade"]) == (3.0, True)


def test_a_submission_is_recorded_once_however_often_it_is_judged(folders, book):
    for points in (1.0, 3.0, 2.0):
        book.record(verdict("ada", add=points), {}, submitted=ON_TIME)
    tables = "student submitted_assignment submitted_notebook grade comment course_verdicts"
    with sqlite3.connect(folders.gradebook) as db:
        counts = [db.execute(f"select count(*) from {table}").fetchone()[0] for table in tables.split()]
    assert counts == [1, 1, 1, 3, 3, 1]
    assert row(folders).points["check-add"] == 2.0


def test_a_record_that_fails_midway_leaves_nothing(folders, book, monkeypatch):
    book.record(verdict("ada", add=1.0), {}, submitted=ON_TIME)
    with monkeypatch.context() as patch:
        patch.setattr(book, "_penalty", lambda *_: 1 / 0)
        for student in ("ada", "bob"):
            with pytest.raises(ZeroDivisionError):
                book.record(verdict(student, add=3.0), {}, submitted=ON_TIME)
    assert points_for_adding(folders) == {"ada": 1.0}
    book.record(verdict("cy", add=2.0), {}, submitted=ON_TIME)
    assert points_for_adding(folders) == {"ada": 1.0, "cy": 2.0}


def test_points_by_hand_extra_credit_and_comments_survive_regrading(folders, book):
    book.record(verdict("ada", add=0.0), {"why": "Because."}, submitted=ON_TIME)
    by_hand(folders, check_add={"manual_score": 2.5, "extra_credit": 0.5}, add={"manual_comment": "Nearly!"})
    by_hand(folders, why={"manual_score": 3.0, "needs_manual_grade": False})
    book.record(verdict("ada", add=1.0, submission="c" * 64), {"why": "Because."}, submitted=ON_TIME)
    found = row(folders)
    assert found.points == {"check-add": 3.0, "check-double": 2.0, "why": 3.0}
    assert found.remarks == {"add": "Nearly!"}
    assert found.unread == ("check-add",)  # the judge changed its mind behind the person's back
    book.record(verdict("ada", add=1.0, submission="c" * 64), {"why": "Because."}, submitted=ON_TIME)
    assert row(folders).unread == ("check-add",)  # until the person has looked


def test_a_person_is_asked_again_only_when_the_written_answer_changed(folders, book):
    book.record(verdict("ada"), {"why": "Because."}, submitted=ON_TIME)
    assert row(folders).unread == ("why",)
    by_hand(folders, why={"manual_score": 3.0, "needs_manual_grade": False})
    book.record(verdict("ada", add=0.0), {"why": "Because. "}, submitted=ON_TIME)
    assert row(folders).unread == ()
    book.record(verdict("ada"), {"why": "For another reason."}, submitted=ON_TIME)
    assert (row(folders).unread, row(folders).points["why"]) == (("why",), 3.0)
    by_hand(folders, why={"needs_manual_grade": False})
    book.record(verdict("ada"), {}, submitted=ON_TIME)
    assert (row(folders).unread, row(folders).points["why"]) == (("why",), 3.0)  # for an answer that is gone


@pytest.mark.parametrize("text", ["YOUR ANSWER HERE", "", None])
def test_no_written_answer_is_0_and_asks_nobody(folders, book, text):
    book.record(verdict("ada"), {} if text is None else {"why": text}, submitted=ON_TIME)
    found = row(folders)
    assert (found.points["why"], found.unread) == (0.0, ())
    with nbgraders_book(folders) as theirs:
        assert theirs.find_grade("why", NOTEBOOK, NAME, "ada").auto_score == 0.0  # and not ungraded


def test_a_verdict_cannot_give_more_points_than_were_released_and_none_for_a_task_that_it_does_not_know(folders, book):
    empty = verdict("cy")
    del empty["tasks"]["add"]
    for found in (verdict("ada", add=1e9, double=7.0), verdict("bob", add=-1.0), verdict("cy"), empty):
        book.record(found, {}, submitted=ON_TIME)
    found = [row(folders, student).points for student in ("ada", "bob", "cy")]
    assert [(points["check-add"], points["check-double"]) for points in found] == [(3.0, 2.0), (0.0, 2.0), (0.0, 2.0)]


def test_lateness_costs_what_nbgraders_plugin_says(folders):
    with opened(folders, config=late()) as book:
        book.record(verdict("ada"), {}, submitted=TWO_DAYS_LATE)
        book.record(verdict("bob", add=1.0, double=0.0), {}, submitted=TWO_DAYS_LATE)
        book.record(verdict("cy"), {}, submitted=ON_TIME)
    found = of_all(folders, "seconds_late", "penalty", "total")
    assert found == {"ada": (172800.0, 2.0, 3.0), "bob": (172800.0, 1.0, 0.0), "cy": (0.0, 0.0, 5.0)}


@pytest.mark.needs("linux")
def test_a_gradebook_is_closed_in_the_end(folders):
    def is_open():
        links = [f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd")]
        return str(folders.gradebook) in [os.readlink(link) for link in links if os.path.lexists(link)]

    with opened(folders) as book:
        book.record(verdict("ada"), {}, submitted=ON_TIME)
        assert is_open()
    assert not is_open()


def test_who_is_in_time_pays_nothing_whatever_the_plugin_says(folders):
    with opened(folders, config=late(f"{__name__}.APointOff")) as book:
        book.record(verdict("ada"), {}, submitted=ON_TIME)
        book.record(verdict("bob"), {}, submitted=None)
        book.update_penalties()
    assert of_all(folders, "penalty") == {"ada": (0.0,), "bob": (0.0,)}


def test_lateness_earns_no_points_whatever_the_plugin_says(folders):
    with opened(folders, config=late(f"{__name__}.APointMore")) as book:
        book.record(verdict("ada"), {}, submitted=TWO_DAYS_LATE)
    assert of_all(folders, "penalty", "total") == {"ada": (0.0, 5.0)}


def test_another_assignment_in_the_same_gradebook_is_left_alone_and_an_extension_takes_a_penalty_back(folders):
    with nbgraders_book(folders) as theirs:
        theirs.add_assignment("08", duedate="2026-03-01 12:00:00 UTC")
        theirs.add_notebook("norms", "08")
        theirs.add_grade_cell("check-add", "norms", "08", max_score=3, cell_type="code")
        theirs.add_solution_cell("add", "norms", "08")
    with (
        Gradebook(folders.gradebook, assignment="08", notebook="norms", config=late()) as norms,
        opened(folders, config=late()) as sums,
    ):
        norms.record(verdict("ada", add=2.5, submission="8" * 64), {}, submitted=TWO_DAYS_LATE)
        sums.record(verdict("ada"), {}, submitted=ON_TIME)
        sums.record(verdict("bob"), {}, submitted=ON_TIME)
        assert [len(book.recorded()) for book in (norms, sums)] == [1, 2]
        assert norms.recorded()["ada"] == (verdict("ada", add=2.5, submission="8" * 64), TWO_DAYS_LATE)
        for days, then in ((1, 1.0), (7, 0.0)):
            before = scores(folders.gradebook, "08")[0].penalty
            with nbgraders_book(folders) as theirs:
                theirs.grant_extension("08", "ada", days=days)
            sums.update_penalties()
            (there,) = scores(folders.gradebook, "08")
            assert (there.points, there.penalty) == ({"check-add": 2.5}, before)  # until its own grader runs
            norms.update_penalties()
            assert scores(folders.gradebook, "08")[0].penalty == then != before
    assert of_all(folders, "total", "seconds_late") == {"ada": (5.0, 0.0), "bob": (5.0, 0.0)}


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-02-28 12:00:00 UTC", ON_TIME),
        ("2026-02-28 13:00:00 Europe/Berlin", ON_TIME),
        ("2026-02-28T12:00:00", ON_TIME),
        ("yesterday, I think", None),
        ("9" * 190, None),
        ("", None),
    ],
)
def test_timestamps_are_read_as_nbgrader_writes_them_and_nothing_else_hurts(text, moment):
    assert parse_time(text) == moment


@pytest.mark.parametrize("ask", [lambda file, name: Gradebook(file, assignment=name, notebook=NOTEBOOK), scores])
def test_an_unreleased_assignment_says_what_to_run(folders, tmp_path, ask):
    for database, assignment in ((folders.gradebook, "08"), (tmp_path / "none.db", NAME)):
        with pytest.raises(CannotStart, match=f"course assign release {assignment}"):
            ask(database, assignment)
    assert not (tmp_path / "none.db").exists()


def test_a_file_that_is_no_gradebook_is_refused_and_kept(tmp_path):
    path = tmp_path / "gradebook.db"
    path.write_bytes(b"not a database" * 100)
    with pytest.raises(CannotStart, match="cannot be read as a gradebook"):
        Gradebook(path, assignment=NAME, notebook=NOTEBOOK)
    assert path.read_bytes() == b"not a database" * 100


def test_another_program_that_holds_the_gradebook_is_named(folders, book, monkeypatch):
    assert book._db.execute(api.text("pragma busy_timeout")).scalar() == 30_000  # milliseconds
    book._db.execute(api.text("pragma busy_timeout = 100"))
    with sqlite3.connect(folders.gradebook) as other:
        other.execute("begin exclusive")
        with pytest.raises(CannotStart, match="Is another program busy"):
            book.record(verdict("ada"), {}, submitted=ON_TIME)
        other.rollback()


def test_a_record_asks_the_gradebook_nothing_that_grows_with_the_class(folders, book):
    """SQLite's own plan for each query: it looks rows up by an index, or reads tables as small as the assignment."""
    asked, counts = [], []
    connection = book._db.connection().connection.dbapi_connection
    connection.set_trace_callback(asked.append)
    for number in range(8):
        before = len(asked)
        book.record(verdict(f"s{number}"), {}, submitted=TWO_DAYS_LATE)
        counts.append(len(asked) - before)
    book.record(verdict("s1", add=0.0), {"why": "x"}, submitted=TWO_DAYS_LATE)
    connection.set_trace_callback(None)
    grows = ("student", "submitted_assignment", "submitted_notebook", "grade", "comment", "course_verdicts")
    with sqlite3.connect(folders.gradebook) as db:
        queries = [query for query in asked if query.split()[0] in ("SELECT", "UPDATE", "DELETE", "INSERT")]
        plans = [step[3] for query in queries for step in db.execute(f"explain query plan {query}")]
    assert counts[1] == counts[-1] > 10
    assert not [step for step in plans for table in grows if step == f"SCAN {table}"]


def test_scores_come_in_the_order_of_the_notebook(folders, book):
    book.record(verdict("ada"), {}, submitted=ON_TIME)
    assert list(row(folders).possible.items()) == list(POINTS.items())
    names = ["why", "check-last", "check-first"]
    with nbgraders_book(folders) as theirs:
        theirs.add_assignment("08")
        theirs.add_notebook("norms", "08")
        for name in sorted(names):
            theirs.add_grade_cell(name, "norms", "08", max_score=1, cell_type="code")
        for name in names:
            theirs.add_source_cell(name, "norms", "08", cell_type="code")
    with Gradebook(folders.gradebook, assignment="08", notebook="norms") as norms:
        norms.record(verdict("ada"), {}, submitted=ON_TIME)
    assert list(scores(folders.gradebook, "08")[0].possible) == names


def test_a_penalty_takes_from_what_a_person_gave_too(folders):
    with opened(folders, config=late()) as book:
        book.record(verdict("ada", add=0.0, double=0.0), {}, submitted=TWO_DAYS_LATE)
        assert row(folders).penalty == 0.0
        by_hand(folders, check_add={"manual_score": 1.0, "extra_credit": 0.5})
        book.update_penalties()
        assert (row(folders).penalty, row(folders).total) == (1.5, 0.0)
        by_hand(folders, check_add={"manual_score": 0.0, "extra_credit": 0.0})
        assert (row(folders).penalty, row(folders).total) == (1.5, 0.0)  # until the grader runs; never below 0


def test_cells_with_points_or_extra_credit_by_hand_are_named(folders, book):
    for student in ("dan", "cy", "bob", "ada"):
        book.record(verdict(student), {}, submitted=ON_TIME)
    by_hand(folders, "bob", check_add={"manual_score": 0.0}, check_double={"extra_credit": 0.5})
    named = [(row.student, row.by_hand) for row in scores(folders.gradebook, NAME)]
    assert named == [("ada", ()), ("bob", ("check-add", "check-double")), ("cy", ()), ("dan", ())]


def test_half_a_surrogate_pair_in_an_answer_can_be_stored(folders, book):
    text = graded_notebook(json.dumps(released()).encode(), {"add": "x = '\ud800'"}, verdict("ada"))
    assert "x = '?'" in text.decode("utf-8")
    book.record(verdict("ada", status="needs attention", notes=["odd \udfff"]), {"why": "\ud800"}, submitted=ON_TIME)
    text = graded_notebook(json.dumps(released()).encode(), {}, row(folders).verdict)
    assert "Needs attention: odd ?" in text.decode()
