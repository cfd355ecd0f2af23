"""`course grade`: everything is graded once, whatever is submitted and whatever is killed."""

import contextlib
import hashlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from concurrent.futures import BrokenExecutor, Executor, Future

import psutil
import pytest

from course_lib.data.place import CannotStart
from course_lib.grading import batch, bubblewrap, pools
from course_lib.grading.batch import grade
from course_lib.grading.folders import Folders, assignments_folder, grading_lock, instructor_key, write_whole
from course_lib.grading.gradebook import Gradebook, scores
from course_lib.grading.intake import Submission
from course_lib.grading.pools import judge_all
from course_lib.grading.sandbox import SandboxError, Zygote
from tests.grading.courses import GOOD, HALF_WRONG, NAME, NOTEBOOK, submit

pytestmark = pytest.mark.needs("sandbox")


@pytest.fixture
def here(monkeypatch, zygote):
    """Judges in this process, in the sandbox of all tests."""

    @contextlib.contextmanager
    def executor(**options):
        yield Here(), 2

    monkeypatch.setattr(pools, "_zygote", lambda trusted, hidden: Zygote(trusted=True) if trusted else zygote)
    monkeypatch.setattr(batch, "executor", executor)


class Here(Executor):
    """An executor that does at once what it is given; `dies` says for which students it breaks."""

    def __init__(self, dies=lambda student: False):
        self.dies, self.broken = dies, False

    def submit(self, function, submission, *arguments):
        future = Future()
        self.broken = self.broken or self.dies(submission.student)
        try:
            if self.broken:
                raise BrokenExecutor
            future.set_result(function(submission, *arguments))
        except Exception as error:
            future.set_exception(error)
        return future


def submit_many(folders, number):
    for student in range(number):
        submit(folders, f"s{student:02}", **GOOD)


def command(folders, *options):
    start = [sys.executable, "-c", "from course_lib.cli import main; main()", "grade", NAME]
    return [*start, *options, "--folder", str(folders.root)]


def rows(folders):
    return {row.student: row for row in scores(folders.gradebook, NAME)}


def totals(folders):
    return {student: row.total for student, row in rows(folders).items()}


def whole(folders):
    """The gradebook is sound, and each table holds as many rows as it should for its students."""
    with sqlite3.connect(folders.gradebook) as db:
        assert db.execute("pragma integrity_check").fetchone() == ("ok",)
        students = db.execute("select count(*) from student").fetchone()[0]
        for table, each in (("submitted_assignment", 1), ("submitted_notebook", 1), ("grade", 3), ("comment", 3)):
            assert db.execute(f"select count(*) from {table}").fetchone()[0] == each * students
    return students


def graded_files(folders):
    return list(folders.root.glob("autograded/*/*/*.ipynb"))


def other_judge(change):
    """A judge that asks `change` first, which may raise or spoil something, and then judges as ever."""
    real = pools.judge

    def judge(submission, files, **more):
        change(submission.student)
        return real(submission, files, **more)

    return judge


# what is graded, and what is left as it is ------------------------------------------------------------------


def test_all_who_submitted_are_graded_and_shown(folders, here, capsys):
    submit(folders, "ada", **GOOD)
    submit(folders, "bob", **HALF_WRONG)
    submit(folders, "cy")
    assert grade(NAME, folder=folders.root) == 0
    assert totals(folders) == {"ada": 5.0, "bob": 3.0, "cy": 0.0}
    shown = capsys.readouterr().out
    assert "3 graded now, 0 graded before" in shown and "? waits for points by hand" in shown
    assert all(word in shown for word in ("ada", "bob", "cy", "add", "double"))


