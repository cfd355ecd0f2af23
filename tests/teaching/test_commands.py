"""`course exam` and `course syllabus`: which files they write, and the one sentence that a slip gets."""

import icalendar
import pytest

from course_lib.data.place import CannotStart
from course_lib.teaching.exams.commands import banks, lessons_meant
from course_lib.teaching.syllabus import PLANS

EXAM = "exam --lessons 8 --points 20 --seed 1 --format"
PLAN = "syllabus --start 2027-02-01 --plan"
TERM = {"syllabus.md", "syllabus.ics"}


@pytest.mark.parametrize(
    ("command", "files", "says"),
    [
        (f"{EXAM} md", {"exam_08_seed1.md", "exam_08_seed1_solutions.md"}, "20 points"),
        (f"{EXAM} tex", {"exam_08_seed1.tex", "exam_08_seed1_solutions.tex"}, "20 points"),
        (f"{EXAM} moodle", {"exam_08_seed1_moodle.xml", "exam_08_seed1_solutions.md"}, "20 points"),
        (f"{EXAM} qti", {"exam_08_seed1_qti.zip", "exam_08_seed1_solutions.md"}, "20 points"),
        *((f"{PLAN} {plan}", TERM, "2027-02-01") for plan in (*PLANS, "workshop")),
    ],
)
def test_a_command_writes_its_files(course, tmp_path, command, files, says):
    code, said, _ = course(*command.split(), "--to", str(tmp_path))
    assert code == 0 and says in said
    assert {path.name for path in tmp_path.iterdir()} == files
    for calendar in tmp_path.glob("*.ics"):
        assert icalendar.Calendar.from_ical(calendar.read_bytes()).walk("VEVENT")


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("exam", "Say which lessons"),
        ("exam --lessons eight", "names no lessons"),
        ("exam --lessons 8-3", "names no lessons"),
        ("exam --lessons 77", "no bank of questions"),
        ("exam --lessons 8 --points 900", "possible are"),
        ("exam --lessons 8 --format docx", "md, tex, moodle, qti"),
        ("syllabus --start 2027-02-30", "is no date"),
        ("syllabus --start 2027-02-01 --plan long", "project, short, workshop"),
        ("syllabus --start 2027-02-01 --plan workshop --weeks 3", "leave out --weeks"),
        ("syllabus --start 2027-02-01 --weeks 99", "9 to 18 weeks"),
    ],
)
def test_a_slip_on_the_command_line_gets_one_sentence(course, tmp_path, command, says):
    code, _, problem = course(*command.split(), "--to", str(tmp_path))
    assert code == 1 and says in problem and "Traceback" not in problem and not list(tmp_path.iterdir())


def test_lessons_are_named_one_by_one_or_as_ranges():
    assert lessons_meant("8") == ["08"] and lessons_meant("01, 03-05") == ["01", "03", "04", "05"]


def test_a_copy_without_the_banks_says_so(tmp_path):
    with pytest.raises(CannotStart, match="for instructors"):
        banks(["08"], tmp_path / "exams")
    (tmp_path / "exams").mkdir()
    with pytest.raises(CannotStart, match="Lesson 08 has no bank of questions. These have one: none yet"):
        banks(["08"], tmp_path / "exams")
