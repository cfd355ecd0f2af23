"""Results that are lists, texts or pairs are compared like tensors: by what the reference returns."""

import numpy as np
import pytest
import torch

from course_lib.tasks import Case, Mistake, Task
from course_lib.tasks.findings import CHANGES_INPUT, RANDOM, UNEXPLAINED, WRONG_TYPE, CheckFailed
from course_lib.tasks.solution import Solution
from course_lib.tasks.values import as_tensor, bring, written

TASK = Task(
    name="turned",
    title="",
    asks="words, flags",
    reference=Solution("def turned(words, flags):\n    return words[::-1], flags\n"),
    cases=(Case("turns", lambda draw: (["a", "bc", "bcd", "e" * (draw.integers(1, 9, 1).item())], draw(2, 50) > 0)),),
    mistakes=(
        Mistake("not turned", "As they came.", "", ways=((("[::-1]", ""),),)),
        Mistake("flags inverted", "The others.", "", ways=(((", flags\n", ", ~flags\n"),),)),
    ),
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
        (lambda words, flags: (np.array(words[::-1]), flags.numpy()), []),
        (lambda words, flags: (words[::-1], flags.float()), []),
        (lambda words, flags: (words[::-1], flags.tolist()), []),
        (lambda words, flags: (words[::-1], flags / 2), [WRONG_TYPE]),
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


@pytest.mark.parametrize("right", [2, np.float64(2), np.float32(2), np.array(2.0), torch.tensor(2), torch.tensor(2.0)])
@pytest.mark.parametrize("wanted", [2, 2.0, True])
def test_a_number_of_any_kind_is_accepted_where_its_value_is_right(right, wanted):
    if wanted is True:
        right = right / 2
    assert bring(right, wanted) == wanted and type(bring(right, wanted)) is type(wanted)
    with pytest.raises(CheckFailed):
        bring([right], wanted)
    if not isinstance(wanted, float):
        with pytest.raises(CheckFailed):
            bring(right + 0.5, wanted)


def test_nan_and_infinity_are_no_whole_numbers_but_in_a_part_of_a_result_no_other_kind():
    for value in (float("nan"), float("inf")):
        with pytest.raises(CheckFailed):
            bring(value, 1)
    assert bring((torch.tensor([torch.nan]),), (torch.tensor([1.0]),))[0].isnan().all()


def test_an_array_that_is_read_backwards_is_a_result_like_any_other():
    backwards = np.arange(6.0).reshape(2, 3)[:, ::-1]
    assert as_tensor(backwards).tolist() == bring(backwards, torch.zeros(2, 3)).tolist() == backwards.tolist()
    assert as_tensor(np.float64(3)).shape == as_tensor(np.array(3.0)).shape == ()
