"""A tiny course with honest answers, and one hostile submission at a time."""

import json
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

from course_lib.grading.intake import take_in
from course_lib.grading.judge import judge
from course_lib.grading.sandbox import Zygote
from course_lib.grading.spec import AssignmentFiles, read_assignment

KEY = b"the key of the tests"
POINTS = {"softmax": 2.0, "attention": 2.0, "affine": 2.0}
SECONDS = 20  # an attack may not hold the judge any longer, on a busy machine either

SETUP = "import os\nimport sys\n\nimport torch\nfrom torch import nn"
STUB = "# YOUR CODE HERE\nraise NotImplementedError()"
HONEST = {
    "softmax": """\
def softmax(x):
    powers = (x - x.amax(dim=-1, keepdim=True)).exp()
    return powers / powers.sum(dim=-1, keepdim=True)
""",
    "attention": """\
def attention(q, k, v):
    return (q @ k.mT / q.shape[-1] ** 0.5).softmax(dim=-1) @ v
""",
    "affine": """\
class Affine(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.bias = nn.Parameter(torch.zeros(dim))

    def forward(self, x):
        return x * self.weight + self.bias
""",
}
WRONG = {  # right in type and shape, and worth nothing
    "softmax": "def softmax(x):\n    return torch.zeros_like(x)\n",
    "attention": "def attention(q, k, v):\n    return torch.zeros_like(v)\n",
    "affine": HONEST["affine"].replace("x * self.weight + self.bias", "x * 0"),
}

CHECKS = '''\
"""Hidden checks of the tiny course."""

import torch

from course_lib.grading.sandbox import Limits
from course_lib.grading.spec import Assignment, HiddenCheck, Task, agrees
from course_lib.tasks.findings import Finding

SECRET = "{secret}"
LIMITS = Limits(memory=3 << 29, cpu_seconds=3, processes=16, disk=4 << 20, open_files=64, reply_bytes=4 << 20)


def right_attention(q, k, v):
    return (q @ k.mT / q.shape[-1] ** 0.5).softmax(dim=-1) @ v


def scaled_and_shifted(subject):
    module, x = subject.make("Affine", 4), subject.random(3, 4)
    weight, bias = subject.random(4), subject.random(4)
    module.set_parameters({{"weight": weight, "bias": bias}})
    if not torch.allclose(module.tensor(x, shape=(3, 4)), x * weight + bias, atol=1e-5):
        yield Finding(misconception="not affine", message="The result is not weight x + bias.")


ASSIGNMENT = Assignment(
    name="01",
    notebook="tiny",
    title="Tiny",
    tasks=(
        Task(
            name="softmax",
            title="Softmax",
            limits=LIMITS,
            seconds=6,
            checks=(
                agrees(
                    "Small inputs",
                    points=1,
                    seconds=2,
                    inputs=lambda subject: (subject.random(3, 5),),
                    reference=lambda x: x.softmax(dim=-1),
                ),
                agrees(
                    "Large inputs",
                    points=1,
                    seconds=2,
                    inputs=lambda subject: (1000 + subject.random(2, 7),),
                    reference=lambda x: x.softmax(dim=-1),
                ),
            ),
        ),
        Task(
            name="attention",
            title="Attention",
            limits=LIMITS,
            seconds=6,
            checks=(
                agrees(
                    "Attention",
                    points=2,
                    seconds=2,
                    inputs=lambda subject: tuple(subject.random(2, 4, 3) for _ in range(3)),
                    reference=right_attention,
                ),
            ),
        ),
        Task(
            name="affine",
            title="A module",
            limits=LIMITS,
            seconds=6,
            checks=(HiddenCheck(name="Scaled and shifted", points=2, run=scaled_and_shifted, seconds=1.5),),
        ),
    ),
)
'''


@dataclass(frozen=True, kw_only=True)
class Attack:
    """A hostile cell, whose task it stands in, what that task may earn, and what the cell must have printed."""

    name: str
    source: str
    task: str = "attention"
    points: float = 0.0
    tried: str = "tried"  # printed by the attack itself: a test in which nothing was tried shows nothing
    ended: tuple[str | None, ...] = (None,)


def by_name(attacks):
    """Ids for pytest.mark.parametrize."""
    return {"argvalues": attacks, "ids": [attack.name for attack in attacks]}


