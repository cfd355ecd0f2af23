"""The pages for instructors: files and examples that they name exist and work; commands: test_documented_commands."""

import re
import sys
from datetime import datetime
from pathlib import Path

import pytest
from traitlets.config import Config

from course_lib.grading.folders import Folders
from course_lib.grading.gradebook import Gradebook, scores
from course_lib.grading.prove import prove
from tests.grading import courses

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "docs" / name for name in ("grading.md", "security.md")]
MADE = ("release", "submitted", "autograded", "feedback", "exports", "gradebook.db", "instructor.key")
EXAMPLES = ("source/18/", "hidden/18/", "late.py", "submissions.zip", "grades.csv", "RECEIPT.json")


def pieces(page):
    """All code of a page: inline, and the lines of its blocks."""
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r"^ *```\n(.*?)^ *```$", text, flags=re.DOTALL | re.MULTILINE)
    prose = re.sub(r"^ *```.*?^ *```$", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.findall(r"`([^`]+)`", prose) + [line.strip() for block in blocks for line in block.splitlines()]


def example(language, holds):
    """The one block of grading.md with this text in it."""
    text = PAGES[0].read_text(encoding="utf-8")
    blocks = re.findall(rf"^( *)```{language}\n(.*?)^ *```$", text, flags=re.DOTALL | re.MULTILINE)
    (block,) = [re.sub(f"^{indent}", "", code, flags=re.MULTILINE) for indent, code in blocks if holds in code]
    return block


FILE = re.compile(r"(?!/)[\w./-]+(?:/|\.(?:py|ipynb|md|db|key|csv|html|css))")


def files():
    return {(page.name, piece) for page in PAGES for piece in pieces(page) if FILE.fullmatch(piece)}


@pytest.mark.parametrize(("page", "name"), sorted(files()))
def test_each_file_exists_or_is_made_at_work(page, name):
    if name.startswith(EXAMPLES):
        return
    top = name.split("/")[0]
    if top in MADE:
        at_work = Folders(root=Path("."))
        places = [at_work.release("05"), at_work.feedback("STUDENT", "05"), at_work.exports, at_work.gradebook]
        places += [at_work.key, at_work.root / "submitted", at_work.root / "autograded"]
        named = Path(name)
        assert any(named == place or place in named.parents or named in place.parents for place in places)
    else:
        assert (ROOT / name).exists() or (ROOT / "notebooks" / "assignments" / name).exists()


def test_links_between_the_pages_lead_somewhere():
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        titles = [re.sub(r"[^\w -]", "", title) for title in re.findall("^#+ (.+)$", text, re.M)]
        anchors = {title.lower().replace(" ", "-") for title in titles}
        for target in re.findall(r"\]\(([^)]+)\)", text):
            assert target[1:] in anchors if target.startswith("#") else (page.parent / target).exists()


# the examples ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def own_assignment(tmp_path_factory):
    """A course directory with the assignment that grading.md shows."""
    root = tmp_path_factory.mktemp("own")
    answer = "def rms_norm(x):\n    ### BEGIN SOLUTION\n    return x / x.pow(2).mean(-1, keepdim=True).sqrt()\n"
    cells = [
        courses.setup("setup", "import torch"),
        courses.solution("rms_norm", answer + "    ### END SOLUTION"),
        courses.check("check-rms_norm", "rms_norm(torch.ones(2, 3))", 5),
    ]
    files = {"source/18/norms.ipynb": courses.notebook(cells), "hidden/18/tasks.py": example("python", "ASSIGNMENT = ")}
    return courses.write_files(root, files | {"hidden/18/tasks.md": example("markdown", "## Mistakes")})


@pytest.mark.needs("sandbox")
def test_the_example_of_a_table_is_proved(own_assignment, capsys):
    assert prove("18", folder=own_assignment.root, workers=1) == 0, capsys.readouterr().out
    assert "10 judgements, 8 answers that are wrong or in another style" in capsys.readouterr().out


def test_the_example_of_lateness_takes_a_point_for_each_hour_begun(folders):
    """Its plugin lies in the course directory, which is no place for other imports."""
    (folders.root / "late.py").write_text(example("python", "OnePointAnHour"))
    (line,) = [piece for piece in pieces(PAGES[0]) if piece.startswith("c.AssignLatePenalties")]
    config, before = Config(), list(sys.path)
    exec(line, {"c": config})
    with Gradebook(folders.gradebook, assignment=courses.NAME, notebook=courses.NOTEBOOK, config=config) as book:
        book.record(courses.verdict("ada"), {}, submitted=datetime(2026, 3, 1, 13, 30))
        book.record(courses.verdict("bob"), {}, submitted=datetime(2026, 3, 4))
    assert [row.penalty for row in scores(folders.gradebook, courses.NAME)] == [2.0, 5.0] and sys.path == before