def test_what_is_graded_is_judged_again_only_for_a_reason(folders, here, capsys):
    def graded_now():
        assert grade(NAME, folder=folders.root) == 0
        return int(capsys.readouterr().out.split(" graded now")[0].split()[-1])

    submit(folders, "ada", **GOOD)
    submit(folders, "bob", **GOOD)
    assert graded_now() == 2
    before = rows(folders)["ada"].verdict
    submit(folders, "bob", **HALF_WRONG)
    assert graded_now() == 1 and rows(folders)["ada"].verdict == before and totals(folders)["bob"] == 3.0
    (folders.autograded("ada", NAME) / f"{NOTEBOOK}.ipynb").unlink()
    assert graded_now() == 1 and rows(folders)["ada"].verdict == before
    submit(folders, "ada", when="2026-03-01 13:00:00 UTC", **GOOD)
    assert graded_now() == 1 and rows(folders)["ada"].seconds_late == 3600
    checks = folders.hidden(NAME) / "tasks.py"
    checks.write_text(checks.read_text().replace("2 * x", "3 * x"))
    assert graded_now() == 2 and totals(folders) == {"ada": 3.0, "bob": 3.0}
    assert grade(NAME, folder=folders.root, again=True, student="bob") == 0
    assert "1 graded now, 0 graded before" in capsys.readouterr().out


def test_a_verdict_without_a_sandbox_never_stands_for_one_with_it(folders, here, capsys):
    submit(folders, "ada", **GOOD)
    for trusted in (True, False, True):
        grade(NAME, folder=folders.root, trusted=trusted)
        assert "1 graded now" in (shown := capsys.readouterr().out)
        sentence = "Judged WITHOUT a sandbox (trusted students): every verdict and report says so."
        assert (sentence in shown) == trusted
    with Gradebook(folders.gradebook, assignment=NAME, notebook=NOTEBOOK) as book:
        assert set(book.recorded()) == {"ada"}


def test_what_was_read_is_what_is_judged_and_hashed(folders, here, monkeypatch):
    """A student replaces the submission while it is judged: the next run grades the new one."""
    submit(folders, "ada", **HALF_WRONG)
    first = (folders.submitted("ada", NAME) / f"{NOTEBOOK}.ipynb").read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(pools, "judge", other_judge(lambda student: submit(folders, student, **GOOD)))
        grade(NAME, folder=folders.root)
    assert totals(folders) == {"ada": 3.0}
    assert rows(folders)["ada"].verdict["submission"] == hashlib.sha256(first).hexdigest()
    assert "return x" in graded_files(folders)[0].read_text()
    grade(NAME, folder=folders.root)
    assert totals(folders) == {"ada": 5.0}


def test_the_graded_notebook_holds_answers_points_and_words_and_nothing_else_of_the_submission(folders, here):
    submit(folders, "ada", **HALF_WRONG)
    path = folders.submitted("ada", NAME) / f"{NOTEBOOK}.ipynb"
    theirs = json.loads(path.read_text())
    theirs["metadata"]["evil"] = theirs["cells"][0]["source"] = "evil"
    theirs["cells"].append({"cell_type": "markdown", "metadata": {}, "source": "evil"})
    path.write_text(json.dumps(theirs))
    grade(NAME, folder=folders.root)
    text = graded_files(folders)[0].read_text()
    cells = {cell["metadata"]["nbgrader"]["grade_id"]: cell for cell in json.loads(text)["cells"]}
    assert "evil" not in text and cells["double"]["source"].endswith("return x")
    said, number = cells["check-double"]["outputs"]
    assert "[failed] Each number is doubled" in said["text"] and number["data"]["text/plain"] == "0.0"


# submissions that are not in order --------------------------------------------------------------------------


def test_a_judge_that_fails_on_one_submission_is_no_points_and_a_note(folders, here, monkeypatch, capsys):
    def fail_on_bob(student):
        if student == "bob":
            raise RuntimeError("a secret")

    monkeypatch.setattr(pools, "judge", other_judge(fail_on_bob))
    for student in ("ada", "bob"):
        submit(folders, student, **GOOD)
    assert grade(NAME, folder=folders.root) == 0
    assert totals(folders) == {"ada": 5.0, "bob": 0.0}
    assert "1 submission to look at: bob" in (shown := capsys.readouterr().out) and "a secret" not in shown


