# ruff: noqa: E501 (students' cells as they are)
"""A tiny course of three tasks: what honest students answer, and what wrong answers look like."""

from course_lib.grading.folders import Folders
from tests.grading.courses import answer, check, notebook, setup, solution, write_files

NAME, NOTEBOOK = "03", "tiny"
FULL = {"softmax": 2.0, "attention": 2.0, "Affine": 2.0}
SETUP = "import os\nimport sys\n\nimport torch\nfrom torch import nn"
RIGHT = {
    "softmax": "def softmax(x):\n    powers = (x - x.amax(-1, keepdim=True)).exp()\n    return powers / powers.sum(-1, keepdim=True)\n",
    "attention": "def attention(q, k, v):\n    return softmax(q @ k.mT / q.shape[-1] ** 0.5) @ v\n",
    "Affine": (
        "class Affine(nn.Module):\n    def __init__(self, dim):\n        super().__init__()\n"
        "        self.weight, self.bias = nn.Parameter(torch.ones(dim)), nn.Parameter(torch.zeros(dim))\n\n"
        "    def forward(self, x):\n        return x * self.weight + self.bias\n"
    ),
}
CHECKS = """
from torch import nn
import torch

from course_lib.grading.spec import Assignment
from course_lib.tasks import Case, TaskInput, Task


class Parameters(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(dim)), nn.Parameter(torch.zeros(dim))


SOFTMAX = Task(name="softmax", title="Softmax", asks="x", forbids=("softmax",),
    cases=(Case("small inputs", lambda draw: (draw(*draw.sizes(2)),), 1),
           Case("large inputs", lambda draw: (1000 * draw(*draw.sizes(2)),), 1)),)
ATTENTION = Task(name="attention", title="Attention", asks="q, k, v", seconds=1,
    cases=(Case("attention", lambda draw: tuple(draw(2, 4, 3) for _ in range(3)), 2),))
AFFINE = Task(name="Affine", title="A module", asks="x", module=Parameters,
    cases=(Case("scaled and shifted", lambda draw: TaskInput((draw(3, dim := draw.sizes(1)[0]),), build=(dim,)), 2),),)
ASSIGNMENT = Assignment("03", notebook="tiny", title="Tiny", tasks=(SOFTMAX, ATTENTION, AFFINE))
"""
MISTAKES = """# softmax

## Mistakes
### over the wrong axis
- `-1` → `0`
It sums over the wrong axis.
> The last axis is meant.

# Affine

## Mistakes
### no bias
- `+ self.bias` → nothing
Nothing is added.
"""


def cells(answers):
    made = [setup("setup", SETUP)]
    for task, points in FULL.items():
        made += [solution(task, answers[task]), check(f"check-{task}", "# by the grader", points)]
    return [*made, answer("why", "YOUR ANSWER HERE", 4)]


def write_course(root) -> Folders:
    """The instructor's files, not released."""
    solved = {task: f"### BEGIN SOLUTION\n{text}### END SOLUTION" for task, text in RIGHT.items()}
    files = {f"source/{NAME}/{NOTEBOOK}.ipynb": notebook(cells(solved))}
    return write_files(root, files | {f"hidden/{NAME}/tasks.py": CHECKS, f"hidden/{NAME}/tasks.md": MISTAKES})


def submit(folders, student, **answers):
    """A submission, honest but for these answers."""
    place = folders.submitted(student, NAME).relative_to(folders.root) / f"{NOTEBOOK}.ipynb"
    write_files(folders.root, {place: notebook(cells(RIGHT | answers))})
