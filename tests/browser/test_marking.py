"""The marking page, the leaderboard and the report in a real browser, from files and without a network."""

import json

import pytest

from course_lib.grading import marking as module
from course_lib.grading.gradebook import scores
from course_lib.grading.marking import marking, marks
from course_lib.teaching.report import report
from tests.axe import axe_script
from tests.browser.test_site import AXE
from tests.grading.courses import NAME, make_course
from tests.grading.test_marking import STUDENTS, record

pytestmark = pytest.mark.needs("chromium", "lecture_assets")

TYPICAL = "# why\n\n## Reason\n- 1.5: A reason is there.\n- 0.5: Say why.\n"
MODEL = "**Reason (3).** Because.\n\n**Form (1).** In a sentence."


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    folders = make_course(tmp_path_factory.mktemp("class") / "course")
    source = folders.source(NAME) / "sums.ipynb"
    source.write_text(source.read_text().replace("Because.", json.dumps(MODEL)[1:-1]))
    (folders.hidden(NAME) / "written.md").write_text(TYPICAL)
    for student, text in STUDENTS.items():
        record(folders, student, text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_mathjax", lambda: "")
        marking(NAME, folder=folders.root)
    report(folder=folders.root)
    return folders


def press(page, keys):
    for key in keys.split():
        page.keyboard.press(key)


def test_marks_are_given_by_keyboard_kept_and_carried_into_the_gradebook(offline, folders, tmp_path):
    page = offline((folders.root / "marking" / f"{NAME}.html").as_uri(), accept_downloads=True)
    press(page, "a 1")  # a typical answer, then the one point of the form
    assert page.inner_text("#total") == "2.5 of 4 points"
    press(page, "n 2 . 0 w")
    page.keyboard.type("Say more: n p 3.")
    press(page, "Escape n")
    page.reload()
    assert page.inner_text("#progress") == "2 of 3 marked here, 2 of 3 in all"
    press(page, "u 3")
    assert page.inner_text("#total") == "3 of 4 points so far, 1 part without points"
    with page.expect_download() as download:
        press(page, "s")
    file = tmp_path / download.value.suggested_filename
    download.value.save_as(file)
    found = sorted((mark["points"], mark["comment"]) for mark in json.loads(file.read_text())["marks"])
    assert file.name == f"marks-{NAME}.json"
    assert found == [(2.5, "Reason: A reason is there."), (2.5, "Say more: n p 3.")]
    marks(file, folder=folders.root)
    rows = scores(folders.gradebook, NAME)
    assert sorted(row.points["why"] for row in rows) == [0, 0, 2.5, 2.5]
    assert sum(bool(row.unread) for row in rows) == 1


def test_points_stay_in_range_and_can_be_taken_back(offline, folders):
    page = offline((folders.root / "marking" / f"{NAME}.html").as_uri(), accept_downloads=True)
    press(page, "9")
    assert page.inner_text("#total") == "0 of 4 points so far, 2 parts without points"
    press(page, "3 .")
    assert page.inner_text("#total") == "3 of 4 points so far, 1 part without points"
    press(page, "x ArrowDown t")
    assert page.inner_text("#total") == "1 of 4 points so far, 1 part without points"
    press(page, "x")
    assert page.inner_text("#total") == "0 of 4 points so far, 2 parts without points"


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("file", [f"marking/{NAME}.html", "exports/report.html"])
def test_a_page_can_be_used_by_everybody(offline, folders, file, theme):
    page = offline((folders.root / file).as_uri(), color_scheme=theme)
    policy = page.context.new_cdp_session(page)
    policy.send("Page.setBypassCSP", {"enabled": True})  # for axe alone
    page.reload()
    page.evaluate(axe_script())
    assert page.evaluate(AXE) == []