def code_cell(grade_id, source, *, locked=False, grade=False, solution=False, points=None, cell_type="code"):
    """A notebook cell with nbgrader's metadata, schema 3."""
    nbgrader = {
        "grade_id": grade_id,
        "schema_version": 3,
        "locked": locked,
        "grade": grade,
        "solution": solution,
        "task": False,
        "cell_type": cell_type,
        **({"points": points} if points is not None else {}),
    }
    cell = {"cell_type": cell_type, "id": grade_id, "metadata": {"nbgrader": nbgrader}, "source": source}
    return cell | ({"outputs": [], "execution_count": None} if cell_type == "code" else {})


def notebook(cells):
    """A notebook as a dictionary."""
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def tiny_notebook(answers):
    """The tiny assignment with these answers."""
    cells = [code_cell("setup", SETUP, locked=True)]
    for task, points in POINTS.items():
        cells.append(code_cell(task, answers[task], solution=True))
        cells.append(code_cell(f"check-{task}", "# checked in class", locked=True, grade=True, points=points))
    cells.append(code_cell("why", "", grade=True, solution=True, points=1, cell_type="markdown"))
    return notebook(cells)


def between_solution_marks(source):
    """An instructor's cell: the whole text is the solution."""
    return f"### BEGIN SOLUTION\n{source}### END SOLUTION"


class TinyCourse:
    """A course directory with assignment 01, a zygote, and a judge that is watched."""

    def __init__(self, folder: Path, *, secret: str, zygote: Zygote | None = None):
        self.folder, self.secret, self.zygote = folder, secret, zygote
        source = folder / "source" / "01" / "tiny.ipynb"
        source.parent.mkdir(parents=True)
        solved = {task: between_solution_marks(answer) for task, answer in HONEST.items()}
        source.write_text(json.dumps(tiny_notebook(solved)), encoding="utf-8")
        checks = folder / "hidden" / "01" / "tasks.py"
        checks.parent.mkdir(parents=True)
        checks.write_text(CHECKS.format(secret=secret), encoding="utf-8")
        self.files: AssignmentFiles = read_assignment(folder, "01")

    def submit(self, student: str = "mallory", answers: dict[str, str] | None = None) -> Path:
        """Writes a submission: honest but for these answers."""
        return self.submit_notebook(student, tiny_notebook(HONEST | (answers or {})))

    def submit_notebook(self, student: str, content: dict | str | bytes) -> Path:
        """Writes this notebook (or these raw bytes) as a student's submission."""
        path = self.folder / "submitted" / student / "01" / "tiny.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(content) if isinstance(content, dict) else content
        path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
        return path

    def judge(self, path: Path) -> dict:
        """The verdict on one file, after seeing that it is well formed, came in time, and left no process behind."""
        before, start = set(descendants()), time.monotonic()
        verdict = judge(take_in(path, self.files), self.files, key=KEY, zygote=self.zygote)
        seconds = time.monotonic() - start
        assert seconds < SECONDS
        assert json.loads(json.dumps(verdict, allow_nan=False)) == verdict
        assert set(verdict["tasks"]) == set(POINTS)
        for name, task in verdict["tasks"].items():
            assert task["possible"] == POINTS[name]
            assert task["points"] == sum(check["points"] for check in task["checks"])
            assert 0 <= task["points"] <= task["possible"]
        assert left_behind(before) == set()
        return verdict

    def attack(self, attack: Attack) -> dict:
        """The verdict on an attack, after seeing that it ran, and that the honest tasks kept their points."""
        verdict = self.judge(self.submit("mallory", {attack.task: attack.source}))
        attacked = verdict["tasks"][attack.task]
        assert attack.tried in attacked["printed"], attacked
        assert attacked["points"] == attack.points, attacked
        assert attacked["ended"] in attack.ended
        assert points(verdict) == POINTS | {attack.task: attack.points}
        return verdict


def points(verdict: dict) -> dict[str, float]:
    return {name: task["points"] for name, task in verdict["tasks"].items()}


def printed(verdict: dict) -> str:
    return "\n".join(task["printed"] for task in verdict["tasks"].values())


def descendants() -> list[int]:
    """The processes that come from this one, those of the sandbox included."""
    return [process.pid for process in psutil.Process().children(recursive=True)]


def left_behind(before: set[int], *, expected=lambda process: False, seconds: float = 3) -> set[int]:
    """The descendants that were not there before and are still there after a while, in which processes may die."""
    end = time.monotonic() + seconds
    while left := {process for process in set(descendants()) - before if not expected(process)}:
        if time.monotonic() > end:
            break
        time.sleep(0.02)
    return left
