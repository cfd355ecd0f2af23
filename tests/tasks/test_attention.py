"""The exercises of lessons 00 and 05: what answers written by learners are told.

That the mistakes of their tables are told by name is in tests/lessons/test_every_lesson.py; here stand other ways to
write, and what no table foresees.
"""

import math

import pytest
import torch
import torch.nn.functional as F

from course_lib.functional.attention import attention, readable_attention
from course_lib.functional.positions import sinusoidal_positions
from course_lib.lessons.lesson_00.tasks import TASKS as LESSON_00
from course_lib.lessons.lesson_05.tasks import TASKS
from course_lib.tasks import run_checks
from course_lib.tasks.findings import CUT_OFF, NOT_FINITE, UNEXPLAINED, WRONG_SHAPE, WRONG_TYPE

INF = math.inf
ALL = [*TASKS.values(), *LESSON_00.values()]


@pytest.mark.parametrize("task", [task for task in ALL if not task.module], ids=lambda task: task.title)
def test_the_solution_fits_a_slide(task):
    assert max(map(len, task.solution.splitlines())) <= 66 and len(task.hints) == 3 and task.minutes


def naive(x):
    return x.exp() / x.exp().sum(dim=-1, keepdim=True)


def learner(*, scale=lambda q, k: q.shape[-1] ** 0.5, turn=lambda k: k.mT, axis=-1, hide=None, after=lambda w, m: w):
    """An attention as a learner writes it; each part can be replaced by a mistake."""
    hide = hide or (lambda scores, mask: scores.masked_fill(~mask, -INF))

    def my_attention(q, k, v, mask=None):
        scores = q @ turn(k) / scale(q, k)
        weights = (scores if mask is None else hide(scores, mask)).softmax(dim=axis)
        return (weights if mask is None else after(weights, mask)) @ v

    return my_attention


def zeros(weights, mask):
    return weights.masked_fill(~mask, 0.0)


def not_yet(scores, mask):
    return scores


def positions(*, start=0, exponent=lambda column, dim: column // 2 * 2 / dim):
    """Sinusoids written as two loops; each part can be replaced by a mistake."""

    def my_positions(length, dim):
        table = torch.zeros(length, dim)
        for row in range(length):
            for column in range(dim):
                angle = (row + start) / 10_000 ** exponent(column, dim)
                table[row, column] = (math.cos if column % 2 else math.sin)(angle)
        return table

    return my_positions


def halves(length, dim):
    codes = sinusoidal_positions(length, dim)
    return torch.cat([codes[:, 0::2], codes[:, 1::2]], dim=1)


SOFTMAXES = [
    (lambda x: F.softmax(x, dim=-1), []),
    (lambda x: naive(x - x.max(-1, keepdim=True).values), []),
    (lambda x: x.flatten().softmax(0).view_as(x), ["softmax over the whole tensor"]),
    (naive, ["softmax overflows for large inputs"]),
    (lambda x: naive(x.clamp(max=80)), ["large inputs lose their differences"]),
    (lambda x: naive(x).nan_to_num(), ["large inputs lose their differences"]),
    (lambda x: naive(x - x[..., -1:]), ["another number than the maximum subtracted"]),
    (lambda x: x.log_softmax(-1), [UNEXPLAINED]),
    (lambda x: x.softmax(-1).sum(-1), [WRONG_SHAPE]),
    (lambda x: (x.softmax(-1), x), [WRONG_TYPE]),
    (lambda x: x.softmax(-1).detach(), [CUT_OFF]),
]
LESSON_00_SAYS = {  # of the same functions, in the words of logits
    "softmax overflows for large inputs": "softmax overflows for large logits",
    "large inputs lose their differences": "large logits lose their differences",
}
ATTENTIONS = [
    (learner(after=zeros), []),
    (lambda q, k, v, mask=None: attention(q, k, v, mask=mask), []),
    (lambda q, k, v, mask=None: readable_attention(q, k, v, mask=mask), [WRONG_TYPE]),
    (learner(hide=lambda s, m: s + torch.where(m, 0.0, -INF), after=lambda w, m: w.nan_to_num(0.0)), []),
    (learner(hide=lambda s, m: s.masked_fill(m, -1e9)), ["mask inverted"]),
    (learner(hide=not_yet, after=lambda w, m: w * ~m), ["mask inverted"]),
    (learner(hide=lambda s, m: s * m), ["hidden scores set to zero"]),
    (learner(hide=lambda s, m: s + torch.where(m, 0.0, -100.0)), ["a query that sees nothing still reads something"]),
    (learner(hide=not_yet, after=lambda w, m: w.masked_fill(~m, -INF)), [NOT_FINITE]),
    (lambda q, k, v, mask=None: v, [WRONG_SHAPE]),
    (lambda q, k, v, mask=None: 2 * attention(q, k, v, mask=mask), [UNEXPLAINED]),
    (learner(axis=-2, scale=lambda q, k: 1), ["missing scale", "softmax over the wrong axis"]),
    (learner(turn=lambda k: k, scale=lambda q, k: 1), ["keys not transposed", "missing scale"]),
]
POSITIONS = [
    (sinusoidal_positions, []),
    (positions(), []),
    (halves, ["sines and cosines in halves"]),
    (positions(exponent=lambda column, dim: column / dim), ["cosine with a frequency of its own"]),
    (lambda n, d: halves(n + 1, d)[1:], ["positions counted from 1", "sines and cosines in halves"]),
    (lambda n, d: sinusoidal_positions(n, d).T, [WRONG_SHAPE]),
]
ANSWERS = [
    *((TASKS["softmax"], answer, wanted) for answer, wanted in SOFTMAXES),
    *((LESSON_00["softmax"], one, [LESSON_00_SAYS.get(name, name) for name in wanted]) for one, wanted in SOFTMAXES),
    *((TASKS["attention"], answer, wanted) for answer, wanted in ATTENTIONS),
    *((TASKS["positions"], answer, wanted) for answer, wanted in POSITIONS),
]


@pytest.mark.parametrize(("task", "answer", "wanted"), ANSWERS)
def test_an_answer_is_told_what_is_wrong_with_it_and_nothing_else(task, answer, wanted):
    assert sorted(run_checks(answer, task.all_checks, asks=task.asks).misconceptions) == wanted


def test_large_numbers_stay_a_surprise_until_the_last_hint():
    task = TASKS["softmax"]
    before = " ".join((task.text, *task.hints[:2])).lower()
    assert not any(word in before for word in ("1000", "large", "overflow", "infin", "maximum"))
    assert "1000" in task.hints[2]


@pytest.mark.parametrize(
    "nonsense", [lambda *a, **k: 1 / 0, lambda *a, **k: torch.nan, lambda *a, **k: torch.full((2, 3), INF)]
)
@pytest.mark.parametrize("task", ALL, ids=lambda task: task.title)
def test_nonsense_is_never_passed_and_never_raises(task, nonsense):
    assert not task.run(nonsense).passed
