"""Feedback pages: what a student reads, what nobody may read there, and nothing in them that acts."""

import base64
import hashlib
import re
import sqlite3
from datetime import datetime
from html.parser import HTMLParser
from pathlib import Path

import pytest

from course_lib.data.place import CannotStart
from course_lib.grading import feedback as pages
from course_lib.grading.feedback import feedback
from course_lib.grading.intake import Submission
from course_lib.grading.judge import NOT_JUDGED, lost_verdict
from course_lib.grading.spec import read_assignment
from tests.grading.courses import NAME, NOTEBOOK, by_hand, nbgraders_book, record, submit, verdict

HOSTILE = "</pre></code><script>alert(1)</script><img src=x onerror=alert(2)> & \"' \u202eevil\x00\x1b[31m \ud800"
HOSTILE_CODE = f"x = '<script>alert(3)</script>'  # <img src=x onerror=alert(4)>\n{HOSTILE}"


class Outline(HTMLParser):
    """Elements, attributes and text of a page; malformed pages fail."""

    EMPTY = frozenset(["meta", "rect", "br"])
    INLINE = frozenset(["span", "strong", "code", "a", "bdi"])

    def __init__(self, text):
        super().__init__()
        self.elements, self.attributes, self.open, self.words = [], [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append(tag)
        self.words.append("" if tag in self.INLINE else " ")
        self.attributes += [(tag, *attribute) for attribute in attrs]
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not self.open or self.open[-1] not in ("style", "title"):
            self.words.append(data)

    @property
    def text(self):
        return " ".join("".join(self.words).split())


@pytest.fixture
def page(folders):
    """page(student): their page, after all pages were written; page.text(student): what can be read there."""

    def page(student="ada"):
        assert feedback(NAME, folders.root) == 0
        return (folders.feedback(student, NAME) / f"{NOTEBOOK}.html").read_text(encoding="utf-8")

    page.text = lambda student="ada": Outline(page(student)).text
    return page


# the page -------------------------------------------------------------------------------------------------


def test_a_page_says_points_expectation_misconception_hint_comment_and_what_to_do_next(folders, page):
    record(folders, "ada", {"add": "def add(a, b):\n    return a", "why": "So."}, add=1.0)
    by_hand(folders, add={"manual_comment": "Nearly!"})
    text = page.text()
    for words in ("Feedback for ada", "3 of 9 points so far", "Add 0 of 1 passed 1 of 3", "add is right 1 of 3"):
        assert words in text
    assert "Wrong. add is off. Hint: Look again." in text and "def add(a, b): return a" in text and "Nearly!" in text
    steps = text[text.index("What to do next") : text.index("Work in your notebook")]
    assert "Add: wrong. add is off. Look again." in steps and "Double" not in steps
    assert "A person reads this answer" in text and "can add up to 4 points" in text


def test_what_a_student_wrote_cannot_become_part_of_the_page(folders, page):
    tasks = verdict("x", add=0.0)["tasks"]
    tasks["add"]["checks"][0]["findings"] *= 2
    tasks["add"]["checks"][0]["findings"][0] = {"misconception": HOSTILE, "message": HOSTILE, "hint": HOSTILE}
    record(folders, "ada", {"add": HOSTILE_CODE, "why": HOSTILE}, tasks=tasks, notes=[HOSTILE])
    by_hand(folders, add={"manual_comment": HOSTILE.replace("\ud800", "")})
    html = page()
    outline = Outline(html)
    assert not {"script", "img", "iframe", "form", "b"} & set(outline.elements)
    assert not [name for _, name, _ in outline.attributes if name.startswith("on")]
    assert "\u202e" not in html and "\x1b" not in html and "<script>alert(1)</script>" in outline.text


def test_the_policy_allows_the_pages_own_style_and_nothing_else(folders, page):
    record(folders, "ada")
    html = page()
    style = re.search("<style>(.*?)</style>", html, re.DOTALL)[1]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert dict(rest for tag, *rest in Outline(html).attributes if tag == "meta")["content"]
    policy = html.replace("&#39;", "'")
    assert f"style-src 'sha256-{digest}'" in policy and "default-src 'none'" in policy
    assert " style=" not in html.split("</style>")[1] and "http://" not in html and "https://" not in html


def test_headings_descend_one_level_at_a_time_and_a_long_answer_is_cut(folders, page):
    record(folders, "ada", {"add": "x = 1\n" * 15_000}, add=0.0)
    html = page()
    levels = [int(tag[1]) for tag in Outline(html).elements if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1 and all(after - before <= 1 for before, after in zip(levels, levels[1:], strict=False))
    assert len(html) < 600_000 and "…" in html


@pytest.mark.parametrize("scheme", ["light", "dark", "print"])
def test_every_text_colour_has_the_contrast_of_wcag_aa(scheme):
    style = Path(pages.__file__).with_suffix(".css").read_text()
    start = {"light": 0, "dark": style.index("(prefers-color-scheme: dark)"), "print": style.index("@media print")}
    colours = dict(re.findall(r"--(\w+): (#\w{6});", style[start[scheme] :].split("}")[0]))

    def luminance(name):
        channels = [int(colours[name][i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    for ink in ("text", "muted", "link", "good", "bad", "wait", "word", "string", "number", "comment"):
        for paper in ("page", "card", "note"):
            bright, dark = sorted((luminance(ink), luminance(paper)), reverse=True)
            assert (bright + 0.05) / (dark + 0.05) >= 4.5, f"{ink} on {paper}"


# from the course directory ----------------------------------------------------------------------------------


def test_feedback_is_written_where_nbgrader_looks_for_it(folders, page, capsys):
    record(folders, "ada", {"add": "def add(a, b):\n    return a + b"})
    record(folders, "bob", add=1.0)
    (folders.submitted("ada", NAME) / "submission_secret.txt").write_text("s3cret")
    ada, bob = page("ada"), page("bob")
    assert capsys.readouterr().out.count("2 pages") == 2
    files = [f"{NOTEBOOK}.html", "submission_secret.txt", "timestamp.txt"]
    assert sorted(path.name for path in folders.feedback("ada", NAME).iterdir()) == sorted(files)
    assert "5 of 9 points" in ada and "bob" not in ada
    assert "Add is off" not in bob and "<code>add</code> is off." in bob


def test_points_and_comments_by_hand_are_shown_as_such(folders, page):
    record(folders, "ada", {"why": "Since <b>.", "add": "a = 1"}, add=1.0)
    assert "so far" in (html := page()) and "Since &lt;b&gt;." in html
    by_hand(folders, why={"manual_score": 2.5, "needs_manual_grade": False}, add={"manual_comment": "For the idea."})
    by_hand(folders, why={"manual_comment": "Good <thought>"}, check_add={"manual_score": 2.0})
    text = page.text()
    assert "6.5 of 9 points" in text and "so far" not in text and "2.5 of 4 points" in text
    assert "Good <thought>" in text and "For the idea." in text
    assert "Your instructor gave 2 points for this task by hand; the checks alone gave 1." in text


def test_neither_prints_nor_other_students_nor_places_of_this_machine_get_in(folders):
    found = verdict("ada", add=0.0)["tasks"]
    found["add"]["printed"] = "HIDDEN-INPUT 0.1234"
    record(folders, "ada", tasks=found)
    record(folders, "zaphod", {"add": "ZAPHODS-CODE"})
    feedback(NAME, folders.root, student="ada")
    text = (folders.feedback("ada", NAME) / f"{NOTEBOOK}.html").read_text()
    assert "HIDDEN-INPUT" not in text and "zaphod" not in text.lower()
    assert str(folders.root) not in text and str(folders.root.parent.name) not in text
    assert not folders.feedback("zaphod", NAME).exists()


def test_what_the_verdict_says_of_the_whole_submission_gets_in(folders, page):
    notes = ["The cell 'add' is there more than once."]
    record(folders, "ada", status="needs attention", sandbox="none: trusted students", notes=notes)
    record(folders, "bob", when="2026-03-02 13:00:00 UTC")
    text = page.text()
    assert "Needs attention." in text and "(trusted students)" in text and notes[0] in text
    assert re.search("[0-9a-f]{64}", text)
    text = page.text("bob")
    assert "Needs attention" not in text and "trusted" not in text and "About your file" not in text


def unanswered():
    tasks = verdict("x", add=0.0, double=0.0)["tasks"]
    return {name: task | {"answered": False} for name, task in tasks.items()}


def test_a_file_that_cannot_be_read_is_said_once_with_what_to_do(folders, page):
    more = {"readable": False, "notes": ["It is no notebook. Submit it again."], "tasks": unanswered()}
    record(folders, "ada", status="needs attention", **more)
    text = page.text()
    assert text.count("It is no notebook. Submit it again.") == 1 and text.count("stay as they are until") == 1
    assert text[text.index("Result") : text.index("Total")].count("not judged") == 3
    for words in ("need not do anything", "About your file", "What to do next", "no answer", "checks passed"):
        assert words not in text


def lost(folders, **more):
    """What the grader writes where judging ended it."""
    answers = {"add": "def add(a, b):\n    return a + b", "double": "double = 1"}
    submission = Submission(student="ada", assignment=NAME, sha256="a" * 64, answers=answers, **more)
    files = read_assignment(folders.root, NAME)
    found = lost_verdict(submission, files, trusted=False, note="Look at it by hand.")
    return {name: value for name, value in found.items() if name != "student"}


def test_a_submission_that_could_not_be_judged_waits_and_asks_nothing_of_the_student(folders, page):
    record(folders, "ada", {"add": "a = 1", "why": "So."}, **lost(folders, notes=("A cell is missing.",)))
    text = page.text()
    assert "0 of 9 points so far Your submission has not been judged yet." in text
    assert text.count("waiting for your instructor") == 2 and text.count("– Waits") == 3
    assert "nothing that you have to repair" in text and "A cell is missing." in text
    for words in ("What to do next", "checks passed", "Not yet", "by hand"):
        assert words not in text


def test_points_by_hand_end_the_wait_for_them(folders, page):
    record(folders, "ada", {"add": "a = 1"}, **lost(folders))
    given = {"check_add": 3.0, "check_double": 1.5, "why": 0.0}
    by_hand(folders, **{name: {"manual_score": number, "needs_manual_grade": False} for name, number in given.items()})
    text = page.text()
    assert "4.5 of 9 points Graded by hand." in text and "so far." not in text and "Waits" not in text
    assert "Needs attention" not in text
    assert "Add graded by hand 3 of 3 Double graded by hand 1.5 of 2" in text
    assert "Your instructor gave 3 points for this task by hand." in text and "What to do next" not in text


def test_what_a_check_could_not_judge_waits_and_the_rest_is_said(folders, page):
    tasks = verdict("ada", add=0.0, double=0.0)["tasks"]
    message = "This check could not be carried out on your answer; your instructor is told."
    tasks["add"]["checks"][0]["findings"] = [{"misconception": NOT_JUDGED, "message": message, "hint": ""}]
    notes = ["A check could not be carried out: ValueError in the check 'x' of task 'add'."]
    record(folders, "ada", status="needs attention", notes=notes, student_notes=[], tasks=tasks)
    text = page.text()
    assert "0 of 2 checks passed, and 1 waiting for your instructor." in text
    assert f"Waits add is right 0 of 3 {message}" in text
    steps = text[text.index("What to do next") : text.index("Work in your notebook")]
    assert "Double: wrong. double is off." in steps and "Add" not in steps
    assert "ValueError" not in text and "About your file" not in text


def test_who_handed_in_no_answer_is_asked_whether_the_notebook_was_saved(folders, page):
    record(folders, "ada", tasks=unanswered())
    record(folders, "bob", {"why": "So."}, tasks=unanswered())
    text = page.text()
    assert "There is no answer in the notebook that you handed in." in text and "course assign submit 07" in text
    text = page.text("bob")
    assert "0 of 2 checks passed" in text and "No answers." not in text


def test_lateness_and_what_it_costs_get_in(folders, page):
    record(folders, "ada", submitted=datetime(2026, 3, 1, 13, 30))
    with nbgraders_book(folders) as book:
        book.find_submission_notebook(NOTEBOOK, NAME, "ada").late_submission_penalty = 1.5
        book.db.commit()
    text = page.text()
    assert "on 1 March 2026 at 13:30 UTC, 1 h 30 min after the deadline." in text
    assert "3.5 of 9 points" in text and "Late −1.5" in text


def test_a_page_is_refused_where_the_answers_are_not_those_that_were_judged(folders, capsys):
    record(folders, "ada")
    record(folders, "bob")
    submit(folders, "bob", add="another answer")
    assert feedback(NAME, folders.root) == 1
    out = capsys.readouterr().out
    assert "No page for bob" in out and "course grade 07 --student bob --again" in out and "1 page of" in out
    with sqlite3.connect(folders.gradebook) as db:
        db.execute("delete from course_verdicts")
    assert feedback(NAME, folders.root) == 1
    assert capsys.readouterr().out.count("not been graded as it is now") == 2


def test_who_is_not_graded_gets_a_sentence(folders):
    with pytest.raises(CannotStart, match="course grade 07"):
        feedback(NAME, folders.root)
    record(folders, "ada")
    with pytest.raises(CannotStart, match="'zoe' has not been graded.*course grade 07"):
        feedback(NAME, folders.root, student="zoe")
