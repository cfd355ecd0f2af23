"""Feedback pages: what a student reads, what nobody may read there, and nothing in them that acts."""

import base64
import hashlib
import json
import re
import sys
import time
from datetime import datetime
from html.parser import HTMLParser

import pytest

from course_lib.data.place import CannotStart
from course_lib.grading.feedback import feedback
from course_lib.grading.feedback_page import CheckResult, Sheet, TaskResult, WrittenResult, code_html, page
from course_lib.grading.gradebook import Gradebook
from course_lib.grading.graded import graded_notebook
from course_lib.grading.intake import Submission
from course_lib.grading.judge import NOT_JUDGED, NOT_YET
from course_lib.grading.judging import lost_verdict
from course_lib.grading.spec import read_assignment
from course_lib.tasks import Finding
from tests.grading.courses import NAME, NOTEBOOK, make_course, released, submit, verdict

HOSTILE = "</pre></code><script>alert(1)</script><img src=x onerror=alert(2)> & \"' \u202eevil\x00\x1b[31m \ud800"
HOSTILE_CODE = f"x = '<script>alert(3)</script>'  # <img src=x onerror=alert(4)>\n{HOSTILE}"
WRONG = Finding(misconception="wrong axis", message="Columns sum to one.", hint="Use `dim=-1`.")


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


def sheet(**more):
    checks = (
        CheckResult(name="Rows sum to one", points=0, possible=1.5, passed=False, findings=(WRONG,)),
        CheckResult(name="Large inputs stay finite", points=2, possible=2, passed=True),
    )
    parts = (
        TaskResult(title="Softmax", points=2, possible=3.5, checks=checks, answer="def softmax(x):\n    return x"),
        WrittenResult(title="Why scale?", points=1.25, possible=2, answer="Because.", comment="Say more."),
    )
    return Sheet(**{"assignment": "05", "title": "Attention", "student": "Ada", "parts": parts} | more)


@pytest.fixture
def course(tmp_path):
    """record(student, ...): a graded submission; the course's folders are `record.folders`."""
    folders = make_course(tmp_path / "course")
    files = read_assignment(folders.root, NAME)

    def record(student, *, answers=None, when="2026-02-28 12:00:00 UTC", submitted=datetime(2026, 2, 28, 12), **more):
        answers = answers or {}
        submit(folders, student, when=when, **answers)
        found = verdict(student, **{"spec": files.hash} | more)
        place = folders.verdict(student, NAME)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(json.dumps(found))
        place = folders.autograded(student, NAME) / f"{NOTEBOOK}.ipynb"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(graded_notebook(json.dumps(released()).encode(), answers, found))
        with Gradebook(folders.gradebook, assignment=NAME, notebook=NOTEBOOK) as book:
            book.record(found, answers, submitted=submitted)

    record.folders = folders
    return record


def written(course, student):
    return (course.folders.feedback(student, NAME) / f"{NOTEBOOK}.html").read_text(encoding="utf-8")


def by_hand(course, student, cell, *, points=None, comment=None):
    """What a person does in formgrader."""
    from nbgrader.api import Gradebook as Book

    with Book(f"sqlite:///{course.folders.gradebook}") as book:
        if points is not None:
            grade = book.find_grade(cell, NOTEBOOK, NAME, student)
            grade.manual_score, grade.needs_manual_grade = points, False
        if comment is not None:
            book.find_comment(cell, NOTEBOOK, NAME, student).manual_comment = comment
        book.db.commit()


# the page -------------------------------------------------------------------------------------------------


def test_a_page_says_points_expectation_misconception_hint_and_comment():
    text = Outline(page(sheet())).text
    assert "3.25 of 5.5 points" in text and "1 of 2 checks passed" in text
    assert "Not yet Rows sum to one 0 of 1.5" in text.replace("✗ ", "")
    assert "Wrong axis. Columns sum to one. Hint: Use dim=-1." in text
    assert "Passed Large inputs stay finite 2 of 2" in text.replace("✓ ", "")
    assert "Say more." in text and "Because." in text and "def softmax(x): return x" in text


