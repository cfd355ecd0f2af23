"""`course grade`: everything is graded once, whatever is submitted and whatever is killed."""

import contextlib
import hashlib
import json
import multiprocessing
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import BrokenExecutor, Future
from pathlib import Path

import psutil
import pytest

from course_lib.data.place import CannotStart
from course_lib.grading import batch, judging, pools
from course_lib.grading.batch import Batch, grade, judge_all
from course_lib.grading.exchange import read_config
from course_lib.grading.folders import Folders, assignments_folder, grading_lock, instructor_key, write_whole
from course_lib.grading.gradebook import Gradebook, scores
from course_lib.grading.intake import Submission
from course_lib.grading.pools import Pool, Processes
from course_lib.grading.sandbox import SandboxError
from course_lib.grading.spec import read_assignment
from tests.grading import fakes
from tests.grading.courses import NAME, NOTEBOOK, make_course, submit

ADD = "def add(a, b):\n    return a + b"
DOUBLE = "def double(x):\n    return 2 * x"
GOOD = {"add": ADD, "double": DOUBLE, "why": "So."}
HALF_WRONG = GOOD | {"double": "def double(x):\n    return x"}


@pytest.fixture
def folders(tmp_path):
    return make_course(tmp_path / "course")


@pytest.fixture
def here(monkeypatch):
    """Judges in this process, without walls: for tests of the batch and not of the judge."""
    monkeypatch.setattr(judging, "Zygote", lambda trusted, hidden: fakes.FakeZygote(trusted=trusted))
    monkeypatch.setattr(batch, "missing_for_sandbox", lambda: None)
    monkeypatch.setattr(pools, "Processes", lambda workers, hidden: Here())
    monkeypatch.setattr(judging, "_of_this_thread", threading.local())


class Here(Pool):
    """Does in this process what it is given, when the result is asked for; `dies` says for which students it breaks."""

    width, deadly, retries = 3, (BrokenExecutor,), False

    def __init__(self, dies=None):
        self.dies = dies or (lambda student: False)
        self.begun, self.restarts, self.at_work, self.broken = [], 0, [], False

    def prepare(self, *, trusted):
        """It is here."""

    def submit(self, function, submission, *arguments):
        if self.broken:
            raise BrokenExecutor
        self.begun.append(submission.student)
        future = Future()
        self.at_work.append(future)
        if self.dies(submission.student):
            self.broken = True
            for each in self.at_work:
                each.set_exception(BrokenExecutor())
            self.at_work = []
        elif len(self.at_work) == 1:
            self.at_work = []
            try:
                future.set_result(function(submission, *arguments))
            except Exception as error:
                future.set_exception(error)
        return future

    def restart(self):
        self.restarts += 1
        self.broken = False

    def close(self):
        pass


def grade_command(folders, *options):
    """What runs `course grade` as a process of its own."""
    start = [sys.executable, "-c", "from course_lib.cli import main; main()", "grade", NAME]
    return [*start, *options, "--folder", str(folders.root)]


def totals(folders):
    return {row.student: row.total for row in scores(folders.gradebook, NAME)}


def verdict_of(folders, student):
    return json.loads(folders.verdict(student, NAME).read_text())


def without_seconds(folders):
    found = {student: verdict_of(folders, student) for student in folders.students(NAME)}
    return {student: verdict | {"seconds": None} for student, verdict in found.items()}


def whole(folders):
    """The gradebook is sound, and each table holds as many rows as it should for its students."""
    with sqlite3.connect(folders.gradebook) as db:
        assert db.execute("pragma integrity_check").fetchone() == ("ok",)
        students = db.execute("select count(*) from student").fetchone()[0]
        for table, each in (("submitted_assignment", 1), ("submitted_notebook", 1), ("grade", 3), ("comment", 3)):
            assert db.execute(f"select count(*) from {table}").fetchone()[0] == each * students
    return students


# what is graded, and what is left as it is ------------------------------------------------------------------


def test_all_who_submitted_are_graded_and_shown(folders, here, capsys):
    submit(folders, "ada", **GOOD)
    submit(folders, "bob", **HALF_WRONG)
    submit(folders, "cy")
    assert grade(NAME, folder=folders.root) == 0
    assert totals(folders) == {"ada": 5.0, "bob": 3.0, "cy": 0.0}
    shown = capsys.readouterr().out
    assert "3 graded now, 0 graded before" in shown and "2 answers wait for points by hand" in shown
    assert [word in shown for word in ("ada", "bob", "cy", "add", "double")] == [True] * 5


