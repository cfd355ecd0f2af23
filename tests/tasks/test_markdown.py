"""Tasks in Markdown: what is read, and what an author is told of a slip, with file and line."""

import copy
import pickle
import re

import pytest
import torch

from course_lib.tasks import Case, gradients, run_checks
from course_lib.tasks.markdown import read_tasks
from course_lib.tasks.wrong import made_by, undetected

TEXT = """# scaled: A scale
asks: x, factor=2.0 · minutes: 5 · also: gradients · forbids: mul, scale · seconds: 3 · stretch: yes

Multiply `x`.

Return it.

## Hints
- One.
- Two, with `code`.

## Solution
```python
# a comment, no heading
def my_scaled(x, factor=2.0):
    y = x * factor
    return y
```

## Mistakes
### added
- `x * factor` → `x + factor`
The factor is added.
> Multiply.
### two at once
- `x * factor` → `x / factor`, `return y` → `return -y`
- `y = …` → `y = x⏎    return 0 * y`
- costs: a number
Divided.
### something else
- any other result of: a row
Not that.
> Try again.
"""
CASES = {"scaled": (Case("a number", lambda draw: (draw(1), 3.0)), Case("a row", lambda draw: (draw(4), 3.0)))}
LAYER = """# Scale: A layer
asks: x

Scale.

## Solution
```python
class MyScale(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return x * self.weight
```

## Mistakes
### shifted
- `x * self.weight` → `x + self.weight`
Shifts.
"""


@pytest.fixture
def read(tmp_path):
    def read(text=TEXT, cases=CASES, **more):
        path = tmp_path / "tasks.md"
        path.write_text(text, encoding="utf-8")
        return read_tasks(path, cases, **more)

    return read


def test_a_task_is_all_that_its_text_says(read):
    (task,) = read().values()
    assert (task.name, task.title, task.asks, task.minutes) == ("scaled", "A scale", "x, factor=2.0", 5)
    assert (task.also, task.forbids, task.seconds, task.stretch) == ([gradients], ["mul", "scale"], 3.0, True)
    assert task.text == "Multiply `x`.\n\nReturn it." and task.hints == ("One.", "Two, with `code`.")
    assert task.solution.startswith("\n# a comment, no heading\ndef my_scaled") and task.solution.endswith("return y\n")
    added, two, other = task.mistakes
    assert (added.says, added.hint, added.place) == ("The factor is added.", "Multiply.", "tasks.md:21")
    assert two.ways == (
        (("x * factor", "x / factor"), ("return y", "return -y")),
        (("y = …", "y = x\n    return 0 * y"),),
    )
    assert (two.costs, two.hint) == (("a number",), "")
    assert [case.default_finding for case in task.cases] == [None, other.finding]
    assert task.finding("added") == added.finding


def test_mistakes_are_made_of_the_text_and_told_by_their_names(read):
    (task,) = read().values()
    x = torch.tensor([1.0, 4.0])
    ways = [way for mistake in task.mistakes for way in mistake.ways]
    found = [task.reference.changed(way)(x, 3.0).tolist() for way in ways]
    assert found == [[4.0, 7.0], (-x / 3).tolist(), [0.0, 0.0]] and task.reference(x).tolist() == [2.0, 8.0]
    assert list(undetected(task)) == []
    asked = [run_checks(made_by(task, way), task.all_checks, asks=task.asks).misconceptions for way in ways]
    assert asked == [["added"], ["two at once"], ["two at once"]]
    other = run_checks(lambda x, factor: x**factor, task.all_checks[1:2], asks=task.asks)
    assert other.misconceptions == ["something else"]


def test_two_mistakes_together_are_told_apart(read):
    text = TEXT.replace("### two at once", "### turned\n- `return y` → `return -y`\nThe sign.\n### two at once")
    (task,) = read(text).values()
    report = run_checks(lambda x, factor: -(x + factor), task.all_checks, asks=task.asks)
    assert report.misconceptions == ["added", "turned"]


def test_a_class_of_modules_is_its_own_module(read):
    from course_lib.tasks import TaskInput

    cases = {"Scale": (Case("rows", lambda draw: TaskInput((draw(2, n := draw.sizes(1)[0]),), build=(n,))),)}
    (task,) = read(LAYER, cases).values()
    assert list(undetected(task)) == [] and task.module.__name__ == "MyScale"
    weight = torch.tensor([1.0, 2.0], requires_grad=True)
    result = task.reference((2,), {"weight": weight}, torch.tensor([3.0, 4.0]))
    assert result.tolist() == [3.0, 8.0]
    result.sum().backward()
    assert weight.grad.tolist() == [3.0, 4.0]