def test_the_next_step_names_the_task_the_misconception_and_the_hint():
    text = Outline(page(sheet())).text
    steps = text[text.index("What to do next") : text.index("What was expected")]
    assert "Softmax: wrong axis. Columns sum to one. Use dim=-1." in steps and "course assign validate 05" in steps
    done = sheet(parts=(TaskResult(title="S", points=1, possible=1, checks=(sheet().parts[0].checks[1],), answer="x"),))
    assert "What to do next" not in page(done) and "All checks passed" in page(done)


def test_the_penalty_is_shown_and_never_takes_more_than_all():
    text = Outline(page(sheet(penalty=1.5, seconds_late=90_000))).text
    assert "1.75 of 5.5 points" in text and "Late −1.5" in text and "1 day and 1 hour after the deadline" in text
    assert sheet(penalty=100.0).points == 0


def test_an_unread_answer_is_open_and_not_zero():
    unread = WrittenResult(title="Why?", points=None, possible=2, answer="So.")
    text = Outline(page(sheet(parts=(*sheet().parts[:1], unread)))).text
    assert "2 of 5.5 points so far" in text and "not graded yet" in text and "can add up to 2 points" in text


def test_attention_trust_and_notes_stand_in_words():
    text = Outline(page(sheet(needs_attention=True, trusted=True, notes=("The cell `x` is missing.",)))).text
    assert "Needs attention." in text
    assert (
        "Trusted students. This submission was judged without a sandbox (trusted students): your code ran without "
        "walls on your instructor’s machine. That changes nothing about your points."
    ) in text
    assert "The cell x is missing." in text
    assert "sandbox" not in page(sheet()) and "Needs attention" not in page(sheet())


def test_the_same_finding_is_explained_once_a_task():
    checks = tuple(
        CheckResult(name=name, points=0, possible=1, passed=False, findings=(WRONG,)) for name in ("first", "second")
    )
    text = Outline(page(sheet(parts=(TaskResult(title="T", points=0, possible=2, checks=checks, answer="x"),)))).text
    text = text[text.index("What was expected") :]
    assert text.count("Columns sum to one.") == 1 and "Wrong axis, as above." in text


def test_a_check_that_waits_for_another_is_open_and_never_the_next_step():
    waits = Finding(misconception=NOT_YET, message="This counts only together with: Rows sum to one")
    checks = (
        CheckResult(name="Masked", points=0, possible=1, passed=False, findings=(waits,)),
        CheckResult(name="Rows sum to one", points=0, possible=1, passed=False, findings=(WRONG,)),
    )
    text = Outline(page(sheet(parts=(TaskResult(title="T", points=0, possible=2, checks=checks, answer="x"),)))).text
    assert "Open Masked 0 of 1 This counts only together with: Rows sum to one ✗ Not yet Rows" in text
    assert "T: wrong axis" in text


def test_what_a_student_wrote_cannot_become_part_of_the_page():
    harmless = page(sheet())
    parts = (
        TaskResult(
            title=HOSTILE,
            points=0,
            possible=1,
            checks=(
                CheckResult(
                    name=HOSTILE,
                    points=0,
                    possible=1,
                    passed=False,
                    findings=(Finding(misconception=HOSTILE, message=HOSTILE, hint=HOSTILE),),
                ),
                sheet().parts[0].checks[1],
            ),
            answer=HOSTILE_CODE,
            comment=HOSTILE,
        ),
        WrittenResult(title=HOSTILE, points=1, possible=2, answer=HOSTILE, comment=HOSTILE),
    )
    hostile = page(
        sheet(assignment=HOSTILE, title=HOSTILE, student=HOSTILE, parts=parts, notes=(HOSTILE,), submission=HOSTILE)
    )
    outline = Outline(hostile)
    assert set(outline.elements) <= set(Outline(harmless).elements) | {"div", "ul", "li", "span"}
    assert not {"script", "img"} & set(outline.elements)
    assert all(value.startswith("#task-") for _, name, value in outline.attributes if name == "href")
    assert not any(name.startswith("on") or name == "style" for _, name, _ in outline.attributes)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", hostile)
    assert "⟨U+202E⟩evil⟨U+0000⟩" in hostile
    hostile.encode("utf-8")


def test_the_policy_allows_the_pages_own_style_and_nothing_else():
    text = page(sheet())
    style = text[text.index("<style>") + 7 : text.index("</style>")]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    (policy,) = [value for _, name, value in Outline(text).attributes if name == "content" and "default-src" in value]
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    assert "url(" not in style and "@import" not in style and not re.search("(?:src|href)=.?(?!#)[a-z/]", text)


