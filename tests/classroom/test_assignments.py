"""Check cells answer in sentences and stop the notebook; their numbers are those that the tasks work out by hand."""

from types import SimpleNamespace

import pytest
import torch

from course_lib.classroom.assignments import NotPassed, check_task, visible_checks
from course_lib.functional.attention import additive_scores, masked_softmax, readable_attention
from course_lib.functional.positions import sinusoidal_positions
from course_lib.layers.transformer import MultiHeadAttention
from course_lib.tasks import run_checks
from course_lib.tasks.core import NOT_AS_BY_HAND


def attention(q, k, v, mask=None):
    return readable_attention(q, k, v, mask=mask)[0]


def additive_attention(q, h, W, U, v, mask=None):
    return masked_softmax(additive_scores(q, h, W, U, v), mask) @ h


RIGHT = {
    "softmax": lambda x: x.softmax(dim=-1),
    "attention": attention,
    "additive_attention": additive_attention,
    "MultiHeadAttention": MultiHeadAttention,
    "position_codes": sinusoidal_positions,
}


@pytest.mark.parametrize("task", RIGHT)
def test_a_right_answer_passes(task, page):
    check_task("05", task, RIGHT[task])
    assert page[-1]["text/plain"].startswith(f"✓ All right: {task} passes its")
    assert "<code>" in page[-1]["text/html"] and "`" not in page[-1]["text/plain"]


@pytest.mark.parametrize("task", RIGHT)
def test_the_example_of_a_task_is_what_one_gets_by_hand(task):
    (example,) = (check for check in visible_checks("05")[task] if NOT_AS_BY_HAND in check.detects)
    assert run_checks(RIGHT[task], [example]).passed


@pytest.mark.parametrize(
    ("task", "near"),
    [
        ("softmax", lambda x: x.softmax(dim=-1) + 0.001),
        ("attention", lambda *qkv, mask=None: attention(*qkv, mask) + 0.001),
        ("additive_attention", lambda *given, mask=None: additive_attention(*given, mask) + 0.01),
        ("position_codes", lambda length, dim: sinusoidal_positions(length, dim) + 0.001),
    ],
)
def test_the_example_notices_a_small_difference_and_shows_both_results(task, near):
    (example,) = (check for check in visible_checks("05")[task] if NOT_AS_BY_HAND in check.detects)
    (finding,) = run_checks(near, [example]).findings
    assert "your result is (" in finding.message and "by hand it is (" in finding.message


def test_a_wrong_answer_is_told_what_is_wrong_and_stops_the_notebook(page):
    with pytest.raises(NotPassed, match="softmax: softmax over the wrong axis") as stopped:
        check_task("05", "softmax", lambda x: x.softmax(dim=0))
    assert "Use dim=-1" in page[-1]["text/plain"]
    assert stopped.value._render_traceback_() == [str(stopped.value)]


def trained(steps_that_take):
    """A `train` whose rule is learned by counting; `steps_that_take` turns the clock forward."""

    class LookUp(torch.nn.Module):
        def __init__(self, code):
            super().__init__()
            self.code = code

        def forward(self, inputs):
            fits = inputs[:, 1:, 0] == self.code[inputs[:, :1, 0]]
            return (torch.nn.functional.one_hot(inputs[:, 1:, 1], 8) * fits[:, :, None]).sum(dim=1).float()

    def train(inputs, targets):
        steps_that_take()
        agree = torch.zeros(8, 8)
        for example, target in zip(inputs, targets, strict=True):
            keys = example[1:, 0][example[1:, 1] == target]
            agree[example[0, 0], keys] += 1 / len(keys)
        return LookUp(agree.argmax(dim=1))

    return train


def test_a_training_that_the_grader_would_stop_does_not_pass(page, monkeypatch):
    now = [0.0]
    monkeypatch.setattr("course_lib.classroom.assignments.time", SimpleNamespace(perf_counter=lambda: now[0]))
    check_task("05", "train", trained(lambda: now.append(now.pop() + 4.9)))
    assert page[-1]["text/plain"].startswith("✓ All right: train")
    with pytest.raises(NotPassed, match="train: too slow"):
        check_task("05", "train", trained(lambda: now.append(now.pop() + 7.2)))
    assert "Your answer is right, but it took 7 s; the grader stops after 5." in page[-1]["text/plain"]


class Unwritten(torch.nn.Module):
    def __init__(self, dim, num_heads):
        super().__init__()
        raise NotImplementedError()


def unwritten(*given, mask=None):
    raise NotImplementedError()


@pytest.mark.parametrize("task", visible_checks("05"))
def test_an_answer_as_it_was_handed_out_is_not_written_yet(task, page):
    with pytest.raises(NotPassed, match="not written yet"):
        check_task("05", task, Unwritten if task == "MultiHeadAttention" else unwritten)
    assert page[-1]["text/plain"].startswith("○ Not written yet")


def test_half_an_answer_is_not_taken_for_none(page):
    class WithoutForward(torch.nn.Module):
        def __init__(self, dim, num_heads):
            super().__init__()
            self.q_proj, self.k_proj = torch.nn.Linear(dim, dim), torch.nn.Linear(dim, dim)
            self.v_proj, self.o_proj = torch.nn.Linear(dim, dim), torch.nn.Linear(dim, dim)

    with pytest.raises(NotPassed, match="MultiHeadAttention: stopped with an error"):
        check_task("05", "MultiHeadAttention", WithoutForward)
    assert 'missing the required "forward" function' in page[-1]["text/plain"]


@pytest.mark.parametrize("nothing", [None, 3, "softmax"])
def test_what_is_no_function_does_not_pass(nothing, page):
    with pytest.raises(NotPassed):
        check_task("05", "softmax", nothing)


def test_an_unknown_task_or_assignment_says_which_there_are(page):
    with pytest.raises(ValueError, match="no task 'sofmax'; it has softmax, attention"):
        check_task("05", "sofmax", None)
    for name in ("99", "../05", ""):
        with pytest.raises(ValueError, match="no checks for an assignment"):
            check_task(name, "softmax", None)
