"""The lesson runs on the learner's function where it passes its check, on ours where it does not, and says which."""

import copy
import pickle

import pytest
import torch

from course_lib.classroom import Page
from course_lib.classroom.using import Learners
from course_lib.tasks import Case, Task


def ours(x):
    return 2 * x


def my_double(x):
    if x.dim() == 3:
        raise IndexError("too deep")
    return x + x


DOUBLE = Task(
    name="double",
    title="Double it",
    asks="x",
    reference=ours,
    cases=(Case(name="doubled", inputs=lambda draw: (draw(3),)),),
    hints=("Add it to itself.",),
)


@pytest.fixture
def lesson(page):
    return Page("06", tasks={"double": DOUBLE})


def test_a_function_that_passes_is_used(lesson, page):
    used = lesson.use("double", my_double)
    assert used(torch.ones(1)) == 2 and used.__name__ == "my_double"
    assert page[-1]["text/plain"] == "✓ From here on the lesson runs on your my_double."


def test_a_function_that_does_not_pass_leaves_the_lesson_to_ours(lesson, page):
    assert lesson.use("double", lambda x: 3 * x) is ours
    assert "does not pass its check yet, so the lesson goes on with ours" in page[-1]["text/plain"]
    assert len(page) == 1  # the check itself is silent


def unwritten(x):
    return None


@pytest.mark.parametrize("stub", [unwritten, None, ...])
def test_a_function_that_is_not_written_yet_is_no_failure(lesson, page, stub):
    assert lesson.use("double", stub) is ours
    assert "is not written yet, so the lesson goes on with ours" in page[-1]["text/plain"]
    assert "✗" not in page[-1]["text/html"]


def test_an_error_inside_the_lesson_names_the_learners_function(lesson):
    used = lesson.use("double", my_double)
    with pytest.raises(
        RuntimeError, match="Your function 'my_double', on which .* stopped: IndexError: too deep"
    ) as stop:
        used(torch.zeros(1, 1, 1))
    assert isinstance(stop.value.__cause__, IndexError)


def test_a_model_that_holds_the_function_can_be_saved_and_copied(lesson):
    used = lesson.use("double", lambda x: x + x)  # which pickle itself cannot take
    assert pickle.loads(pickle.dumps(used)) is used and copy.deepcopy(used) is used
    saved = pickle.dumps(used)
    Learners.in_use.clear()
    with pytest.raises(ValueError, match="'double' of lesson 06"):
        pickle.loads(saved)
