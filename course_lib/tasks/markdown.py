"""Tasks from a Markdown file: what a learner reads of them, their solution, and its mistakes; see lesson 08's tasks.md.

A mistake is a change of the solution's own text, `old` → `new`. In an old text `…` stands for anything, `⏎` for the end
of a line. A line with several changes makes them all; several lines are several ways to make the same mistake.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from course_lib.tasks import table
from course_lib.tasks.solution import Solution
from course_lib.tasks.table import Also, Case, Mistake, Task

CHANGE = re.compile(r"`([^`]+)` → (?:`([^`]+)`|nothing)")
FACTS, PARTS = ("asks", "minutes", "also", "forbids", "seconds", "stretch"), ("Hints", "Solution", "Mistakes")
Lines = list[tuple[int, str]]


def read_tasks(
    path: Path, cases: Mapping[str, Sequence[Case]], names: Mapping[str, Any] | None = None, **more: Mapping[str, Any]
) -> dict[str, Task]:
    """The tasks of a file by name, each with its cases; solutions may use `names`, `more` is what else a `Task` gets.

    Raises ValueError with file and line for a text that is not as it should be, or a mistake that changes nothing.
    """
    found: dict[str, Task] = {}
    lines = list(enumerate(path.read_text(encoding="utf-8").splitlines(), start=1))
    for heading, first, body in _split(lines, "# ")[1:]:
        name, _, title = heading.partition(": ")
        try:
            if not title or name in found or name not in cases:
                raise ValueError(f"{heading!r} is not `name: Title`, or its name comes twice or has no cases in Python")
            facts = _facts(name, body, cases[name], names or {}, path.name)
            found[name] = Task(name, title, **facts | dict(more.get(name, {})))
        except ValueError as problem:
            place = "" if str(problem).startswith(path.name) else f"{path.name}:{first}: "
            raise ValueError(f"{place}{problem}") from problem
    if missing := ", ".join(cases.keys() - found.keys()):
        raise ValueError(f"{path.name} has no task for these cases: {missing}")
    return found


def with_mistakes(
    tasks: Sequence[Task], text: str, solutions: Mapping[str, Solution], file: str
) -> tuple[Task, ...]:
    """These tasks with the mistakes that a text lists for some of them: changes of their solutions, by task.

    Raises ValueError as `read_tasks` does.
    """
    found = {task.name: task for task in tasks}
    for name, first, body in _split(list(enumerate(text.splitlines(), start=1)), "# ")[1:]:
        sections = _split(body, "## ")
        if name not in found or [heading for heading, *_ in sections] != ["", "Mistakes"]:
            raise ValueError(f"{file}:{first}: {name!r} is no task, or holds something other than ## Mistakes")
        found[name] = replace(found[name], **_mistakes(sections[1][2], solutions[name], found[name].cases, file))
    return tuple(found.values())


def _facts(name: str, lines: Lines, cases: Sequence[Case], names: Mapping[str, Any], file: str) -> dict[str, Any]:
    (_, _, head), *sections = _split(lines, "## ")
    parts = {heading: body for heading, _, body in sections}
    if [*parts] != [part for part in PARTS if part in parts] or "Solution" not in parts:
        raise ValueError(f"the task {name!r} has the sections {[*parts]}, not {', '.join(PARTS)}")
    facts = dict(fact.partition(": ")[::2] for fact in head[0][1].split(" · ")) if head else {}
    if wrong := [key for key in facts if key not in FACTS] or ([] if "asks" in facts else ["asks"]):
        raise ValueError(f"the task {name!r} says {wrong[0]!r}: it begins with facts, `asks: x · minutes: 5`")
    also, forbids = (tuple(facts[key].split(", ")) if key in facts else () for key in ("also", "forbids"))
    if wrong := [one for one in also if not isinstance(getattr(table, one, None), Also)]:
        raise ValueError(f"the task {name!r} has also {wrong[0]!r}, which is no general property")
    solution = Solution(_text(parts["Solution"]).removeprefix("```python").removesuffix("```").strip() + "\n", names)
    module = solution.module  # and so it is seen to be Python
    return _mistakes(parts.get("Mistakes", []), solution, cases, file) | {
        "asks": facts["asks"],
        "reference": solution,
        "module": module,
        "also": tuple(getattr(table, one) for one in also),
        "forbids": forbids,
        "seconds": float(facts["seconds"]) if "seconds" in facts else None,
        "minutes": int(facts.get("minutes", 0)),
        "stretch": "stretch" in facts,
        "text": _text(head[1:]),
        "hints": tuple(map(str.strip, re.split(r"(?:^|\n)- ", _text(parts.get("Hints", [])))[1:])),
        "solution": f"\n{solution.source}",
    }


def _mistakes(lines: Lines, solution: Solution, cases: Sequence[Case], file: str) -> dict[str, Any]:
    """The mistakes, and the cases with what is said of any other result."""
    found, others, known = [], {}, [case.name for case in cases]
    for name, first, body in _split(lines, "### ")[1:]:
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
                    ways.append(tuple(CHANGE.findall(line.replace("⏎", "\n"))))
                    if not ways[-1] or CHANGE.sub("", line).strip("- ,"):
                        raise ValueError("a change is `old` → `new`, or `old` → nothing")
                    solution.changed(ways[-1])
                else:
                    said.append((number, line))
            except ValueError as problem:
                raise ValueError(f"{file}:{number}: {problem}") from problem
        says, _, hint = " ".join(_text(said).split()).partition("> ")
        found.append(Mistake(name, says.strip(), hint, ways=tuple(ways), costs=named["costs"], place=f"{file}:{first}"))
        others |= dict.fromkeys(named["any other result of"], found[-1].finding)
    cases = [replace(case, otherwise=others.get(case.name, case.otherwise)) for case in cases]
    return {"cases": tuple(cases), "mistakes": tuple(found)}


def _split(lines: Lines, mark: str) -> list[tuple[str, int, Lines]]:
    """What stands before the first heading with this mark, and then each heading, its line and what it is above."""
    found: list[tuple[str, int, Lines]] = [("", 0, [])]
    fenced = False
    for number, line in lines:
        fenced ^= line.startswith("```")
        if line.startswith(mark) and not fenced:
            found.append((line.removeprefix(mark).strip(), number, []))
        elif line.strip() or found[-1][2]:
            found[-1][2].append((number, line))
    return found


def _text(lines: Lines) -> str:
    return "\n".join(line for _, line in lines).strip()
