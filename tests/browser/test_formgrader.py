"""Formgrader as an instructor meets it: the judge's scores and words, points by hand, and students who write HTML."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

from course_lib.commands.lab import is_free
from course_lib.grading.batch import grade
from course_lib.grading.export import export
from course_lib.grading.feedback import feedback
from course_lib.grading.folders import Folders
from course_lib.grading.gradebook import scores
from course_lib.grading.release import release
from tests.browser.lab import ROOT, SCREENSHOTS, SECOND, Lab, Watch

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.needs("sandbox")]

NAME, WRITTEN = "05", "in-your-own-words"
ANSWER_TIME = 240 * SECOND  # for one answer of the server on a busy machine
HOSTILE = """**A product** decides. $a < b$
<script>window.stolen = 1</script><img src="x" onerror="window.stolen = 2">
<a href="javascript:window.stolen = 3">more</a> <input class="score" id="check-train" value="15">
"""


def submit(folders, student, **answers):
    """Hands in the instructor's own notebook with some answers in place of its."""
    notebook = json.loads((folders.source(NAME) / "attention.ipynb").read_text())
    for cell in notebook["cells"]:
        grade_id = cell["metadata"].get("nbgrader", {}).get("grade_id")
        cell["source"] = answers.get(grade_id, cell["source"])
    place = folders.submitted(student, NAME)
    place.mkdir(parents=True)
    (place / "attention.ipynb").write_text(json.dumps(notebook))
    (place / "timestamp.txt").write_text("2026-03-01 12:00:00 UTC")


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """Assignment 05, released; two submissions, graded."""
    folders = Folders(root=tmp_path_factory.mktemp("course"))
    for part in ("source", "hidden"):
        shutil.copytree(ROOT / "notebooks" / "assignments" / part / NAME, folders.root / part / NAME)
    shutil.copy(ROOT / "notebooks" / "assignments" / "nbgrader_config.py", folders.config)
    wrong = "def alignment_error_rate(predicted, sure, possible):\n    return 0.5\n"
    marker = folders.root / "ran-outside"
    wrong += f"try:\n    open({str(marker)!r}, 'w').close()\nexcept OSError:\n    pass"
    assert release(NAME, folder=folders.root) == 0
    submit(folders, "ada")
    submit(folders, "bob", alignment_error_rate=wrong, **{WRITTEN: HOSTILE})
    assert grade(NAME, folder=folders.root, workers=1) == 0
    assert not marker.exists()
    return folders


class Formgrader(Lab):
    """`course assign formgrader` as typed into a terminal; `url` and `token` are from the address that it prints."""

    def __init__(self, folder, course):
        super().__init__(folder)
        self.course = course
        del self.env["JUPYTER_CONFIG_PATH"]  # the command itself has to see to it

    def __enter__(self):
        self.terminal, screen = os.openpty()  # the server asks what is typed there before it stops
        command = [sys.executable, "-m", "course_lib.cli", "assign", "formgrader", "--no-browser"]
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [*command, "--folder", str(self.course.root)],
                env=self.env, cwd=ROOT, stdin=screen, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        os.close(screen)
        try:
            self.url, self.token = self._printed_address(seconds=240)
        except BaseException:
            self.__exit__()
            raise
        return self

    def _printed_address(self, *, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end and self.process.poll() is None:
            if found := re.search(r"(http://127\.0\.0\.1:\d+/)formgrader\?token=(\w+)\s", self.log.read_text()):
                return found.groups()
            time.sleep(0.1)
        raise RuntimeError(f"no address within {seconds} s; it said:\n{self.log_tail()}")

    def press_ctrl_c(self):
        os.killpg(self.process.pid, signal.SIGINT)  # a terminal sends it to all that was started there

    def __exit__(self, *_):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGTERM)
            self.process.wait(timeout=60)
        os.close(self.terminal)


@pytest.fixture(scope="module")
def lab(course, tmp_path_factory):
    with Formgrader(tmp_path_factory.mktemp("lab"), course) as lab:
        yield lab


@pytest.fixture(scope="module")
def page(lab, browser):
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(ANSWER_TIME)
    page = context.new_page()
    page.watch = Watch(page)
    page.goto(f"{lab.url}formgrader?token={lab.token}")
    yield page
    context.close()


def open_submission(page, lab, number):
    page.goto(f"{lab.url}formgrader/gradebook/{NAME}/attention")
    page.get_by_role("link", name=f"Submission #{number}").first.click()
    arrived = expect(page.locator("#check-local_attention"))
    arrived.to_have_attribute("placeholder", re.compile("."))


def screenshot(page, name, of=None):
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.wait_for_timeout(800)  # formgrader scrolls softly
    (of or page).screenshot(path=SCREENSHOTS / f"formgrader-{name}.png")


def test_it_opens_on_the_course_with_the_assignment_and_its_submissions(page, lab):
    expect(page.get_by_role("heading", name="Manage Assignments")).to_be_visible()
    row = page.locator("tbody tr", has_text=NAME)
    expect(row.locator(".num-submissions")).to_have_text("2")
    screenshot(page, "assignments")


def test_pages_fetch_from_this_server_alone(page, lab):
    """A picture from elsewhere in an answer would tell its student when it is read."""
    policy = page.request.get(f"{lab.url}formgrader").headers["content-security-policy"]
    assert "default-src 'self'" in policy and "http" not in policy and "*" not in policy