def test_what_is_graded_is_not_judged_again(folders, here, capsys):
    submit(folders, "ada", **GOOD)
    submit(folders, "bob", **GOOD)
    grade(NAME, folder=folders.root)
    submit(folders, "bob", **HALF_WRONG)
    before = without_seconds(folders)
    stamps = folders.verdict("ada", NAME).stat().st_mtime_ns
    grade(NAME, folder=folders.root)
    assert "1 graded now, 1 graded before" in capsys.readouterr().out
    assert folders.verdict("ada", NAME).stat().st_mtime_ns == stamps
    assert without_seconds(folders)["ada"] == before["ada"]
    assert totals(folders) == {"ada": 5.0, "bob": 3.0}


def test_judged_again_it_gets_the_same_verdict_to_the_last_check(folders, here):
    for student, answers in (("ada", GOOD), ("bob", HALF_WRONG), ("cy", {})):
        submit(folders, student, **answers)
    grade(NAME, folder=folders.root)
    first = without_seconds(folders)
    grade(NAME, folder=folders.root, again=True)
    assert without_seconds(folders) == first


def test_changed_checks_are_reason_to_judge_again(folders, here, capsys):
    submit(folders, "ada", **GOOD)
    grade(NAME, folder=folders.root)
    checks = folders.hidden(NAME) / "tasks.py"
    checks.write_text(checks.read_text().replace("2 * x", "3 * x"))
    grade(NAME, folder=folders.root)
    assert totals(folders) == {"ada": 3.0}


def test_one_student_alone(folders, here):
    submit(folders, "ada", **GOOD)
    submit(folders, "bob", **GOOD)
    grade(NAME, folder=folders.root, student="bob")
    assert totals(folders) == {"bob": 5.0}


def test_a_verdict_that_was_not_recorded_is_recorded_without_judging(folders, here, monkeypatch):
    """The state that a kill between the verdict's file and the gradebook leaves."""
    submit(folders, "ada", **GOOD)
    grade(NAME, folder=folders.root)
    with sqlite3.connect(folders.gradebook) as db:
        db.execute("delete from course_verdict")
        db.execute("update grade set auto_score = null")
    monkeypatch.setattr(judging, "judge", lambda *_, **__: pytest.fail("judged again"))
    grade(NAME, folder=folders.root)
    assert totals(folders) == {"ada": 5.0}


@pytest.mark.parametrize("broken", ["", "{", '{"schema": 1}', '{"schema": 99}', "[]"])
def test_a_damaged_verdict_is_judged_anew(folders, here, broken):
    submit(folders, "ada", **GOOD)
    grade(NAME, folder=folders.root)
    folders.verdict("ada", NAME).write_text(broken)
    grade(NAME, folder=folders.root)
    assert verdict_of(folders, "ada")["status"] == "graded"


def test_a_lost_graded_notebook_is_made_again(folders, here):
    submit(folders, "ada", **GOOD)
    grade(NAME, folder=folders.root)
    path = folders.autograded("ada", NAME) / f"{NOTEBOOK}.ipynb"
    content = path.read_bytes()
    path.unlink()
    grade(NAME, folder=folders.root)
    assert path.read_bytes() == content


def test_a_corrected_time_is_taken_over_without_judging(folders, here, monkeypatch):
    submit(folders, "ada", **GOOD)
    grade(NAME, folder=folders.root)
    submit(folders, "ada", when="2026-03-01 13:00:00 UTC", **GOOD)
    monkeypatch.setattr(judging, "judge", lambda *_, **__: pytest.fail("judged again"))
    grade(NAME, folder=folders.root)
    assert scores(folders.gradebook, NAME)[0].seconds_late == 3600


def test_a_verdict_without_a_sandbox_never_stands_for_one_with_it(folders, here, capsys):
    submit(folders, "ada", **GOOD)
    for trusted, mode in ((True, "none: trusted students"), (False, "bubblewrap"), (True, "none: trusted students")):
        grade(NAME, folder=folders.root, trusted=trusted)
        assert "1 graded now" in (shown := capsys.readouterr().out)
        sentence = "Judged WITHOUT a sandbox (trusted students): every verdict and report says so."
        assert (sentence in shown) == ("WITHOUT" in shown) == trusted
        assert verdict_of(folders, "ada")["sandbox"] == mode
        graded = (folders.autograded("ada", NAME) / f"{NOTEBOOK}.ipynb").read_text()
        assert ("Judged without a sandbox" in graded) == trusted


