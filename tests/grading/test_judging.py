"""What a worker does with one submission: its zygote is kept, a broken one replaced, and no fault of ours is a verdict
on the student."""

import threading

import pytest

from course_lib.grading import judging
from course_lib.grading.intake import Submission
from course_lib.grading.judging import judge_one
from course_lib.grading.sandbox import SandboxError, Zygote
from course_lib.grading.spec import read_assignment
from tests.grading.courses import NAME, make_course

SUBMISSION = Submission(student="ada", assignment=NAME, sha256="a" * 64, answers={"add": "a = 1"})


class KnownZygote(Zygote):
    def __init__(self, *, trusted, hidden):
        self.trusted, self.closed = trusted, False
        made.append(self)

    def close(self):
        self.closed = True


made = []


@pytest.fixture
def judge_with(tmp_path, monkeypatch):
    """judge_with(judge, trusted): what becomes of the submission with this in place of the judge."""
    files = read_assignment(make_course(tmp_path / "course").root, NAME)
    monkeypatch.setattr(judging, "_of_this_thread", threading.local())
    monkeypatch.setattr(judging, "Zygote", KnownZygote)
    made.clear()

    def work(judge, trusted=False):
        monkeypatch.setattr(judging, "judge", judge)
        return judge_one(SUBMISSION, files, b"key", trusted)

    return work


def after(*errors):
    """A judge that raises these errors, one each time, and then says whom it asks for boxes."""
    left = list(errors)

    def judge(submission, files, *, key, zygote):
        if left:
            raise left.pop(0)
        return {"zygote": zygote}

    return judge


def test_a_zygote_is_kept_for_the_next_and_those_of_both_modes_are_apart(judge_with):
    asked = [judge_with(after(), trusted)["zygote"] for trusted in (False, True, False, True)]
    assert asked == [made[0], made[1]] * 2
    assert [(zygote.trusted, zygote.closed) for zygote in made] == [(False, False), (True, False)]


@pytest.mark.parametrize("trusted", [False, True])
def test_a_broken_sandbox_is_replaced_and_the_submission_judged_again(judge_with, trusted):
    assert judge_with(after(SandboxError("lost")), trusted) == {"zygote": made[1]}
    assert [zygote.closed for zygote in made] == [True, False]


@pytest.mark.parametrize(("trusted", "stamp"), [(False, "bubblewrap"), (True, "none: trusted students")])
@pytest.mark.parametrize(
    "errors", [[RuntimeError("a secret")], [SandboxError("lost"), SandboxError("a secret")]], ids=["judge", "sandbox"]
)
def test_what_cannot_be_judged_waits_for_a_person_and_says_in_which_mode(judge_with, errors, trusted, stamp):
    verdict = judge_with(after(*errors), trusted)
    assert (verdict["sandbox"], verdict["status"]) == (stamp, "needs attention")
    assert [task["points"] for task in verdict["tasks"].values()] == [0.0, 0.0]
    (note,) = verdict["notes"]
    assert type(errors[-1]).__name__ in note and "secret" not in note


def test_a_sandbox_that_broke_twice_is_not_asked_again(judge_with):
    judge_with(after(SandboxError("lost"), SandboxError("lost")))
    assert judge_with(after()) == {"zygote": made[2]}
    assert [zygote.closed for zygote in made] == [True, True, False]