def test_headings_descend_one_level_at_a_time():
    levels = [int(tag[1]) for tag in Outline(page(sheet())).elements if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after <= before + 1 for before, after in zip(levels, levels[1:], strict=False))


@pytest.mark.parametrize("scheme", ["light", "dark", "print"])
def test_every_text_colour_has_the_contrast_of_wcag_aa(scheme):
    text = page(sheet())
    style = text[text.index("<style>") : text.index("</style>")]
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


@pytest.mark.parametrize(
    "piece",
    ["(", '"', "'''", "f'{", "\\", "\t", "0x", "é", " =", "\n#", "@a\n", "class ", "x=[", "f'''{f\"", "1_", "💥"],
)
def test_colouring_the_longest_answer_takes_no_time_and_loses_no_character(piece):
    source = (piece * 40_000)[:40_000]
    start = time.process_time()
    text = code_html(source)
    assert time.process_time() - start < 3
    assert len(text) < 5_000_000 and Outline(text).elements.count("pre") == 1


def test_colours_change_no_character_of_a_program():
    source = 'def f(x):\n\t"""a < b & c"""\n    return f"{x!r}" + \'é\'  # done\n\n\nlambda: 1 if x else 0x1F'
    assert "".join(Outline(code_html(source)).words).lstrip(" ") == source
    assert '<span class="k">def</span>' in code_html(source)


def test_a_very_long_answer_is_cut_off_and_says_so():
    assert len(code_html("x = 1\n" * 100_000)) < 2_000_000
    assert "left out" in code_html("x = 1\n" * 100_000) and "left out" in code_html("9" * 5_000)
    assert "left out" not in code_html("x = 1\n" * 100)


# from the course directory ----------------------------------------------------------------------------------


def test_feedback_is_written_where_nbgrader_looks_for_it(course, capsys):
    course("ada", answers={"add": "def add(a, b):\n    return a + b"})
    course("bob", add=1.0)
    (course.folders.submitted("ada", NAME) / "submission_secret.txt").write_text("s3cret")
    assert feedback(NAME, course.folders.root) == 0
    assert "2 pages" in capsys.readouterr().out
    place = course.folders.feedback("ada", NAME)
    assert sorted(path.name for path in place.iterdir()) == [
        "submission_secret.txt",
        f"{NOTEBOOK}.html",
        "timestamp.txt",
    ]
    assert "5 of 9 points" in written(course, "ada") and "bob" not in written(course, "ada")
    assert "Add is off" not in written(course, "bob") and "<code>add</code> is off." in written(course, "bob")


def test_points_and_comments_by_hand_are_shown_as_such(course):
    course("ada", answers={"why": "Since <b>.", "add": "a = 1"}, add=1.0)
    assert feedback(NAME, course.folders.root) == 0
    assert "so far" in written(course, "ada") and "Since &lt;b&gt;." in written(course, "ada")
    by_hand(course, "ada", "why", points=2.5, comment="Good <thought>")
    by_hand(course, "ada", "check-add", points=2.0)
    by_hand(course, "ada", "add", comment="For the idea.")
    feedback(NAME, course.folders.root)
    text = Outline(written(course, "ada")).text
    assert "6.5 of 9 points" in text and "so far" not in text and "2.5 of 4 points" in text
    assert "Good <thought>" in text and "For the idea." in text
    assert "Your instructor gave 2 points for this task by hand; the checks alone gave 1." in text


def test_neither_prints_nor_other_students_nor_places_of_this_machine_get_in(course):
    found = verdict("ada", add=0.0)["tasks"]
    found["add"]["printed"] = "HIDDEN-INPUT 0.1234"
    course("ada", tasks=found)
    course("zaphod", answers={"add": "ZAPHODS-CODE"})
    feedback(NAME, course.folders.root, student="ada")
    text = written(course, "ada")
    assert "HIDDEN-INPUT" not in text and "zaphod" not in text.lower()
    assert str(course.folders.root) not in text and str(course.folders.root.parent.name) not in text
    assert not course.folders.feedback("zaphod", NAME).exists()


