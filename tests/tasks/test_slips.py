"""Slips that have nothing to do with the task are named, with the learner's own line."""

import linecache
import textwrap

import pytest
import torch
import torch.nn.functional as F

from course_lib.functional.attention import attention
from course_lib.tasks import Case, Task
from course_lib.tasks.findings import FORBIDDEN, STOPPED, UNWRITTEN, WRONG_SHAPE
from course_lib.tasks.slips import is_stub

ASKS = "q, k, v, mask=None"


def add(q, k, v, mask=None):
    return q + k


def qkv(draw):
    return draw(2, 4, 6), draw(2, 4, 6), draw(2, 5, 3), draw.mask(4, 5)


TASK = Task(name="add", title="Add", asks=ASKS, reference=add, cases=(Case("sums", qkv),), forbids=("add", "softmax"))


def written(body):
    """A learner's function with this body, as a cell of a notebook has it."""
    source = f"def mine({ASKS}):\n{textwrap.indent(body, '    ')}"
    file, names = f"<cell {hash(body)}>", {"torch": torch, "attention": attention}
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    exec(compile(source, file, "exec"), names)
    return names["mine"]


LIBRARY = "return attention(q, k, k, mask=mask.float())"


@pytest.mark.parametrize(
    ("body", "name", "line", "hint"),
    [
        ("if mask:\n    q = -q\nreturn q", "truth value of a tensor", "line 2, `if mask:`", "`if mask is not None:`"),
        ("most = q.max(-1)\nreturn q - most", ".max gives two things", " in line 3, `return q - most`", "`.values`"),
        (lambda q, k, v: q + k, "missing parameter", "stopped: TypeError", f"`({ASKS})`"),
        ("return q + keys", "a name that is not there", " in line 2, `return q + keys", "that cell"),
        (
            "return q @ k.mT.double()",
            "numbers of different types meet",
            "line 2, `return q @ k.mT.double()`",
            "x.dtype",
        ),
        ("return q @ k.T", ".T turns all axes round", " in line 2, `return q @ k.T`", "transpose(-2, -1)"),
        ("return k.T", ".T turns all axes round", "(2, 4, 6) is needed", "transpose(-2, -1)"),
        ("return q @ k", STOPPED, "With q (2, 4, 6), k (2, 4, 6), v (2, 5, 3), mask (4, 5) your function", ""),
        ("k = k.mT\nreturn q @ k.mT", STOPPED, " in line 3, `return q @ k.mT`: RuntimeError", ""),
        ("return torch.nn.Linear(3, 3)(q)", STOPPED, " in line 2, `return torch.nn.Linear(3, 3)(q)`", ""),
        (LIBRARY, STOPPED, f" in line 2, `{LIBRARY}`: ValueError: mask must be", ""),
    ],
)
def test_a_slip_is_named_with_the_learners_own_line_and_with_its_own_hint(body, name, line, hint, recwarn):
    function = written(body) if isinstance(body, str) else body
    for _ in range(2):  # torch warns of `.T` only once by itself
        (finding,) = TASK.run(function).findings
        assert finding.misconception == name and line in finding.message and hint in finding.hint
    assert not recwarn.list


def test_another_function_that_is_called_wrongly_is_not_taken_for_the_learners_own():
    def helper(q):
        return q

    (finding,) = TASK.run(lambda q, k, v, mask=None: helper(q, k)).findings
    assert finding.misconception == STOPPED and "positional argument" in finding.message


def test_numbers_are_told_by_name_too():
    task = Task(
        name="split_heads",
        title="",
        asks="x, num_heads",
        reference=lambda x, num_heads: x.unflatten(-1, (num_heads, -1)).transpose(1, 2),
        cases=(Case("heads", lambda draw: (draw(2, 3, 8), 4)),),
    )
    (finding,) = task.run(lambda x, num_heads: x).findings
    assert finding.misconception == WRONG_SHAPE and "With x (2, 3, 8), num_heads = 4 the result" in finding.message


def softmax(x):
    return x


def own_softmax(q, k, v, mask=None):
    return softmax(q) + k


@pytest.mark.parametrize(
    "function",
    [
        lambda q, k, v, mask=None: (q + k).softmax(-1),
        lambda q, k, v, mask=None: F.softmax(q + k, dim=-1),
        lambda q, k, v, mask=None: torch.add(q, k),
    ],
)
def test_what_a_task_forbids_is_seen_in_the_source(function):
    (finding,) = TASK.run(function).findings
    assert finding.misconception == FORBIDDEN and "softmax" in finding.message or "add" in finding.message


def test_a_function_of_the_learners_own_is_not_forbidden():
    assert TASK.run(own_softmax).passed


def test_a_function_without_a_source_is_checked_all_the_same():
    names = {}
    exec("def mine(q, k, v, mask=None):\n    return q.softmax(-1)", names)
    assert not TASK.run(names["mine"]).passed


def dots(x): ...


def words(x):
    """To be written."""


def passes(x):
    pass


def raises(q, k, v, mask=None):
    raise NotImplementedError("your code here")


@pytest.mark.parametrize("function", [None, ..., dots, words, passes, raises])
def test_what_is_not_written_yet_is_no_mistake(function):
    assert TASK.run(function).misconceptions == [UNWRITTEN] and not TASK.run(function).written


def test_a_forgotten_return_is_a_mistake():
    def forgot(q, k, v, mask=None):
        q + k

    assert not is_stub(forgot) and "returned nothing" in TASK.run(forgot).findings[0].message


def test_a_module_without_forward_is_not_taken_for_unwritten():
    report = TASK.run(torch.nn.Module())
    assert report.written and "forward" in report.findings[0].message
