"""Tasks from a Markdown file: what a learner reads of them, their solution, and its mistakes; see lesson 08's tasks.md.

A line of changes (`read_changes`) makes them all; several lines are several ways to make the same mistake.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from course_lib.tasks.headings import Lines, split_at, text_of
from course_lib.tasks.solution import Solution, read_changes
from course_lib.tasks.table import Case, Mistake, Task, gradients, keeps_type

PARTS = ("Hints", "Solution", "Mistakes")
FACTS = {"asks": str, "minutes": int, "seconds": float, "stretch": bool, "forbids": lambda text: text.split(", ")}
FACTS |= {"also": lambda text: [{"gradients": gradients, "keeps_type": keeps_type}[one] for one in text.split(", ")]}


def read_tasks(
    path: Path, cases: Mapping[str, Sequence[Case]], names: Mapping[str, Any] | None = None, **more: dict[str, Any]
) -> dict[str, Task]:
    """The tasks of a file by name, each with its cases; solutions may use `names`, `more` is what else a `Task` gets.

    Raises ValueError with file and line for a text that is not as it should be, or a mistake that changes nothing.
    """
    found: dict[str, Task] = {}
    for heading, first, body in split_at(path.read_text(encoding="utf-8"), "# ")[1:]:
        name, _, title = heading.partition(": ")
        try:
            if not title or name in found or name not in cases:
                raise ValueError(f"{heading!r} is not `name: Title`, or its name comes twice or has no cases in Python")
            found[name] = Task(name, title, **_facts(name, body, cases[name], names, path.name) | more.get(name, {}))
        except ValueError as problem:
            place = "" if str(problem).startswith(path.name) else f"{path.name}:{first}: "
            raise ValueError(f"{place}{problem}") from problem
    if missing := ", ".join(cases.keys() - found.keys()):
        raise ValueError(f"{path.name} has no task for these cases: {missing}")
    return found


def with_mistakes(tasks: Sequence[Task], text: str, solutions: Mapping[str, Solution], file: str) -> tuple[Task, ...]:
    """These tasks with the mistakes that a text lists for some of them. Raises ValueError as `read_tasks` does."""
    found = {task.name: task for task in tasks}
    for name, first, body in split_at(text, "# ")[1:]:
        sections = split_at(body, "## ")
        if name not in found or [heading for heading, *_ in sections] != ["", "Mistakes"]:
            raise ValueError(f"{file}:{first}: {name!r} is no task, or holds something other than ## Mistakes")
        found[name] = replace(found[name], **_mistakes(sections[1][2], solutions[name], found[name].cases, file))
    return tuple(found.values())


def _facts(name: str, lines: Lines, cases: Sequence[Case], names: Mapping | None, file: str) -> dict[str, Any]:
    (_, _, head), *sections = split_at(lines, "## ")
    parts = {heading: body for heading, _, body in sections}
    if [*parts] != [part for part in PARTS if part in parts] or "Solution" not in parts:
        raise ValueError(f"the task {name!r} has the sections {[*parts]}, not {', '.join(PARTS)}")
    try:
        told = dict(fact.partition(": ")[::2] for fact in head[0][1].split(" · "))
        facts = {"asks": told["asks"]} | {key: FACTS[key](value) for key, value in told.items()}
    except (IndexError, KeyError, ValueError) as problem:
        raise ValueError(f"the task {name!r} says {problem}: it begins with facts, `asks: x · minutes: 5`") from problem
    hints = re.split(r"(?:^|\n)- ", text_of(parts.get("Hints", [])))[1:]
    solution = Solution(text_of(parts["Solution"]).removeprefix("```python").removesuffix("```").strip() + "\n", names)
    return {
        **facts,
        **_mistakes(parts.get("Mistakes", []), solution, cases, file),
        "reference": solution,
        "module": solution.module,
        "text": text_of(head[1:]),
        "hints": tuple(map(str.strip, hints)),
        "solution": f"\n{solution.source}",
    }


def _mistakes(lines: Lines, solution: Solution, cases: Sequence[Case], file: str) -> dict[str, Any]:
    """The mistakes, and the cases with what is said of any other result."""
    found, others, known = [], {}, [case.name for case in cases]
    for name, first, body in split_at(lines, "### ")[1:]:
        ways, named, said = [], {"costs": (), "any other result of": ()}, []
        for number, line in body:
            key, _, value = line.removeprefix("- ").partition(": ")
            try:
                if line == "- any other result":
                    named["any other result of"] = tuple(known)
                elif line.startswith("- ") and key in named:
                    named[key] = tuple(value.split("; "))
                    if unknown := set(named[key]) - set(known):
                        raise ValueError(f"no case is called {unknown.pop()!r}")
                elif line.startswith("- "):
                    ways.append(read_changes(line))
                    solution.changed(ways[-1])
                else:
                    said.append((number, line))
            except ValueError as problem:
                raise ValueError(f"{file}:{number}: {problem}") from problem
        says, _, hint = " ".join(text_of(said).split()).partition("> ")
        found.append(Mistake(name, says.strip(), hint, ways=tuple(ways), costs=named["costs"], place=f"{file}:{first}"))
        others |= dict.fromkeys(named["any other result of"], found[-1].finding)
    cases = tuple(replace(case, default_finding=others.get(case.name, case.default_finding)) for case in cases)
    return {"cases": cases, "mistakes": tuple(found)}
