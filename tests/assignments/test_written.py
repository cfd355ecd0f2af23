"""The written and the open work of every assignment: what it weighs, how it is marked, which scores there are."""

import math

import pytest
import torch
from torch import nn

from course_lib.grading.leaderboard import open_task
from course_lib.grading.written import written_questions
from course_lib.tasks.core import Probe
from tests.assignments.test_every_assignment import FOLDERS, NUMBERS, every_assignment, read

WITH_SCORES = ("08", "09", "14")


def questions(number):
    return written_questions(read(number).files, FOLDERS.hidden(number)).values()


@every_assignment
def test_each_aspect_of_a_model_answer_has_partial_answers(number):
    assert questions(number)
    for question in questions(number):
        assert question.text.startswith("## ")
        for aspect in question.aspects:
            assert 1 <= len(aspect.typical) <= 6, (question.grade_id, aspect.title)
            assert all(points < aspect.points for points, _ in aspect.typical)


@every_assignment
def test_partial_answers_are_whole_sentences_of_32_words_at_most(number):
    for comment in (
        text for question in questions(number) for aspect in question.aspects for _, text in aspect.typical
    ):
        assert comment[0].isupper() or comment[0] in '"`εI', comment
        assert comment.endswith((".", "?")), comment
        sentences = comment.replace("?", ".").replace(":", ".").split(". ")
        assert max(len(sentence.split()) for sentence in sentences) <= 32, comment


def test_written_questions_weigh_a_quarter_in_at_least_half_of_the_assignments():
    weights = {number: sum(question.points for question in questions(number)) for number in NUMBERS}
    assert 2 * sum(points >= 25 for points in weights.values()) >= len(weights), weights


@every_assignment
def test_three_assignments_have_an_open_task_with_a_score(number):
    assert (open_task(read(number).loaded) is not None) == (number in WITH_SCORES)


class Pairs(nn.Embedding):
    """Logits of the next symbol from the last one alone."""

    def __init__(self):
        super().__init__(9, 9)
        nn.init.zeros_(self.weight)


def study(budget, N, D, L, larger_N, larger_D):
    return torch.full_like(larger_N, 4.0) if len(L) else torch.tensor([[1e5, 1e8 / 6]])


def segment(images, labels):
    return nn.Conv2d(1, 3, 1)


@pytest.mark.parametrize(
    ("number", "answer", "low", "high"),
    [
        ("08", lambda text: Pairs(), 2.7, math.log2(9)),  # uniform: log2(9) bits, less what is in the text
        ("09", study, 1, 1000),  # percent
        ("14", segment, 0, 0.6),
    ],
)
def test_the_checks_of_an_open_task_measure_its_score(number, answer, low, high):
    task = open_task(read(number).loaded)
    measured = []
    for check in task.scored:
        probe = Probe(answer, asks=task.asks)
        assert list(check.run(probe))  # not good enough for points
        measured += [probe.measured] if probe.measured is not None else []
    assert measured and all(low < score < high for score in measured), measured
