"""A lesson of the third edition with a learner's answers in it: as a plain file, and in kernels of its sittings."""

import ast
import re
import subprocess
import sys
from functools import cache
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

HEAD = "import math\n\nimport torch\nimport torch.nn.functional as F\nfrom torch import nn\n"
FIGURES = re.compile(r"page\.(play|result)\(")  # they take long, and need nothing of hers
NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
SENTENCES = {
    "passes": "your {} passes its check",
    "runs_on": "the lesson runs on your {}.",
    "opens": "{} opens the trained weights.",
    "goes_on": "Your {} goes on here.",
}

# For translators: the French of a row of numbers is the row backwards; and the loss, and the share that is right.
BACKWARDS = """
class learner:
    def batches(pairs, steps):
        for _ in range(steps):
            x = torch.randint(3, 9, (16, 4))
            ends = torch.full((16, 1), 2)
            target = torch.cat([ends - 1, x.flip(1), ends], dim=1)
            yield x, x > 0, target, target > 0

class data: train = None
class screen:
    stopped = False
    def update(step, steps, loss): screen.loss = loss
"""
READ_BACKWARDS = """
x, valid, *_ = next(learner.batches(None, 1))
right = (my_greedy(model, x, valid, 1, 2, 9)[:, :4] == x.flip(1)).float().mean().item()
print(screen.loss, right)
"""


@cache
def notebook_of(number):
    return nbformat.read(next(NOTEBOOKS.glob(f"{number}_*.ipynb")), as_version=4)


def tasks_of(number):
    return import_module(f"course_lib.lessons.lesson_{number}.tasks").TASKS


def alone(folder, number, *, others=(), solutions, cells="", driver, lines):
    """What `run_alone` prints with the page and the tasks of a lesson, and the tasks of `others`; by words."""
    tasks = {name: task for one in (*others, number) for name, task in tasks_of(one).items()}
    parts = {"solutions": solutions.split(), "cells": cells.split()}
    return run_alone(folder, tasks, notebook_of(number), driver=driver, lines=lines, **parts).split()


def kernels(home, monkeypatch, number, **options):
    """`sittings` of a lesson, at a home of their own."""
    monkeypatch.setenv("COURSE_HOME", str(home))
    return list(sittings(notebook_of(number), tasks_of(number), **options))


def unsaid(shown, *texts, **names):
    """What a sitting has not shown: of these texts, and of the sentences about names, such as passes="Encoder MLP"."""
    about = [SENTENCES[kind].format(name) for kind, some in names.items() for name in some.split()]
    return [text for text in (*texts, *about) if text not in shown]


def run_alone(folder, tasks, notebook, *, solutions, cells=(), driver, lines):
    """What a file of solutions and of functions and classes of the page's cells prints, without the course."""
    nodes = [
        (cell.source, node)
        for cell in notebook.cells
        if cell.cell_type == "code"
        for node in ast.parse(cell.source).body
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name in cells
    ]
    taken = [
        "".join(f"@{ast.unparse(one)}\n" for one in node.decorator_list) + ast.get_source_segment(source, node)
        for source, node in nodes
    ]
    whole = "\n\n".join([HEAD, *(tasks[name].solution for name in solutions), *taken, driver])
    assert len(taken) == len(cells) and len(whole.splitlines()) <= lines
    (folder / "alone.py").write_text(whole)
    return subprocess.run(
        [sys.executable, "-I", "alone.py"], cwd=folder, capture_output=True, text=True, check=True
    ).stdout


def answer(source, tasks):
    """A cell without its figures, and with the solution where a learner is to write."""
    lines = source.splitlines()
    for node in reversed(ast.parse(source).body):
        if FIGURES.match(lines[node.lineno - 1]):
            del lines[node.lineno - 1 : node.end_lineno]
    source = "\n".join(lines)
    asked = re.search(r'^page\.check\("(\w+)", \w+\)', source, re.MULTILINE)
    if asked is None:
        return source
    stub = re.search(r"^(class|def) ", source, re.MULTILINE).start()
    return source[:stub] + tasks[asked[1]].solution + "\n" + asked[0]


def sittings(notebook, tasks, *, end, begin=0, left_out=(), shorter=()):
    """All that each sitting, from number `begin` on, shows in a kernel of its own, up to the cell that has `end`.

    Cells with words of `left_out` are left out; `shorter` are pairs of texts, old and new.
    """
    cells = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    last = next(i for i, cell in enumerate(cells) if end in cell)
    stops = [i for i, cell in enumerate(cells[:last]) if "page.resume" in cell]
    for first, behind in [*pairwise([0, *stops, last])][begin:]:
        part = cells[first:behind]
        sources = [answer(cell, tasks) for cell in part if not any(words in cell for words in left_out)]
        for old, new in shorter:
            sources = [source.replace(old, new) for source in sources]
        yield shown(sources)


def shown(sources):
    """All that cells show in a kernel of their own."""
    notebook = new_notebook(cells=[new_code_cell(source) for source in sources])
    NotebookClient(notebook, kernel_name="python3", timeout=600, shutdown_kernel="immediate").execute()
    outputs = [output for cell in notebook.cells for output in cell.outputs]
    return "\n".join(output.get("text") or output["data"].get("text/plain", "") for output in outputs)
