"""What README, CONTRIBUTING and the guides tell people to type works as typed: run here, or said to run elsewhere."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import NamedTuple

import pytest
import typer

from course_lib import cli
from course_lib.authoring import notebooks as authoring
from tests.grading.unreleased import answer

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
PROGRAMS = "course python3 python pip sudo chmod git conda bash torchrun nbgrader dask npm .venv/bin/ruff".split()

CLASS = (  # in this order, by one person who is instructor and student; {…} are what has to happen in between
    "course assign release 05, course assign list, course assign fetch 05, {answer}, course assign validate 05, "
    "course assign submit 05, course assign collect 05, course grade 05, course grade 05 --again, "
    "course assign feedback 05, course assign export 05, nbgrader release_feedback 05, course assign results 05, "
    "course assign verify RECEIPT.json, {zip}, course assign collect 05 --from submissions.zip, "
    "course assign export 05 --roster grades.csv, {moodle}, "
    "course assign export 05 --layout moodle --roster grades.csv"
).split(", ")
ALONE = ("course data list", "course slides 05", "course slides 05 --minutes 60", "course slides 05 --theme dark")
ALONE += ("course train", "python3 course.py grade --help", ".venv/bin/ruff check", ".venv/bin/ruff format")
ELSEWHERE = {  # what is not run here, as a pattern: why not, or where it is
    r"(python3 course\.py|course) lab( \d\d)?( .*)?": "serves until it is stopped; tests/setup, tests/browser",
    r"(python3 course\.py|course) test( .*)?": "these tests",
    r"bash \.ci/run": "this run",
    r"(python3 course\.py|course) doctor": "red where a machine lacks something; tests/commands/test_doctor.py",
    r"course assign prove( 05)?": "tests/assignments/test_whole_way.py",
    r"course assign release 05 --draw .*": "tests/grading/test_alternatives.py",
    r"course assign formgrader": "serves until it is stopped; tests/browser/test_formgrader.py",
    r"course (grade|assign release|assign fetch) (01|18)|course assign prove 18": "another assignment's name",
    r"dask .*": "tests/training/test_parallel.py",
    r"course grade 05 --(student ada|trusted-students)": "tests/grading/test_batch.py",
    r"(python3 course\.py|course) (lecture|handout)( 0[58])?": "tests/lectures",
    r"(python3 course\.py|course) slides (08|\d\d --(student|pptx|with my\.toml))": "tests/lectures",
    r"(python3 course\.py|course) data fetch .*": "the network; tests/data, tests/commands/test_data.py",
    r"(course|torchrun .*) train .+|torchrun .*my_script\.py": "long; tests/commands/test_train.py, tests/training",
    r"(python3 course\.py|course) site.*": "tests/site, tests/browser/test_site.py",
    r"python -m course_lib\.(authoring|bench)\S* .*": "long; tests/authoring, tests/bench",
    r"(python -m )?pip (install|wheel) .*": "the network; tests/setup",
    r"conda .*|git pull|git (-C autumn/student|clone|push|restart|restore|tag) .*": "the network, or another program's",
    r"course (data|grade|lecture|run|slides|assign validate)|pip install": "a name, no call",
    r"course assign export 05 --layout plain": "tests/grading/test_export.py",
    r"course assign mark(ing|s)( .*)?": "tests/grading/test_marking.py, tests/browser/test_marking.py",
    r"course assign (leaderboard 08|report.*)": "tests/grading/test_leaderboard.py, tests/teaching/test_report.py",
    r"course (exam|syllabus) --.*|course exam": "tests/teaching",
    r"course bench (--help|lessons)": "tests/test_cli.py, tests/bench",
    r"(python3 course\.py|course) class (init|update) autumn( --zip)?": "tests/teaching/test_bundle.py",
    r"course assign (collect|fetch|release) 0[56] .*autumn.*|course assign fetch 06": "tests/teaching/test_bundle.py",
    r"(sudo|chmod|npm|nbgrader db) .*": "the machine's administrator; tests/hub, tests/grading",
}


class Typed(NamedTuple):
    """A command on a page."""

    page: str
    line: str


def found_on(name, text):
    """All commands of a page: the lines of its blocks, and inline code that is one; comments behind them cut off."""
    blocks = re.findall(r"^ *```\w*\n(.*?)^ *```$", text, flags=re.DOTALL | re.MULTILINE)
    prose = re.sub(r"^ *```.*?^ *```$", "", text, flags=re.DOTALL | re.MULTILINE)
    pieces = [line.strip() for block in blocks for line in block.splitlines()] + re.findall(r"`([^`\n]+)`", prose)
    for piece in pieces:
        line = re.split(r" {3,}| +# ", re.sub(r"(?<=\S) {2}(?=\S)", " ", piece))[0].strip()
        words = line.split()
        if len(words) > 1 and words[0] in PROGRAMS and not re.search(r"\bNN\b|\bNAME\b|…|\.\.\.|[:,;]$", line):
            yield Typed(name, line)


TYPED = sorted({typed for page in PAGES for typed in found_on(page.name, page.read_text(encoding="utf-8"))})
LINES = sorted({typed.line for typed in TYPED})


def unknown(lines):
    """Those that nobody has said what to do with."""
    patterns = [re.compile(pattern) for pattern in ELSEWHERE]
    return [line for line in lines if line not in (*CLASS, *ALONE) and not any(p.fullmatch(line) for p in patterns)]


def test_each_command_is_run_here_or_said_to_be_run_elsewhere():
    assert len(LINES) > 60 and unknown(LINES) == []
    assert unknown(["course bake 05", "course grade 05 --agian"]) == ["course bake 05", "course grade 05 --agian"]


def test_nothing_is_run_or_left_out_that_nobody_is_told_to_type():
    said = {re.sub(r"^python3 course\.py ", "course ", line) for line in LINES} | set(LINES)
    assert [line for line in (*CLASS, *ALONE) if line not in said and not line.startswith("{")] == []
    assert [pattern for pattern in ELSEWHERE if not any(re.fullmatch(pattern, line) for line in LINES)] == []


def parse(line):
    """Reads a command of the course's as its own parser does, without doing it."""
    words = shlex.split(re.sub(r"^python3 course\.py |^torchrun .*?course_lib\.cli ", "course ", line))[1:]
    command = typer.main.get_command(cli.app)
    while hasattr(command, "commands") and words:
        command = command.commands[words.pop(0)]
    if words and "--help" not in words:  # the name alone is no call
        command.make_context(line, words)