def test_what_was_read_is_what_is_judged_and_hashed(folders, here, monkeypatch):
    """A student replaces the submission while it is judged: the next run grades the new one."""
    submit(folders, "ada", **HALF_WRONG)
    first = (folders.submitted("ada", NAME) / f"{NOTEBOOK}.ipynb").read_bytes()
    real = judging.judge

    def replace_and_judge(submission, files, **more):
        submit(folders, "ada", **GOOD)
        return real(submission, files, **more)

    monkeypatch.setattr(judging, "judge", replace_and_judge)
    grade(NAME, folder=folders.root)
    assert totals(folders) == {"ada": 3.0}
    assert verdict_of(folders, "ada")["submission"] == hashlib.sha256(first).hexdigest()
    assert "return x" in (folders.autograded("ada", NAME) / f"{NOTEBOOK}.ipynb").read_text()
    monkeypatch.setattr(judging, "judge", real)
    grade(NAME, folder=folders.root)
    assert totals(folders) == {"ada": 5.0}


# submissions that are not in order --------------------------------------------------------------------------


def test_one_bad_submission_never_stops_the_batch(folders, here, capsys):
    submit(folders, "ada", **GOOD)
    submit(folders, "link", **GOOD)
    path = folders.submitted("link", NAME) / f"{NOTEBOOK}.ipynb"
    path.unlink()
    path.symlink_to("/etc/passwd")
    folders.submitted("nothing", NAME).mkdir(parents=True)
    submit(folders, "scrap", **GOOD)
    (folders.submitted("scrap", NAME) / f"{NOTEBOOK}.ipynb").write_bytes(b"\xff{[")
    submit(folders, "x" * 200, **GOOD)
    submit(folders, "[red]new\nline", **GOOD)
    submit(folders, "zoe", when="not a time", **GOOD)
    assert grade(NAME, folder=folders.root) == 0
    assert totals(folders) == {"ada": 5.0, "link": 0.0, "nothing": 0.0, "scrap": 0.0, "zoe": 5.0}
    shown = capsys.readouterr().out
    assert "3 submissions need attention: link, nothing, scrap." in shown
    assert shown.count("Not graded: ") == 2 and "Rename the folder" in shown
    assert "holds no time" in shown


def test_a_judge_that_fails_on_one_submission_is_no_points_and_a_note(folders, here, monkeypatch, capsys):
    real = judging.judge

    def judge(submission, files, **more):
        if submission.student == "bob":
            raise RuntimeError("a secret")
        return real(submission, files, **more)

    monkeypatch.setattr(judging, "judge", judge)
    for student in ("ada", "bob", "cy"):
        submit(folders, student, **GOOD)
    assert grade(NAME, folder=folders.root) == 0
    assert totals(folders) == {"ada": 5.0, "bob": 0.0, "cy": 5.0}
    assert "1 submission needs attention: bob" in (shown := capsys.readouterr().out) and "a secret" not in shown


def test_folders_that_are_links_are_no_submissions(folders, here, tmp_path):
    submit(folders, "ada", **GOOD)
    (folders.root / "submitted" / "eve").symlink_to(folders.root / "submitted" / "ada")
    (folders.root / "submitted" / "mal").mkdir()
    (folders.root / "submitted" / "mal" / NAME).symlink_to(folders.submitted("ada", NAME))
    grade(NAME, folder=folders.root)
    assert totals(folders) == {"ada": 5.0}


# what is said before anything begins ------------------------------------------------------------------------


def test_an_unknown_assignment_names_those_there_are(folders, here):
    with pytest.raises(CannotStart, match=r"no assignment '99'.*there is: 07"):
        grade("99", folder=folders.root)


def test_an_unknown_student_is_told_who_submitted(folders, here):
    submit(folders, "ada", **GOOD)
    with pytest.raises(CannotStart, match=r"no submission of 'eve'.*ada\."):
        grade(NAME, folder=folders.root, student="eve")


def test_nothing_submitted_says_how_to_collect(folders, here):
    with pytest.raises(CannotStart, match="course assign collect 07"):
        grade(NAME, folder=folders.root)