def test_folders_that_are_links_are_no_submissions(folders, here):
    submit(folders, "ada", **GOOD)
    (folders.root / "submitted" / "eve").symlink_to(folders.root / "submitted" / "ada")
    (folders.root / "submitted" / "mal").mkdir()
    (folders.root / "submitted" / "mal" / NAME).symlink_to(folders.submitted("ada", NAME))
    grade(NAME, folder=folders.root)
    assert totals(folders) == {"ada": 5.0}


# what is said before anything begins ------------------------------------------------------------------------


def test_what_is_missing_is_said_with_what_to_do(folders, here, monkeypatch):
    def refused(said, **options):
        with pytest.raises(CannotStart, match=said):
            grade(NAME, folder=folders.root, **options)

    refused("course assign collect 07")
    submit(folders, "ada", **GOOD)
    refused("'eve' has not submitted assignment 07", student="eve")
    with grading_lock(folders):
        refused("Another grader is at work")
    with monkeypatch.context() as patch:
        patch.setattr(bubblewrap, "problem", lambda: "There is no bubblewrap here; install it: sudo apt-get")
        refused(r"sudo apt-get\..*--trusted-students")
    with sqlite3.connect(folders.gradebook) as db:
        db.execute("update grade_cells set max_score = 30 where max_score = 3")
    refused(r"changed since its release \(its cells or points\)")
    (folders.release(NAME) / f"{NOTEBOOK}.ipynb").unlink()
    refused("course assign release 07")
    folders.gradebook.unlink()
    refused("course assign release 07")


def test_a_sandbox_that_is_lost_for_good_stops_the_run_and_keeps_what_is_done(folders, here, monkeypatch):
    for student in ("ada", "bob", "cy"):
        submit(folders, student, **GOOD)
    asked = []

    def lose_it(student):
        asked.append(student)
        if len(asked) > 1:
            raise SandboxError("user namespaces are gone")

    monkeypatch.setattr(pools, "judge", other_judge(lose_it))
    with pytest.raises(CannotStart, match=r"user namespaces are gone\. What was graded so far is kept"):
        grade(NAME, folder=folders.root)
    assert totals(folders) == {"ada": 5.0} and asked == ["ada", "bob", "bob", "cy", "cy"][: len(asked)]


def test_ctrl_c_ends_cleanly_and_the_next_start_goes_on(folders, here, monkeypatch, capsys):
    submit_many(folders, 4)
    real, recorded = Gradebook.record, []

    def record(self, verdict, *arguments, **more):
        if len(recorded) == 2:
            raise KeyboardInterrupt
        real(self, verdict, *arguments, **more)
        recorded.append(verdict["student"])

    with monkeypatch.context() as patch:
        patch.setattr(Gradebook, "record", record)
        assert grade(NAME, folder=folders.root) == 130
    assert "Stopped. 2 of 4 submissions graded and recorded" in capsys.readouterr().out and len(totals(folders)) == 2
    assert grade(NAME, folder=folders.root) == 0
    assert "2 graded now, 2 graded before" in capsys.readouterr().out


# workers that die -------------------------------------------------------------------------------------------


def test_a_lost_worker_is_said_with_whom_it_judged_and_what_was_done_before_is_kept():
    people = [Submission(student=name, assignment=NAME, sha256=name) for name in ("a", "b", "evil", "c")]
    given = lambda submission: (lambda each: {"points": 1}, submission)  # noqa: E731
    found, done = judge_all(people, given, Here(dies=lambda student: student == "evil"), 1), []
    with pytest.raises(CannotStart, match=r"lost, .* \(BrokenExecutor\), with one of these: evil. .* is kept"):
        done.extend(submission.student for submission, _ in found)
    assert done == ["a", "b"]


