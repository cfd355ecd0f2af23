"""Check cells answer in sentences and stop the notebook; their numbers are those that the tasks work out by hand."""

import linecache
from types import SimpleNamespace

import pytest
import torch

from course_lib.classroom.assignments import NotPassed, check
from course_lib.functional import attention as functional
from course_lib.functional.local_attention import local_attention as neighbours_alone
from course_lib.functional.metrics import alignment_error_rate
from course_lib.lessons.lesson_05.assignment import ASSIGNMENT, GroupedQueryAttention
from course_lib.tasks import Task, run_checks
from course_lib.tasks.table import TRAINING_SECONDS


def predictive_attention(q, k, v, W, w, radius):
    _, weights = functional.readable_attention(q, k, v)
    predicted = k.shape[-2] * torch.sigmoid(torch.tanh(q @ W.T) @ w)
    distance = torch.arange(k.shape[-2]) - predicted[..., None]
    return (weights * torch.exp(-2 * (distance / radius) ** 2)) @ v


def local_attention(q, k, v, window):
    return neighbours_alone(q, k, v, window=window)


RIGHT = {
    "predictive_attention": predictive_attention,
    "local_attention": local_attention,
    "alignment_error_rate": alignment_error_rate,
    "GroupedQueryAttention": GroupedQueryAttention,
}


@pytest.mark.parametrize("task", RIGHT)
def test_the_librarys_own_answer_passes_the_example(task, page):
    check(ASSIGNMENT[task], RIGHT[task])
    assert page[-1]["text/plain"].startswith(f"✓ All right: {task} passes its")
    assert "<code>" in page[-1]["text/html"] and "`" not in page[-1]["text/plain"]


@pytest.mark.parametrize(
    ("task", "near"),
    [
        ("predictive_attention", lambda *given: predictive_attention(*given) + 0.01),
        ("local_attention", lambda *given: local_attention(*given) + 0.001),
        ("alignment_error_rate", lambda *given: alignment_error_rate(*given) + 0.001),
    ],
)
def test_the_example_notices_a_small_difference_and_shows_both_results(task, near):
    (finding,) = run_checks(near, ASSIGNMENT[task].by_hand).findings
    assert "your result is (" in finding.message and "by hand it is (" in finding.message


def test_a_wrong_answer_is_told_what_is_wrong_and_stops_the_notebook(page):
    with pytest.raises(NotPassed, match="local_attention: another result than by hand") as stopped:
        check(ASSIGNMENT["local_attention"], lambda q, k, v, window: local_attention(q, k, v, window + 1))
    assert "compare with the steps of the example" in page[-1]["text/plain"]
    assert stopped.value._render_traceback_() == [str(stopped.value)]


def test_answers_that_lose_their_gradient_or_their_type_are_told_so_at_once(page):
    for change, told in ((lambda y: y.detach(), "cut off from its inputs"), (lambda y: y.float(), "another type")):
        with pytest.raises(NotPassed, match=told):
            check(ASSIGNMENT["local_attention"], lambda *given, change=change: change(local_attention(*given)))


def trained(steps_that_take):
    """A `train` whose rule is learned by counting; `steps_that_take` turns the clock forward."""

    class LookUp(torch.nn.Module):
        def __init__(self, code):
            super().__init__()
            self.code = torch.nn.Parameter(torch.nn.functional.one_hot(code, 8).float())

        def forward(self, inputs):
            fits = self.code[inputs[:, :1, 0], inputs[:, 1:, 0]]
            return (torch.nn.functional.one_hot(inputs[:, 1:, 1], 8) * fits[:, :, None]).sum(dim=1)

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
    monkeypatch.setattr("course_lib.classroom.assignments.time", SimpleNamespace(thread_time=lambda: now[0]))
    check(ASSIGNMENT["train"], trained(lambda: now.append(now.pop() + TRAINING_SECONDS - 0.1)))
    assert page[-1]["text/plain"].startswith("✓ All right: train")
    with pytest.raises(NotPassed, match="train: too slow"):
        check(ASSIGNMENT["train"], trained(lambda: now.append(now.pop() + TRAINING_SECONDS + 12.2)))
    assert "Your answer is right, but it took 312 s; the grader stops after 300." in page[-1]["text/plain"]


class Unwritten(torch.nn.Module):
    def __init__(self, dim, num_heads, num_kv_heads):
        super().__init__()
        raise NotImplementedError()


def unwritten(*given, mask=None):
    raise NotImplementedError()


@pytest.mark.parametrize("task", ASSIGNMENT)
def test_an_answer_as_it_was_handed_out_is_not_written_yet(task, page):
    with pytest.raises(NotPassed, match="not written yet"):
        check(ASSIGNMENT[task], Unwritten if task == "GroupedQueryAttention" else unwritten)
    assert page[-1]["text/plain"].startswith("○ Not written yet")


def test_half_an_answer_is_not_taken_for_none(page):
    class WithoutForward(torch.nn.Module):
        def __init__(self, dim, num_heads, num_kv_heads):
            super().__init__()
            shared = dim // num_heads * num_kv_heads
            self.q_proj, self.k_proj = torch.nn.Linear(dim, dim), torch.nn.Linear(dim, shared)
            self.v_proj, self.o_proj = torch.nn.Linear(dim, shared), torch.nn.Linear(dim, dim)

    with pytest.raises(NotPassed, match="GroupedQueryAttention: stopped with an error"):
        check(ASSIGNMENT["GroupedQueryAttention"], WithoutForward)
    assert 'missing the required "forward" function' in page[-1]["text/plain"]


@pytest.mark.parametrize("nothing", [None, 3, "local_attention"])
def test_what_is_no_function_does_not_pass(nothing, page):
    with pytest.raises(NotPassed):
        check(ASSIGNMENT["local_attention"], nothing)


def test_a_forbidden_function_anywhere_in_the_cell_is_told_by_its_line(page):
    cell = "def helper(x):\n    return x.softmax(-1)\n\ndef rows(x):\n    return helper(x)\n"
    linecache.cache["<cell>"] = len(cell), None, cell.splitlines(True), "<cell>"
    names = {"__name__": "__main__"}
    exec(compile(cell, "<cell>", "exec"), names)
    example = (([[0.0, 0.0]],), [[0.5, 0.5]])
    task = Task("rows", "Rows", asks="x", example=(example,), forbids=("softmax",))
    with pytest.raises(NotPassed, match="rows: a ready-made function"):
        check(task, names["rows"])
    assert "Line 2, return x.softmax(-1), uses softmax." in page[-1]["text/plain"]