@pytest.mark.parametrize("lost", ["gradebook.db", f"release/{NAME}/{NOTEBOOK}.ipynb"])
def test_not_released_says_what_to_run(folders, here, lost):
    submit(folders, "ada", **GOOD)
    (folders.root / lost).unlink()
    with pytest.raises(CannotStart, match="course assign release 07"):
        grade(NAME, folder=folders.root)


def test_points_that_changed_since_the_release_say_so(folders, here):
    submit(folders, "ada", **GOOD)
    with sqlite3.connect(folders.gradebook) as db:
        db.execute("update grade_cells set max_score = 30 where max_score = 3")
    with pytest.raises(CannotStart, match=r"changed since its release \(points of check-add\)"):
        grade(NAME, folder=folders.root)


def test_without_a_sandbox_it_says_what_to_do_and_grades_nothing(folders, here, monkeypatch):
    submit(folders, "ada", **GOOD)
    monkeypatch.setattr(batch, "missing_for_sandbox", lambda: "There is no bubblewrap here; install bubblewrap")
    with pytest.raises(CannotStart, match=r"install bubblewrap\..*--trusted-students"):
        grade(NAME, folder=folders.root)
    assert totals(folders) == {}
    assert grade(NAME, folder=folders.root, trusted=True) == 0


def test_a_sandbox_that_is_lost_on_the_way_stops_the_run_and_keeps_what_is_done(folders, here, monkeypatch):
    for student in ("ada", "bob"):
        submit(folders, student, **GOOD)
    real, asked = judging._zygote, []

    def zygote(trusted):
        asked.append(trusted)
        if len(asked) > 1:
            raise SandboxError("user namespaces are gone")
        return real(trusted)

    monkeypatch.setattr(judging, "_zygote", zygote)
    with pytest.raises(CannotStart, match=r"user namespaces are gone\. What was graded so far is kept"):
        grade(NAME, folder=folders.root)
    assert totals(folders) == {"ada": 5.0}


def test_a_second_grader_is_refused_and_changes_nothing(folders, here):
    submit(folders, "ada", **GOOD)
    with grading_lock(folders), pytest.raises(CannotStart, match="Another grader is at work"):
        grade(NAME, folder=folders.root)
    assert totals(folders) == {}
    assert grade(NAME, folder=folders.root) == 0


def test_ctrl_c_ends_cleanly_and_the_next_start_goes_on(folders, here, monkeypatch, capsys):
    for number in range(6):
        submit(folders, f"s{number}", **GOOD)
    real = Gradebook.record
    recorded = []

    def record(self, verdict, *arguments, **more):
        if len(recorded) == 3:
            recorded.append("interrupted")
            raise KeyboardInterrupt
        real(self, verdict, *arguments, **more)
        recorded.append(verdict["student"])

    monkeypatch.setattr(Gradebook, "record", record)
    assert grade(NAME, folder=folders.root) == 130
    assert "Stopped. 3 of 6 submissions graded and recorded" in capsys.readouterr().out
    assert len(totals(folders)) == 3
    assert grade(NAME, folder=folders.root) == 0
    assert "3 graded now, 3 graded before" in capsys.readouterr().out
    assert sorted(set(recorded) - {"interrupted"}) == [f"s{number}" for number in range(6)] and len(recorded) == 7


# workers that die -------------------------------------------------------------------------------------------


def people(*names):
    return iter([Submission(student=name, assignment=NAME, sha256=name) for name in names])


def judged(pool, *names):
    def arguments(submission):
        return (lambda each: {"student": each.student, "points": 1}), submission

    crashed = {"points": 0}
    found = judge_all(people(*names), pool, arguments, lambda submission: crashed)
    return {submission.student: verdict["points"] for submission, verdict in found}


def test_a_submission_that_kills_its_worker_is_tried_once_more_and_harms_no_other():
    pool = Here(dies=lambda student: student == "evil")
    assert judged(pool, "a", "b", "evil", "c", "d") == {"a": 1, "b": 1, "evil": 0, "c": 1, "d": 1}
    assert pool.begun.count("evil") == 2 and max(pool.begun.count(name) for name in "abcd") <= 2
    assert pool.restarts == 2


def test_a_worker_killed_by_chance_costs_nobody_anything():
    deaths = iter([False, False, True])
    pool = Here(dies=lambda student: next(deaths, False))
    assert judged(pool, *"abcdef") == dict.fromkeys("abcdef", 1)