@pytest.mark.parametrize(
    "line", [line for line in LINES if re.match(r"course |python3 course\.py |torchrun .*cli ", line)]
)
def test_each_command_and_option_of_the_course_exists(line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("my.toml").touch()
    parse(line)


@pytest.mark.parametrize("line", [line for line in LINES if "course_lib.authoring.notebooks" in line])
def test_the_commands_of_authors_exist(line):
    authoring.argument_parser().parse_args(shlex.split(line)[3:])


@pytest.mark.parametrize("line", ["course bake 05", "course grade 05 --agian", "course assign export 05 06"])
def test_a_command_that_there_is_not_is_found(line):
    with pytest.raises(Exception):  # noqa: B017  KeyError, or one of click's
        parse(line)


# doing it -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def terminal(tmp_path_factory):
    """type(line): types a line in a copy of the course, which it has to end well."""
    root = tmp_path_factory.mktemp("typed")
    copy, course = root / "copy", root / "course"
    for folder in ("course_lib", "notebooks"):
        shutil.copytree(ROOT / folder, copy / folder, ignore=shutil.ignore_patterns("__pycache__", "assignment_*"))
    for name in ("course.py", "pyproject.toml"):
        shutil.copy(ROOT / name, copy)
    (copy / "data").symlink_to(ROOT / "data")
    (copy / ".venv" / "bin").mkdir(parents=True)
    (copy / ".venv" / "bin" / "ruff").symlink_to(Path(sys.executable).parent / "ruff")
    for folder in ("source/05", "hidden/05"):
        shutil.copytree(ROOT / "notebooks" / "assignments" / folder, course / folder)
    settings = (ROOT / "notebooks" / "assignments" / "nbgrader_config.py").read_text()
    (course / "nbgrader_config.py").write_text(f"{settings}\nc.Exchange.root = {str(root / 'exchange')!r}\n")
    (root / "exchange").mkdir()
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(copy),
        "COURSE_HOME": str(root / "home"),
        "COURSE_EXCHANGE": str(root / "exchange"),
        "COURSE_ASSIGNMENTS": str(course),
    }

    def type_line(line, *, folder=copy):
        options = {"shell": True, "env": environment, "capture_output": True, "text": True, "timeout": 300}
        done = subprocess.run(line, cwd=folder, **options)
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
        return done.stdout

    type_line.copy, type_line.course = copy, course
    return type_line


@pytest.mark.needs("sandbox")
def test_a_class_goes_from_release_to_marks_as_the_guides_type_it(terminal):
    mine = terminal.copy / "notebooks" / "assignment_05"
    for line in CLASS:
        if line == "{answer}":
            words = {"in-your-own-words": "The decoder looks at all the states of the encoder."}
            answer(mine / "attention.ipynb", **solutions(), **words)
        elif line == "{zip}":
            (student,) = [path.name for path in (terminal.course / "submitted").iterdir()]
            with zipfile.ZipFile(terminal.course / "submissions.zip", "w") as handed:
                handed.write(mine / "attention.ipynb", f"{student}_1_attention.ipynb")
            (terminal.course / "grades.csv").write_text(f"Student,ID,SIS Login ID,Section\nMe,1,{student},A\n")
        elif line == "{moodle}":
            rows = f"First name,Last name,ID number,Email address\nMe,I,{student},\n"
            (terminal.course / "grades.csv").write_text(rows)
        elif "RECEIPT" in line:
            terminal(line.replace("RECEIPT.json", shlex.quote(str(next(mine.rglob("*eceipt*.json"))))))
        else:
            folder = terminal.course if re.search("nbgrader|submissions|grades", line) else terminal.copy
            said = terminal(line, folder=folder)
            assert "Traceback" not in said


def solutions():
    """What the instructor's own notebook answers, by the names of the cells."""
    from course_lib.grading.spec import load, read_assignment

    loaded = load(read_assignment(ROOT / "notebooks" / "assignments", "05"))
    return {cell.grade_id: cell.source for cell in loaded.cells if cell.kind == "solution"}


@pytest.mark.parametrize("line", ALONE)
def test_a_command_that_needs_no_other_runs(line, terminal):
    if line.startswith("python3 course.py "):
        line = line.replace("python3 course.py ", "course ")  # which is what it starts once .venv is there: tests/setup
    terminal(line)