def test_what_the_verdict_says_of_the_whole_submission_gets_in(course):
    notes = ["The cell 'add' is there more than once."]
    course("ada", status="needs attention", sandbox="none: trusted students", notes=notes)
    course("bob", when="2026-03-02 13:00:00 UTC")
    feedback(NAME, course.folders.root)
    text = Outline(written(course, "ada")).text
    assert "Needs attention." in text and "(trusted students)" in text and notes[0] in text and "a" * 64 in text
    text = Outline(written(course, "bob")).text
    assert "Needs attention" not in text and "trusted" not in text and "About your file" not in text


def test_a_file_that_cannot_be_read_is_said_once_with_what_to_do(course):
    found = verdict("ada", add=0.0, double=0.0)["tasks"]
    for task in found.values():
        task["answered"] = False
    course("ada", status="needs attention", readable=False, notes=["It is no notebook. Submit it again."], tasks=found)
    feedback(NAME, course.folders.root)
    text = Outline(written(course, "ada")).text
    assert text.count("It is no notebook. Submit it again.") == 1 and text.count("stay as they are until") == 1
    assert text[text.index("Result") : text.index("Total")].count("not judged") == 3
    for words in ("need not do anything", "About your file", "What to do next", "no answer", "checks passed"):
        assert words not in text


def lost(course, *, trusted=False, **more):
    """What the grader writes where judging ended it."""
    answers = {"add": "def add(a, b):\n    return a + b", "double": "double = 1"}
    submission = Submission(student="ada", assignment=NAME, sha256="a" * 64, answers=answers, **more)
    files = read_assignment(course.folders.root, NAME)
    found = lost_verdict(submission, files, trusted=trusted, note="Look at it by hand.")
    return {name: value for name, value in found.items() if name != "student"}


def test_a_submission_that_could_not_be_judged_waits_and_asks_nothing_of_the_student(course):
    course("ada", answers={"add": "a = 1", "why": "So."}, **lost(course, notes=("A cell is missing.",)))
    feedback(NAME, course.folders.root)
    text = Outline(written(course, "ada")).text
    assert "0 of 9 points so far Your submission has not been judged yet." in text
    assert text.count("waits for your instructor") == 2 and text.count("– Waits") == 3
    assert "nothing that you have to repair" in text and "A cell is missing." in text
    for words in ("What to do next", "checks passed", "Not yet", "by hand"):
        assert words not in text


def test_also_where_judging_failed_it_is_said_that_there_was_no_sandbox(course):
    course("ada", answers={"add": "a = 1"}, **lost(course, trusted=True))
    course("bob", answers={"add": "a = 1"}, **lost(course))
    feedback(NAME, course.folders.root)
    assert "(trusted students)" in Outline(written(course, "ada")).text
    assert "trusted" not in Outline(written(course, "bob")).text


def test_points_by_hand_end_the_wait_for_them(course):
    course("ada", answers={"add": "a = 1"}, **lost(course))
    by_hand(course, "ada", "check-add", points=3.0)
    by_hand(course, "ada", "check-double", points=1.5)
    by_hand(course, "ada", "why", points=0.0)
    feedback(NAME, course.folders.root)
    text = Outline(written(course, "ada")).text
    assert "4.5 of 9 points Graded by hand." in text and "so far." not in text and "Waits" not in text
    assert "Needs attention" not in text
    assert "Add graded by hand 3 of 3 Double graded by hand 1.5 of 2" in text
    assert "Your instructor gave 3 points for this task by hand." in text and "What to do next" not in text


def test_what_a_check_could_not_judge_waits_and_the_rest_is_said(course):
    tasks = verdict("ada", add=0.0, double=0.0)["tasks"]
    message = "This check could not be carried out on your answer; your instructor is told."
    tasks["add"]["checks"][0]["findings"] = [{"misconception": NOT_JUDGED, "message": message, "hint": ""}]
    notes = ["A check could not be carried out: ValueError in the check 'x' of task 'add'."]
    course("ada", status="needs attention", notes=notes, student_notes=[], tasks=tasks)
    feedback(NAME, course.folders.root)
    text = Outline(written(course, "ada")).text
    assert "0 of 2 checks passed, and 1 waits for your instructor." in text
    assert f"Waits add is right 0 of 3 {message}" in text
    steps = text[text.index("What to do next") : text.index("Work in your notebook")]
    assert "Double: wrong. double is off." in steps and "Add" not in steps
    assert "ValueError" not in text and "About your file" not in text