def test_many_killers_in_a_row_all_end_with_nothing_and_the_batch_goes_on():
    pool = Here(dies=lambda student: student.startswith("evil"))
    names = ["evil1", "evil2", "evil3", "good", "evil4"]
    assert judged(pool, *names) == {name: int(name == "good") for name in names}


def test_processes_that_cannot_start_are_no_students_fault(monkeypatch):
    pool = Processes(1)
    monkeypatch.setattr(pools, "_begin_worker", _end_at_once)
    with pytest.raises(CannotStart, match="end as soon as they start"):
        pool.submit(os.getpid)
    pool.close()


def _end_at_once(*_):
    os._exit(3)


def _pid_slowly(seconds):
    time.sleep(seconds)
    return os.getpid()


def alive(pid):
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def gone(pid, *, seconds=60):
    end = time.monotonic() + seconds
    while alive(pid) and time.monotonic() < end:
        time.sleep(0.02)
    return not alive(pid)


@pytest.mark.needs("linux")
def test_a_worker_killed_with_kill_9_is_noticed_and_a_new_pool_works():
    pool = Processes(1)
    try:
        pid = pool.submit(os.getpid).result()
        future = pool.submit(time.sleep, 60)
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(BrokenExecutor):
            future.result(timeout=50)  # seconds, less than it sleeps
        pool.restart()
        assert pool.submit(os.getpid).result() != pid
    finally:
        pool.close()


@pytest.mark.needs("linux")
def test_closing_a_pool_ends_its_workers_whatever_they_do():
    pool = Processes(1)
    pid = pool.submit(os.getpid).result()
    pool.submit(time.sleep, 600)
    start = time.monotonic()
    pool.close()
    assert gone(pid) and time.monotonic() - start < 10


@pytest.mark.needs("linux")
def test_an_interrupt_from_the_terminal_does_not_reach_the_workers():
    pool = Processes(1)
    try:
        pid = pool.submit(os.getpid).result()
        future = pool.submit(_pid_slowly, 0.5)
        os.kill(pid, signal.SIGINT)
        assert future.result(timeout=60) == pid
    finally:
        pool.close()


# the grader itself, killed ----------------------------------------------------------------------------------


@pytest.mark.needs("linux")
def test_a_grader_killed_at_any_moment_loses_nothing_and_grades_nothing_twice(folders, here, tmp_path):
    """kill -9 at random moments, many times; what stands in the end is what a run in peace gives."""
    for number in range(10):
        submit(folders, f"s{number}", **(GOOD if number % 2 else HALF_WRONG) | {"why": f"Reason {number}."})
    instructor_key(folders)
    undisturbed = Folders(root=tmp_path / "undisturbed")
    shutil.copytree(folders.root, undisturbed.root)
    context = multiprocessing.get_context("fork")

    def run(place, seconds, *, until=lambda: False):
        running = context.Process(target=grade, args=(NAME,), kwargs={"folder": place.root})
        running.start()
        end = time.monotonic() + seconds
        while running.is_alive() and time.monotonic() < end and not until():
            time.sleep(0.001)
        running.kill()
        running.join()

    def has_begun():
        return any(folders.root.glob("verdicts/*/*.json"))

    start = time.monotonic()
    run(undisturbed, 100)
    whole_run = time.monotonic() - start
    run(folders, 100, until=has_begun)
    draw, graded = random.Random(5), {whole(folders)}
    for share in sorted(draw.uniform(0.1, 1.2) for _ in range(25)):  # from before the first verdict to after the last
        run(folders, share * whole_run)
        graded.add(whole(folders))
    assert len(graded) >= 2  # it was killed at different stages
    assert grade(NAME, folder=folders.root) == 0
    assert whole(folders) == 10
    assert totals(folders) == totals(undisturbed)
    assert without_seconds(folders) == without_seconds(undisturbed)