def test_a_solution_can_be_kept_and_copied_and_uses_the_names_that_it_is_given(read):
    (task,) = read(TEXT.replace("x * factor\n", "twice(x) * factor / 2\n").replace("`x * factor`", "`twice(x)`"),
                   names={"twice": torch.exp}).values()  # fmt: skip
    x = torch.tensor([0.0])
    for again in (pickle.loads(pickle.dumps(task.reference)), copy.deepcopy(task.reference)):
        assert again(x).tolist() == task.reference(x).tolist() == [1.0]
        assert vars(again) == vars(task.reference) == {"source": task.solution[1:], "names": {"twice": torch.exp}}


def test_a_mistake_that_is_detected_under_another_name_is_told_with_its_place(read):
    text = TEXT.replace("- `x * factor` → `x + factor`", "- `x * factor` → `x * factor * 1.0`")
    (line,) = undetected(*read(text).values())
    assert line.startswith("tasks.md:21: scaled: the mistake 'added'") and line.endswith("is told nothing")


ADDED = "`x * factor` → `x + factor`"


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        (ADDED, "`x * scale` → `x`", 22, "the solution has no 'x * scale' to be chan"),
        (ADDED, "`x` → `x`", 22, "'x' stays as it is"),
        (ADDED, "`x * factor` → `x +`", 22, "the solution would not be Python: invalid syntax"),
        (ADDED, "`x * factor` -> `x + factor`", 22, "a change is `old` → `new`"),
        ("- costs: a number", "- costs: a numbr", 28, "no case is called 'a numbr'"),
        ("result of: a row", "result of: rows", 31, "no case is called 'rows'"),
        ("minutes: 5", "minute: 5", 1, "the task 'scaled' says 'minute: 5': it begins with facts"),
        ("asks: x, factor=2.0 · ", "", 1, "the task 'scaled' does not say what it asks: it begins"),
        ("minutes: 5", "minutes: five", 1, "the task 'scaled' says 'minutes: five'"),
        ("minutes: 5", "minutes: 0", 1, "the task 'scaled' says 'minutes: 0'"),
        ("minutes: 5", "minutes: 5 · minutes: 6", 1, "the task 'scaled' says 'minutes: 6'"),
        ("also: gradients", "also: gradient", 1, "the task 'scaled' says 'also: gradient'"),
        ("stretch: yes", "stretch: no", 1, "the task 'scaled' says 'stretch: no'"),
        ("## Solution", "## Answer", 1, "the task 'scaled' has the sections"),
        ("## Solution", "## Hints\n- Three.\n\n## Solution", 1, "the task 'scaled' has the sections"),
        ("## Mistakes\n", "## Mistakes\n- `x` → `y`\n", 21, "this text is above the first heading, `### name`"),
        ("# scaled: A scale", "A scale\n\n# scaled: A scale", 1, "this text is above the first heading"),
        ("# scaled: A scale", "# scaled A scale", 1, "'scaled A scale' is not `name: Title`"),
        ("# scaled: A scale", "# other: A scale", 1, "'other: A scale' is not"),
        ("return y\n```", "return y\n", 13, "the code fence that begins here is not closed"),
        ("    return y\n```", "```", 25, "the solution has no 'return y'"),
        ("def my_scaled", "lambda: (", 12, "the solution would not be Python"),
        ("factor=2.0):", "factor=two):", 12, "the solution stops in its line 2 with NameError: name 'two'"),
        ("# a comment", "1 / 0  # a comment", 12, "the solution stops in its line 1 with ZeroDivisionError"),
        ("def my_scaled", "  def my_scaled", 12, "the solution would not be Python: unexpected indent"),
        ("# a comment, no heading\ndef", "async def", 12, "the solution does not define a function or a class"),
        (ADDED, "`def` → `x⏎def`", 22, "the solution stops in its line 2 with NameError"),
    ],
)
def test_a_slip_is_told_with_file_and_line(read, old, new, line, said):
    assert old in TEXT
    with pytest.raises(ValueError, match=f"^tasks.md:{line}: {re.escape(said)}"):
        read(TEXT.replace(old, new, 1))


def test_cases_without_a_task_are_told(read):
    with pytest.raises(ValueError, match="tasks.md has no task for these cases: other"):
        read(cases=CASES | {"other": CASES["scaled"]})


def test_a_file_that_is_not_utf_8_is_named_with_its_line(tmp_path):
    path = tmp_path / "tasks.md"
    path.write_bytes(TEXT.replace("asks: x", "frägt: x").encode("latin-1", "replace"))
    with pytest.raises(ValueError, match="^tasks.md:2: this line is not UTF-8; save the file as UTF-8$"):
        read_tasks(path, CASES)