# the command ------------------------------------------------------------------------------------------------


def run_until(folders, done, *options):
    """The command, running, when `done` submissions are graded."""
    running = subprocess.Popen(command(folders, *options), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    end = time.monotonic() + 100
    while len(graded_files(folders)) < done and running.poll() is None:
        assert time.monotonic() < end
        time.sleep(0.01)
    return running


def inside(running, word):
    """The processes below the command with this word on their command lines, the oldest first."""
    found = []
    for child in psutil.Process(running.pid).children(recursive=True):
        with contextlib.suppress(psutil.Error):
            found += [child] if word in " ".join(child.cmdline()) else []
    return sorted(found, key=lambda child: child.create_time())


def test_killed_with_kill_9_it_takes_its_workers_along_loses_nothing_and_resumes(folders):
    submit_many(folders, 24)
    for done in (1, 9):
        with run_until(folders, done, "--workers", "1") as running:
            workers = psutil.Process(running.pid).children(recursive=True)
            running.kill()
        assert workers and psutil.wait_procs(workers, timeout=30)[1] == []
        assert done - 1 <= whole(folders) < 24
    ended = subprocess.run(command(folders), capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0 and "0 graded before" not in ended.stdout, ended.stdout
    assert whole(folders) == 24 and set(totals(folders).values()) == {5.0}


def test_a_sandbox_lost_midway_costs_nobody_a_point_and_ctrl_c_says_what_is_done(folders):
    submit_many(folders, 40)
    with run_until(folders, 2, "--workers", "2") as running:
        inside(running, "boxed.zygote")[0].kill()
        while len(graded_files(folders)) < 10 and running.poll() is None:
            time.sleep(0.01)
        running.send_signal(signal.SIGINT)
        said, _ = running.communicate(timeout=60)
    assert (running.returncode, "Traceback" in said) == (130, False) and "Stopped. " in said, said
    assert set(totals(folders).values()) == {5.0} and len(totals(folders)) < 40


def test_a_worker_lost_midway_ends_the_command_and_the_next_start_goes_on(folders):
    submit_many(folders, 12)
    with run_until(folders, 2, "--workers", "2") as running:
        inside(running, "forkserver")[-1].kill()
        said, _ = running.communicate(timeout=60)
    assert (running.returncode, "Traceback" in said) == (1, False) and "What was graded so far is kept" in said, said
    ended = subprocess.run(command(folders), capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0 and whole(folders) == 12 and set(totals(folders).values()) == {5.0}, ended.stdout


# folders ----------------------------------------------------------------------------------------------------


def test_the_instructors_key_is_made_once_and_for_the_owner_alone(tmp_path):
    folders = Folders(root=tmp_path)
    key = instructor_key(folders)
    folders.key.chmod(0o644)
    assert len(key) == 32 and instructor_key(folders) == key and folders.key.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["instructor.key"]
    for content in ("", "abc", "z" * 64, "00" * 31):
        folders.key.write_text(content)
        with pytest.raises(CannotStart, match="Restore it from a copy"):
            instructor_key(folders)
        assert folders.key.read_text() == content


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "new" / "file"
    write_whole(path, "first")
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError("no")))
    with pytest.raises(CannotStart, match="new/file cannot be written"):
        write_whole(path, "second")
    assert path.read_text() == "first"


def test_the_course_directory_comes_from_option_environment_or_course(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_ASSIGNMENTS", str(tmp_path))
    assert assignments_folder().root == tmp_path
    (tmp_path / "other").mkdir()
    assert assignments_folder(tmp_path / "other").root == tmp_path / "other"
    monkeypatch.delenv("COURSE_ASSIGNMENTS")
    assert assignments_folder().root.name == "assignments"
    with pytest.raises(CannotStart, match="--folder"):
        assignments_folder(tmp_path / "missing")