def test_who_handed_in_no_answer_is_asked_whether_the_notebook_was_saved(course):
    tasks = verdict("ada", add=0.0, double=0.0)["tasks"]
    for task in tasks.values():
        task["answered"] = False
    course("ada", answers={}, tasks=tasks)
    course("bob", answers={"why": "So."}, tasks=tasks)
    feedback(NAME, course.folders.root)
    text = Outline(written(course, "ada")).text
    assert "There is no answer in the notebook that you handed in." in text and "course assign submit 07" in text
    text = Outline(written(course, "bob")).text
    assert "0 of 2 checks passed" in text and "No answers." not in text


def test_points_by_hand_for_a_file_that_cannot_be_read_are_said(course):
    course("ada", status="needs attention", readable=False, notes=["It is no notebook."])
    by_hand(course, "ada", "check-add", points=2.5)
    feedback(NAME, course.folders.root)
    assert "graded by hand 2.5 of 3" in Outline(written(course, "ada")).text


def test_lateness_and_what_it_costs_get_in(course):
    from nbgrader.api import Gradebook as Book

    course("ada", submitted=datetime(2026, 3, 1, 13, 30))
    with Book(f"sqlite:///{course.folders.gradebook}") as book:
        book.find_submission_notebook(NOTEBOOK, NAME, "ada").late_submission_penalty = 1.5
        book.db.commit()
    feedback(NAME, course.folders.root)
    text = Outline(written(course, "ada")).text
    assert "on 1 March 2026 at 13:30 UTC, 1 hour and 30 minutes after the deadline." in text
    assert "3.5 of 9 points" in text and "Late −1.5" in text


def test_a_cell_without_an_answer_says_so(course):
    course("ada", answers={})
    feedback(NAME, course.folders.root)
    assert "You wrote no answer here." in written(course, "ada") and "’s comment" not in written(course, "ada")


def test_a_page_is_refused_where_the_answers_are_not_those_that_were_judged(course, capsys):
    course("ada")
    course("bob", submission="c" * 64)
    place = course.folders.verdict("bob", NAME)
    place.write_text(place.read_text().replace("c" * 64, "d" * 64))
    assert feedback(NAME, course.folders.root) == 1
    out = capsys.readouterr().out
    assert "No page for bob" in out and "course grade 07 --student bob --again" in out and "1 page of" in out
    place.unlink()
    assert feedback(NAME, course.folders.root) == 1 and "no verdict" in capsys.readouterr().out


def test_a_link_in_the_submission_is_not_followed(course, tmp_path):
    (tmp_path / "secret").write_text("key")
    course("ada", when=None)
    (course.folders.submitted("ada", NAME) / "submission_secret.txt").symlink_to(tmp_path / "secret")
    assert feedback(NAME, course.folders.root) == 0
    assert not (course.folders.feedback("ada", NAME) / "submission_secret.txt").exists()


def test_nobody_graded_and_unknown_assignments_get_a_sentence(course):
    with pytest.raises(CannotStart, match="course grade 07"):
        feedback(NAME, course.folders.root)
    course("ada")
    with pytest.raises(CannotStart, match="no submission of 'zoe'.*These have been graded: ada."):
        feedback(NAME, course.folders.root, student="zoe")
    submit(course.folders, "zoe")
    with pytest.raises(CannotStart, match="'zoe' has not been graded.*course grade 07"):
        feedback(NAME, course.folders.root, student="zoe")
    with pytest.raises(CannotStart, match="no assignment '99'"):
        feedback("99", course.folders.root)


def test_pages_of_a_grading_with_other_checks_are_announced(course, capsys):
    course("ada", spec="0" * 64)
    assert feedback(NAME, course.folders.root) == 0
    assert "1 tell of a grading with other checks, or another version of the judge." in capsys.readouterr().out


def test_without_nbgrader_a_sentence_says_how_to_install_it(course, monkeypatch):
    monkeypatch.setitem(sys.modules, "nbgrader", None)
    with pytest.raises(CannotStart, match=f"nbgrader is not installed.*course.py assign feedback {NAME}"):
        feedback(NAME, course.folders.root)
