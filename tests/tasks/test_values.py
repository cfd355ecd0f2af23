"""Results that are lists, texts or pairs are compared like tensors: by what the reference returns."""

import pytest
import torch

from course_lib.tasks import Case, Task, mistakes
from course_lib.tasks.findings import CHANGES_INPUT, RANDOM, UNEXPLAINED, WRONG_TYPE
from course_lib.tasks.values import written


def turned(words, flags, *, order=-1, kept=True):
    """The words from the last to the first, and which of the flags are set."""
    return words[::order], flags if kept else ~flags


TASK = Task(
    name="turned",
    title="",
    asks="words, flags",
    reference=turned,
    cases=(Case("turns", lambda draw: (["a", "bc", "bcd", "e" * (draw.integers(1, 9, 1).item())], draw(2, 50) > 0)),),
    mistakes=mistakes("""
not turned: order=1
    As they came.
flags inverted: kept=False
    The others.
"""),
)


@pytest.mark.parametrize(
    ("function", "wanted"),
    [
        (lambda words, flags: (words[::-1], flags), []),
        (lambda words, flags: [tuple(words[::-1]), flags], []),
        (lambda words, flags: (words, flags), ["not turned"]),
        (lambda words, flags: (words, ~flags), ["not turned", "flags inverted"]),
        (lambda words, flags: (words[:0:-1], flags), [UNEXPLAINED]),
        (lambda words, flags: (words[::-1], flags[0]), [UNEXPLAINED]),
        (lambda words, flags: (words[::-1], torch.rand(flags.shape) > 0.5), [RANDOM]),
        (lambda words, flags: (words.pop() and words, flags), [CHANGES_INPUT]),
        (lambda words, flags: words[::-1], [WRONG_TYPE]),
        (lambda words, flags: (words[::-1], flags.float()), [WRONG_TYPE]),
        (lambda words, flags: ([1, 2], flags), [WRONG_TYPE]),
    ],
)
def test_what_is_wrong_is_told(function, wanted):
    assert TASK.run(function).misconceptions == wanted


def test_what_was_returned_and_what_is_needed_is_said():
    (finding,) = TASK.run(lambda words, flags: (" ".join(words), flags.float())).findings
    assert "a pair: text, a tensor of numbers, but a pair: a list, a tensor of truth values" in finding.message


def test_of_a_long_result_the_first_part_that_differs_is_shown():
    def wrong(words, flags):
        other = flags.clone()
        other[1, 3] = ~other[1, 3]
        return words[::-1], other

    (finding,) = TASK.run(wrong).findings
    assert " at `[1][1][3]`; right is " in finding.message
    (finding,) = TASK.run(lambda words, flags: (words[1:], flags)).findings
    assert "['bc', 'bcd', 'eeeee'] at `[0]`; right is ['eeeee', 'bcd', 'bc', 'a']" in finding.message


def test_whole_numbers_are_written_whole_and_others_in_four_digits():
    assert [written(n) for n in (11860.0, -3.0, 0.12345, 1.5e12, float("nan"))] == [
        "11860", "-3", "0.1235", "1.5e+12", "nan",
    ]  # fmt: skip
