"""All banks of exam questions: each question is drawn with 50 seeds."""

import subprocess
import sys
from pathlib import Path

import pytest

from course_lib.teaching.exams.bank import KINDS, read_bank

ROOT = Path(__file__).parents[2]
BANKS = sorted((ROOT / "exams").glob("[0-9][0-9].md"))

each_bank = pytest.mark.parametrize("path", BANKS, ids=lambda path: path.stem)


@pytest.fixture(scope="module")
def checked():
    """What `course exam --check` says of all banks; in a process of its own, where no call is checked for its types."""
    command = [sys.executable, "-m", "course_lib.cli", "exam", "--check"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300).stdout.splitlines()


def test_every_lesson_has_a_bank():
    assert [path.stem for path in BANKS] == [f"{number:02}" for number in range(18)]


@each_bank
def test_a_bank_has_no_slip(path, checked):
    said = [line for line in checked if line.startswith(path.name)]
    assert said == [f"{path.name}: {len(read_bank(path))} questions, all well"]


def test_the_model_bank_has_every_kind():
    assert {question.kind for question in read_bank(ROOT / "exams" / "08.md")} == set(KINDS)