@pytest.mark.parametrize("path", ["assignments", "formgraders", "assignments/validate", "nbgrader_version"])
def test_what_is_for_students_or_would_run_their_code_is_not_there(page, lab, path):
    assert page.request.get(f"{lab.url}{path}").status == 404


def test_it_shows_the_scores_that_the_judge_gave(page, lab, course):
    page.goto(f"{lab.url}formgrader/gradebook/{NAME}/attention")
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(2)
    ada, bob = scores(course.gradebook, NAME)
    assert (ada.total, ada.maximum) == (90, 100) and 75 <= bob.total < 90
    for score in (ada, bob):
        expect(rows.filter(has_text=f"{score.total:g} / 100")).to_have_count(1)
    screenshot(page, "submissions")


def bobs_number(course, page, lab):
    """Formgrader numbers submissions in an order of its own."""
    page.goto(f"{lab.url}formgrader/gradebook/{NAME}/attention")
    bob = scores(course.gradebook, NAME)[1]
    row = page.locator("tbody tr", has_text=f"{bob.total:g} / 100")
    return row.locator("a", has_text="Submission #").first.inner_text().rpartition("#")[2]


@pytest.fixture(scope="module")
def bob(page, lab, course):
    number = bobs_number(course, page, lab)
    open_submission(page, lab, number)
    return number


def test_a_task_shows_its_points_and_what_was_wrong_in_words(page, bob):
    expect(page.locator("#check-local_attention")).to_have_attribute("placeholder", "20")
    points = page.locator("#check-alignment_error_rate")
    expect(points).to_have_attribute("placeholder", re.compile(r"\d"))
    lost = points.get_attribute("placeholder")
    assert 0 <= float(lost) < 10
    tests = page.locator(".cell", has=points)
    expect(tests).to_contain_text(f"{lost} of 15 points")
    expect(tests).to_contain_text("[failed]")
    screenshot(page, "task", of=tests)


def test_html_in_a_written_answer_can_do_nothing(page, bob):
    answer = page.locator(".nbgrader_cell", has=page.locator(f"#{WRITTEN}")).locator(".rendered_html")
    expect(answer.locator("strong")).to_have_text("A product")
    expect(answer).to_contain_text("$a < b$")
    answer.get_by_text("more").click()
    assert page.evaluate("() => window.stolen") is None
    assert answer.locator("script, input, [onerror], [class], [id], a[href]").count() == 0
    expect(page.locator("#check-train")).to_have_count(1)


def test_points_and_comments_by_hand_outlive_another_grading(page, bob, course, lab):
    page.locator(f"#{WRITTEN}").fill("7.5")
    with page.expect_response(lambda answer: "/api/grade/" in answer.url and answer.request.method == "PUT"):
        page.keyboard.press("Tab")
    page.locator(f"#{WRITTEN}-comment").fill("Right, but say why.")
    with page.expect_response(lambda answer: "/api/comment/" in answer.url and answer.request.method == "PUT"):
        page.keyboard.press("Escape")
    page.locator(f"#{WRITTEN}").scroll_into_view_if_needed()
    screenshot(page, "points-by-hand")
    before = scores(course.gradebook, NAME)[1]
    assert before.points[WRITTEN] == 7.5
    assert grade(NAME, folder=course.root, student="bob", workers=1, again=True) == 0
    open_submission(page, lab, bob)
    expect(page.locator(f"#{WRITTEN}")).to_have_value("7.5")
    expect(page.locator(f"#{WRITTEN}-comment")).to_have_value("Right, but say why.")
    after = scores(course.gradebook, NAME)[1]
    assert after.points == before.points and after.total == before.total


def test_feedback_and_export_tell_of_points_and_comments_by_hand(page, bob, course, lab):
    total = f"{scores(course.gradebook, NAME)[1].total:g}"
    assert feedback(NAME, folder=course.root) == 0
    told = page.context.new_page()
    told.goto((course.feedback("bob", NAME) / "attention.html").as_uri())
    expect(told.get_by_text(f"{total} of 100 points")).to_be_visible()
    expect(told.locator("tr", has_text="In your own words")).to_contain_text("7.5 of 10")
    expect(told.get_by_text("Right, but say why.")).to_be_visible()
    told.close()
    assert export(NAME, folder=course.root) == 0
    assert f"\nbob,,,bob,,{total}" in (course.exports / f"{NAME}-canvas.csv").read_text().replace("\r", "")


def test_the_autograde_button_uses_the_judge_and_keeps_points_by_hand(page, bob, course, lab):
    before = scores(course.gradebook, NAME)[1]
    page.goto(f"{lab.url}formgrader/manage_submissions/{NAME}")
    row = page.locator("tbody tr", has_text="bob")
    row.locator(".autograde a").click()
    expect(page.locator(".modal-title")).to_have_text("Success", timeout=120 * SECOND)
    screenshot(page, "autograde")
    assert not (course.root / "ran-outside").exists()
    assert scores(course.gradebook, NAME)[1].points == before.points


def test_nothing_was_fetched_from_elsewhere_and_nothing_failed(page, lab):
    assert page.watch.problems == []


def test_ctrl_c_twice_ends_it_cleanly(page, lab):
    page.goto("about:blank")
    lab.press_ctrl_c()
    end = time.monotonic() + 240
    while "Shut down this Jupyter server" not in lab.log.read_text() and time.monotonic() < end:
        time.sleep(0.1)
    lab.press_ctrl_c()
    assert lab.process.wait(timeout=240) == 0
    assert "Traceback" not in lab.log.read_text()
    assert is_free(urlsplit(lab.url).port)