@pytest.mark.needs("sandbox")
def test_the_command_killed_with_kill_9_takes_its_workers_along_and_resumes(folders):
    for number in range(30):
        submit(folders, f"s{number:02}", **GOOD)
    command = grade_command(folders, "--workers", "1")
    quiet = {"env": os.environ | {"OMP_NUM_THREADS": "1"}, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **quiet) as running:
        end = time.monotonic() + 100
        while len(list(folders.root.glob("verdicts/*/*.json"))) < 2 and running.poll() is None:
            assert time.monotonic() < end
            time.sleep(0.02)
        workers = [child.pid for child in psutil.Process(running.pid).children(recursive=True)]
        running.kill()
    assert workers and all(gone(pid) for pid in workers)
    assert 0 < whole(folders) < 30
    done = subprocess.run(command, timeout=300, **quiet)
    assert done.returncode == 0, done.stdout
    assert "0 graded before" not in done.stdout
    assert whole(folders) == 30
    assert set(totals(folders).values()) == {5.0}


# folders ----------------------------------------------------------------------------------------------------


def test_the_instructors_key_is_made_once_and_for_the_owner_alone(tmp_path):
    folders = Folders(root=tmp_path)
    key = instructor_key(folders)
    assert len(key) == 32 and instructor_key(folders) == key
    assert folders.key.stat().st_mode & 0o777 == 0o600
    folders.key.chmod(0o644)
    instructor_key(folders)
    assert folders.key.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["instructor.key"]


@pytest.mark.parametrize("content", ["", "abc", "z" * 64, "00" * 31])
def test_a_damaged_key_is_never_replaced(tmp_path, content):
    folders = Folders(root=tmp_path)
    folders.key.write_text(content)
    with pytest.raises(CannotStart, match="Restore it from a copy"):
        instructor_key(folders)
    assert folders.key.read_text() == content


def test_two_first_uses_at_once_agree_on_one_key(tmp_path):
    folders = Folders(root=tmp_path)
    keys = []
    threads = [threading.Thread(target=lambda: keys.append(instructor_key(folders))) for _ in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert len(set(keys)) == 1 and len(keys) == 8


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "new" / "file"
    write_whole(path, "first")
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError("no")))
    with pytest.raises(OSError):
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


def test_a_batch_keeps_the_cost_of_a_submission_flat(folders, here):
    """What one submission asks of the gradebook does not grow: as many statements for the 30th as for the 2nd."""
    files = read_assignment(folders.root, NAME)
    for number in range(30):
        submit(folders, f"s{number:02}", **GOOD)
    counts = []
    with Gradebook(folders.gradebook, assignment=NAME, notebook=NOTEBOOK, config=read_config(folders.root)) as book:
        grader = Batch(folders=folders, files=files, book=book)
        connection = book._db.connection().connection.dbapi_connection
        for student in folders.students(NAME):
            asked = []
            connection.set_trace_callback(asked.append)
            grader.grade_here(student)
            counts.append(len(asked))
        connection.set_trace_callback(None)
    assert counts[1] == counts[-1] > 10


@pytest.mark.needs("sandbox")
def test_ctrl_c_while_the_processes_start_says_nothing_of_them(folders):
    command = grade_command(folders)
    said = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with subprocess.Popen(command, start_new_session=True, **said) as running:
        server = wait_for_child(running.pid, "forkserver")
        os.killpg(running.pid, signal.SIGINT)
        heard, _ = running.communicate(timeout=100)
    assert running.returncode == 130 and "Traceback" not in heard
    psutil.wait_procs([server], timeout=20)
    assert whole(folders) == 0


def wait_for_child(parent, name):
    """The child of a process with this word on its command line, as soon as it runs Python."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        for child in psutil.Process(parent).children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                if any(name in part for part in child.cmdline()) and child.cpu_times().user > 0.1:
                    return child
        time.sleep(0.01)
    raise AssertionError(f"no {name}")


@pytest.mark.needs("sandbox")
def test_a_sandbox_that_is_lost_midway_costs_nobody_a_point(folders):
    for number in range(30):
        submit(folders, f"s{number:02}", **GOOD)
    command = grade_command(folders, "--workers", "2")
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as running:
        zygote = wait_for_child(running.pid, "boxed.zygote")
        end = time.monotonic() + 100
        while len(list(folders.root.glob("verdicts/*/*.json"))) < 2 and running.poll() is None:
            assert time.monotonic() < end
            time.sleep(0.005)
        assert len(list(folders.root.glob("verdicts/*/*.json"))) < 30
        zygote.kill()
        said, _ = running.communicate(timeout=300)
    assert running.returncode == 0 and "attention" not in said, said
    assert whole(folders) == 30 and len(set(totals(folders).values())) == 1
