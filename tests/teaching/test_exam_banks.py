"""All banks of exam questions: each question is drawn with 50 seeds."""

from pathlib import Path

import pytest

from course_lib.teaching.exams import check
from course_lib.teaching.exams.bank import KINDS, read_bank
from course_lib.teaching.exams.commands import page_questions

BANKS = sorted((Path(__file__).parents[2] / "exams").glob("[0-9][0-9].md"))
MISSING = set("00 01 02 03 04 05 06 07 09 10 11 12 13 14 15 16 17".split())  # lessons without a bank yet: this shrinks


def test_every_lesson_has_a_bank_or_is_on_the_list_of_those_to_be_written():
    lessons = {f"{number:02}" for number in range(18)}
    assert {path.stem for path in BANKS} == lessons - MISSING


@pytest.mark.parametrize("path", BANKS, ids=lambda path: path.stem)
def test_a_bank_has_no_slip(path):
    assert check.slips_of(path, taken=page_questions(path.stem)) == []


@pytest.mark.parametrize("path", BANKS, ids=lambda path: path.stem)
def test_a_right_option_is_not_given_away_by_its_length(path):
    asked = [question for question in read_bank(path) if question.options]
    longest = [max(question.options, key=lambda option: len(option.text)).right for question in asked]
    assert sum(longest) <= max(2, 0.7 * len(longest))


def test_the_model_bank_has_every_kind():
    assert {question.kind for question in read_bank(BANKS[0].parent / "08.md")} == set(KINDS)
