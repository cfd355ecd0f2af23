"""The drawings of ARCHITECTURE.md: three ways through the course, from one function to the next.

`python -m course_lib.authoring.architecture` writes them, in Mermaid's language, between the marks of that page. A step
from one function to the next counts only if the first names the second, so a drawing cannot outlive its code.
"""

import ast
import inspect
import textwrap
from collections.abc import Iterator, Sequence
from importlib import import_module
from itertools import pairwise
from typing import Any

from course_lib.data.place import course_folder

PAGE = "ARCHITECTURE.md"
BEGIN, END = "<!-- flow: {} -->", "<!-- end of {} -->"
FILES = "files: "  # what stands behind it is no function, but what one function writes and the next one reads

FLOWS: dict[str, tuple[tuple[str, ...], ...]] = {  # name -> paths of functions, each as module:name
    "a check": (
        (
            "classroom.page:Page.check",
            "classroom.exercises:Exercise.check",
            "classroom.exercises:Exercise.look",
            "tasks.table:Task.run",
            "tasks.core:run_checks",
            "tasks.core:_run_one",
        ),
        ("tasks.table:Task.run", "tasks.table:Task.all_checks", "tasks.table:Task._ask_case"),
        (
            "tasks.table:Task._ask_case",
            "tasks.table:Task._ask_once",
            "tasks.table:Mistake.finding",
            "tasks.findings:Finding",
        ),
        ("tasks.core:_run_one", "tasks.table:Task._ask_case"),
        ("tasks.table:Task._ask_once", "tasks.table:Task.ask", "tasks.core:Probe.tensor"),
        ("tasks.table:Task._ask_once", "tasks.table:Task.explain"),
        ("tasks.table:Task._ask_once", "tasks.findings:unexplained"),
        ("classroom.exercises:Exercise.check", "classroom.exercises:say_findings", "classroom.output:present"),
    ),
    "a submission": (
        (
            "grading.collect:collect",
            "grading.collect:_store",
            "files: submitted/STUDENT/NAME",
            "grading.batch:Batch.take_in",
        ),
        ("grading.batch:grade", "grading.batch:Batch.run", "grading.pools:judge_all", "grading.pools:judge_one"),
        (
            "grading.batch:Batch.run",
            "grading.batch:Batch._to_judge",
            "grading.batch:Batch.take_in",
            "grading.intake:take_in",
        ),
        (
            "grading.pools:judge_one",
            "grading.judge:judge",
            "grading.judge:_Sitting.judge_all",
            "grading.judge:_Sitting._judge_task",
            "grading.judge:_Sitting._judge_checks",
            "grading.judge:_Sitting._judge_check",
            "grading.subject:Subject",
            "grading.sandbox:Box.call",
            "grading.boxed.worker:Box.call",
        ),
        ("grading.batch:Batch.run", "grading.batch:Batch.store", "grading.gradebook:Gradebook.record"),
        ("grading.gradebook:Gradebook.record", "files: gradebook.db", "grading.gradebook:scores"),
        ("grading.export:export", "grading.gradebook:scores"),
        ("grading.export:export", "grading.export:csv_text", "files: exports/NAME-canvas.csv"),
    ),
    "a recipe": (
        ("commands.train:train", "lessons.recipes:find_recipe", "lessons.recipes:all_recipes"),
        (
            "commands.train:train",
            "commands.train:train_seed",
            "training.recipe:Recipe.run",
            "training.recipe:fit_by",
            "training.loop:fit",
            "training.checkpoints:save",
        ),
        ("commands.train:train", "training.recipe:Recipe.best"),
        ("commands.train:train", "commands.train:ship", "data.checkpoints:write_trained", "weights.own:save"),
        ("data.checkpoints:write_trained", "files: data/checkpoints/NAME", "data.checkpoints:load_trained"),
    ),
}
CALLED_BY_A_VALUE = {  # steps whose second function is reached through a value that the first was given
    ("tasks.core:_run_one", "tasks.table:Task._ask_case"),
    ("grading.pools:judge_all", "grading.pools:judge_one"),
    ("grading.subject:Subject", "grading.sandbox:Box.call"),
    ("grading.sandbox:Box.call", "grading.boxed.worker:Box.call"),
    ("training.recipe:Recipe.run", "training.recipe:fit_by"),
}


def find(place: str) -> Any:
    """The function, class or property at "module:name". Raises ValueError if there is none."""
    module, _, name = place.partition(":")
    try:
        found = import_module(f"course_lib.{module}")
        for part in name.split("."):
            found = inspect.getattr_static(found, part)
    except (ImportError, AttributeError) as problem:
        raise ValueError(f"{place} is in a drawing of {PAGE} and not in the code: {problem}") from None
    return found


def source(place: str) -> str:
    """The source text of what stands at "module:name"."""
    found = find(place)
    found = getattr(found, "fget", None) or getattr(found, "func", None) or found
    return textwrap.dedent(inspect.getsource(found))


def names_in(text: str) -> set[str]:
    """All names and attributes that a piece of Python uses."""
    nodes = list(ast.walk(ast.parse(text)))
    return {node.id for node in nodes if isinstance(node, ast.Name)} | {
        node.attr for node in nodes if isinstance(node, ast.Attribute)
    }


def steps(flow: Sequence[Sequence[str]]) -> Iterator[tuple[str, str]]:
    """Each step of a flow once, from one place to the next."""
    yield from dict.fromkeys(step for path in flow for step in pairwise(path))


def untrue_steps(flow: Sequence[Sequence[str]]) -> list[tuple[str, str]]:
    """The steps whose first function does not name the second. Raises ValueError for a function that is not there."""
    wrong = []
    for first, second in steps(flow):
        for place in {first, second}:
            if not place.startswith(FILES):
                find(place)
        if FILES in first + second or (first, second) in CALLED_BY_A_VALUE:
            continue
        if second.split(":")[1].split(".")[-1] not in names_in(source(first)):
            wrong.append((first, second))
    return wrong


def drawing(flow: Sequence[Sequence[str]]) -> str:
    """A flow as a flowchart of Mermaid: a box for each function, a drum for files."""
    numbers = {place: f"n{number}" for number, place in enumerate(dict.fromkeys(p for path in flow for p in path))}
    lines = ["```mermaid", "flowchart TD"]
    for place, number in numbers.items():
        if place.startswith(FILES):
            lines.append(f'    {number}[("{place.removeprefix(FILES)}")]')
        else:
            module, _, name = place.partition(":")
            lines.append(f'    {number}["{name}<br/>{module.replace(".", "/")}.py"]')
    for first, second in steps(flow):
        arrow = "-.->" if (first, second) in CALLED_BY_A_VALUE else "-->"
        lines.append(f"    {numbers[first]} {arrow} {numbers[second]}")
    return "\n".join([*lines, "```"])


def drawn(text: str) -> str:
    """The page with every drawing made anew. Raises ValueError if the page lacks the marks of a flow."""
    for name, flow in FLOWS.items():
        begin, end = BEGIN.format(name), END.format(name)
        if begin not in text or end not in text:
            raise ValueError(f"{PAGE} lacks the lines {begin} and {end}, between which a drawing stands")
        before, rest = text.split(begin, 1)
        text = f"{before}{begin}\n{drawing(flow)}\n{end}{rest.split(end, 1)[1]}"
    return text


def main() -> int:
    """Writes the drawings into ARCHITECTURE.md."""
    page = course_folder() / PAGE
    page.write_text(drawn(page.read_text(encoding="utf-8")), encoding="utf-8")
    print(f"{page}: {len(FLOWS)} drawings")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
