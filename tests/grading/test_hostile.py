"""A whole class at once, hostile and careless submissions in it: everyone gets their own points, and nobody else's."""

import contextlib
import hashlib
import io
import json
import os
import time

import psutil
import pytest

from course_lib.grading.batch import grade
from course_lib.grading.feedback import feedback
from course_lib.grading.gradebook import scores
from course_lib.grading.release import release
from tests.grading import tiny
from tests.grading.hostile import EVERYDAY, HOSTILE

pytestmark = pytest.mark.needs("sandbox")

NAMES = {  # of folders: an odd name is a name
    "an option": "-rf",
    "a home": "~root",
    "shell characters": "$(touch evil);`id`|&'\"",
    "SQL": "Robert'); DROP TABLE student;--",
    "markup": "<b onmouseover=alert(1)>[bold red]x[unclosed",
    "a formula": "=HYPERLINK(0)",
    "other letters": "Ωμέγα 李 😀",
}
REFUSED = {
    "a newline": "two\nlines",
    "an escape": "\x1b[2Jcleared",
    "letters that turn around": "\u202eada",
    "too many letters": "x" * 200,
}
TIMES = {"words": "tomorrow", "no such day": "9999-99-99 99:99:99 UTC", "zeros": "\0" * 100, "digits": "1" * 1_000_000}
BROKEN = ("cut off", "a link", "a pipe", "500 megabytes", "a folder")


def descendants():
    return {process.pid for process in psutil.Process().children(recursive=True) if not is_helper(process)}


def is_helper(process):
    """Python keeps two processes for the next pool."""
    try:
        words = process.cmdline()[-1].split()
    except (psutil.Error, IndexError):
        return True
    return bool({"multiprocessing.forkserver", "multiprocessing.resource_tracker"} & set(words))


def hashes(folders):
    files = [path for path in folders.root.rglob("submitted/*/*/*") if path.is_file() and path.stat().st_size < 1 << 22]
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """The class after one run of the grader: its folders, what was printed, and what was left behind."""
    folders = tiny.write_course(tmp_path_factory.mktemp("class") / "course")
    folders.config.write_text('c = get_config()\nc.CourseDirectory.course_id = "x"\n')
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        release(tiny.NAME, folder=folders.root)
        for student, (task, _, source) in HOSTILE.items():
            tiny.submit(folders, student, **{task: source})
        for student, source in EVERYDAY.items():
            tiny.submit(folders, student, attention=source)
        for student in ["alice", *NAMES.values(), *REFUSED.values(), *BROKEN, *TIMES]:
            tiny.submit(folders, student)
        for student, text in TIMES.items():
            (folders.submitted(student, tiny.NAME) / "timestamp.txt").write_text(text)
        for student in BROKEN:
            spoil(folders.submitted(student, tiny.NAME) / f"{tiny.NOTEBOOK}.ipynb", student)
        files, before = hashes(folders), descendants()
        code = grade(tiny.NAME, folder=folders.root, workers=2)
    end = time.monotonic() + 5
    while (left := descendants() - before) and time.monotonic() < end:
        time.sleep(0.05)
    rows = {row.student: row for row in scores(folders.gradebook, tiny.NAME)}
    return {"folders": folders, "code": code, "printed": printed.getvalue(), "rows": rows, "left": left, "files": files}


def spoil(path, how):
    content = path.read_bytes()
    path.unlink()
    {
        "cut off": lambda: path.write_bytes(content[:200]),
        "500 megabytes": lambda: (path.touch(), os.truncate(path, 500 << 20)),
        "a link": lambda: path.symlink_to(path.parents[2] / "alice" / tiny.NAME / path.name),
        "a pipe": lambda: os.mkfifo(path),
        "a folder": path.mkdir,
    }[how]()


def points(graded, student):
    return {task: graded["rows"][student].points[f"check-{task}"] for task in tiny.FULL}


def test_the_batch_goes_on_to_its_end_and_leaves_nothing_behind(graded):
    everyone = {"alice", *HOSTILE, *EVERYDAY, *NAMES.values(), *TIMES, *BROKEN}
    assert graded["code"] == 0 and set(graded["rows"]) == everyone
    assert graded["left"] == set()
    assert graded["files"] == hashes(graded["folders"])
    assert [path.name for path in graded["folders"].root.parent.iterdir()] == ["course"]


@pytest.mark.parametrize("student", HOSTILE)
def test_a_hostile_cell_earns_what_it_deserves_and_costs_no_other_task(graded, student):
    task, earned, _ = HOSTILE[student]
    wanted = tiny.FULL | {task: earned}
    if task == "softmax":  # which attention calls
        del wanted["attention"]
    if student == "forges the end of its copy":  # its own later tasks are answered by what it left behind
        del wanted["Affine"]
    assert wanted.items() <= points(graded, student).items(), graded["rows"][student].verdict["tasks"][task]
    assert not graded["rows"][student].needs_attention


@pytest.mark.parametrize("student", ["alice", *EVERYDAY, *NAMES.values(), *TIMES])
def test_the_honest_get_all_points(graded, student):
    assert points(graded, student) == tiny.FULL, graded["rows"][student].verdict["tasks"]


@pytest.mark.parametrize("kind", REFUSED)
def test_a_name_that_could_mislead_is_refused_and_said(graded, kind):
    assert REFUSED[kind] not in graded["rows"]
    assert graded["printed"].count("Not graded: ") == len(REFUSED)


@pytest.mark.parametrize("student", BROKEN)
def test_a_broken_file_is_nothing_and_needs_attention(graded, student):
    assert points(graded, student) == dict.fromkeys(tiny.FULL, 0.0) and graded["rows"][student].needs_attention


def test_no_screen_and_no_page_is_steered(graded, capsys):
    assert not {character for character in graded["printed"] if not character.isprintable()} - {"\n"}
    assert feedback(tiny.NAME, folder=graded["folders"].root) == 0
    capsys.readouterr()
    pages = [path.read_text() for path in graded["folders"].root.rglob("feedback/*/*/*.html")]
    assert len(pages) == len(graded["rows"])
    for page in pages:
        assert "<script" not in page and "<b onmouseover" not in page and 'href="javascript' not in page


def first_finding(graded, student, task):
    return graded["rows"][student].verdict["tasks"][task]["checks"][0]["findings"][0]


def test_an_error_is_told_in_pythons_own_words_and_a_forbidden_function_by_its_name_with_their_lines(graded):
    found = first_finding(graded, "ends Python when asked", "attention")
    assert "SystemExit" in found["message"] and "line 2, `sys.exit()`" in found["message"]
    assert "Leave out `exit()`" in found["hint"]
    assert "E" * 41 not in json.dumps(graded["rows"]["has an odd name for its error"].verdict)
    found = first_finding(graded, "calls torch's own softmax", "softmax")
    assert found["misconception"] == "a ready-made function"
    assert "Line 2, `return torch.softmax(x, -1)`, uses `softmax`" in found["message"]
