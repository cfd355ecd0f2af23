"""`course syllabus`: a term in weeks from what the lessons say of themselves, as Markdown and as a calendar.

Titles, objectives, prerequisites and readings are the notebooks' own words, minutes those of `questions.md`.
"""

import datetime
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import nbformat

from course_lib.classroom.texts import read_questions
from course_lib.data.place import CannotStart, course_folder
from course_lib.teaching.ics import Event, calendar

ASSIGNMENT_HOURS = (2, 3)  # what each assignment takes: docs/grading.md
LESSON_FOLDER = Path(__file__).parents[1] / "lessons"
READINGS = 2  # papers a week that are named for each lesson


class Lesson(NamedTuple):
    """What a lesson's page says of itself."""

    number: str
    title: str
    objectives: tuple[str, ...]
    sections: tuple[tuple[str, int], ...]  # what is not optional, with its minutes
    needs: tuple[str, ...]  # numbers of lessons
    helps: tuple[str, ...]
    reading: tuple[str, ...]
    assignment: bool

    @property
    def minutes(self) -> int:
        return sum(minutes for _, minutes in self.sections)


class Plan(NamedTuple):
    """Which lessons a term has, and how it ends."""

    title: str
    weeks: int  # unless another number is asked for
    least: int
    most: int
    lessons: tuple[str, ...]
    project: int = 0  # the last weeks, which have no lesson


class Session(NamedTuple):
    """A part of a workshop's day: lectures of some minutes, or practical work on a lesson's sections."""

    day: int
    start: str
    minutes: int
    lesson: str
    kind: str


PLANS = {
    "project": Plan("All lessons, and a project", 14, 9, 18, tuple(f"{number:02}" for number in range(18)), project=2),
    "short": Plan("From a first network to GPT and ViT", 8, 5, 10, tuple("00 01 03 04 05 06 07 08 10 11".split())),
}
WORKSHOP = (
    Session(1, "09:00", 75, "00", "practical"),
    Session(1, "10:30", 30, "03", "lecture"),
    Session(1, "11:15", 30, "04", "lecture"),
    Session(1, "13:00", 90, "05", "lecture"),
    Session(1, "14:45", 120, "05", "practical"),
    Session(2, "09:00", 90, "06", "lecture"),
    Session(2, "10:45", 90, "06", "practical"),
    Session(2, "13:15", 60, "08", "lecture"),
    Session(2, "14:30", 120, "08", "practical"),
)
PROJECT = (  # weeks before the end, and what is due on the last day of that week
    (4, "Project: brief chosen, with a prediction in writing"),
    (2, "Project: baseline repeated"),
    (1, "Project: main experiment run with three seeds"),
    (0, "Project: report handed in"),
)


class Week(NamedTuple):
    """A week of the term; assignments go out on its first day, and are due on the first day of the next."""

    number: int
    first: datetime.date
    lessons: tuple[Lesson, ...]
    out: str = ""  # an assignment's number
    due: str = ""
    project: str = ""

    @property
    def hours(self) -> str:
        """What a student needs for lessons and assignment."""
        taught = sum(lesson.minutes for lesson in self.lessons) / 60
        least, most = (taught + hours * bool(self.out) for hours in ASSIGNMENT_HOURS)
        return f"{least:.0f} to {most:.0f}" if self.out else f"{taught:.0f}" if taught else "10 to 20 in all"


@cache
def read_lesson(path: Path) -> Lesson:
    """What a lesson's notebook and its table of sections say."""
    number = path.name[:2]
    text = "\n\n".join(cell.source for cell in nbformat.read(path, 4).cells if cell.cell_type == "markdown")
    heading = re.search(r"^# \d\d · (.+)$", text, flags=re.MULTILINE)
    objectives = re.search(r"you can\*\*\n\n((?:- .+\n)+)", text)
    sentences = re.search(r"\*\*You need\*\* (.+?)(?:\n\n|\Z)", text, flags=re.DOTALL)
    if not (heading and objectives and sentences):
        raise CannotStart(f"{path.name} does not begin with its title, what you can do after it, and what you need.")
    needed, _, more = re.sub(r"\s+", " ", sentences[1]).replace("; ", ". ").partition(". ")
    reading = re.search(r"(?:\*\*Read(?: on|ing)[^\n]*|### Reading)\n\s*((?:(?:- |  ).+(?:\n|\Z))+)", text)
    listed = re.split(r"^- ", reading[1], flags=re.MULTILINE)[1:] if reading else []
    sections = read_questions(LESSON_FOLDER / f"lesson_{number}" / "questions.md").sections
    return Lesson(
        number=number,
        title=heading[1],
        objectives=tuple(line.removeprefix("- ").rstrip(";.") for line in objectives[1].splitlines()),
        sections=tuple((section.title, int(section.minutes)) for section in sections if not section.optional),
        needs=tuple(re.findall(r"\b[01]\d\b", needed)),
        helps=tuple(re.findall(r"\b[01]\d\b", more)),
        reading=tuple(" ".join(one.split()) for one in listed[:READINGS]),
        assignment=(course_folder() / "notebooks" / "assignments" / "source" / number).is_dir(),
    )


def read_lessons() -> dict[str, Lesson]:
    """All lessons of the course by their numbers."""
    paths = sorted((course_folder() / "notebooks").glob("[0-9][0-9]_*.ipynb"))
    return {path.name[:2]: read_lesson(path) for path in paths}


def parted(minutes: Sequence[int], parts: int) -> list[int]:
    """How many lessons each part gets, in their order, so that the parts take about equally long.

    The sum of the squares of their minutes is the least possible. Raises ValueError with more parts than lessons.
    """
    if not 1 <= parts <= len(minutes):
        raise ValueError(f"{len(minutes)} lessons cannot be divided into {parts} weeks")
    best = {0: (0, [])}  # from the number of lessons that are placed to the least cost, and how
    for left in range(parts - 1, -1, -1):
        longer: dict[int, tuple[int, list[int]]] = {}
        for placed, (cost, sizes) in best.items():
            for end in range(placed + 1, len(minutes) - left + 1):
                total = cost + sum(minutes[placed:end]) ** 2
                if end not in longer or total < longer[end][0]:
                    longer[end] = (total, [*sizes, end - placed])
        best = longer
    return best[len(minutes)][1]


def make_weeks(plan: Plan, weeks: int, start: datetime.date, known: dict[str, Lesson]) -> list[Week]:
    """The weeks of a term. Raises CannotStart for a number of weeks that the plan does not fit into."""
    if not plan.least <= weeks <= plan.most:
        raise CannotStart(f"This plan takes {plan.least} to {plan.most} weeks, not {weeks}. Choose another, or --plan.")
    taught = [known[number] for number in plan.lessons]
    sizes = parted([lesson.minutes for lesson in taught], min(weeks - plan.project, len(taught)))
    sizes += [0] * (weeks - len(sizes))
    found: list[Week] = []
    for index, size in enumerate(sizes):
        these, taught = tuple(taught[:size]), taught[size:]
        last = [lesson.number for lesson in these if lesson.assignment][-1:]
        due = found[-1].out if found else ""
        milestone = dict(PROJECT).get(weeks - 1 - index, "") if plan.project else ""
        first = start + datetime.timedelta(weeks=index)
        found.append(Week(index + 1, first, these, "".join(last), due, milestone))
    return found


def syllabus(plan: Plan, weeks: Sequence[Week]) -> str:
    """The term as Markdown: a table of weeks, each lesson with its objectives and reading, and the prerequisites."""
    used = [lesson for week in weeks for lesson in week.lessons]
    last = weeks[-1].first + datetime.timedelta(days=6)
    lines = [f"# {plan.title}", "", f"{len(weeks)} weeks, {weeks[0].first} to {last}.", ""]
    lines += ["| week | begins | lessons | minutes | assignment out | due on the first day | hours of work |"]
    lines += ["|---|---|---|---|---|---|---|"]
    for week in weeks:
        names = "; ".join(f"{lesson.number} {lesson.title}" for lesson in week.lessons) or "project"
        minutes = " + ".join(str(lesson.minutes) for lesson in week.lessons) or "–"
        cells = (week.number, week.first, names, minutes, week.out or "–", week.due or "–", week.hours)
        lines.append(f"| {' | '.join(map(str, cells))} |")
    after = weeks[-1].first + datetime.timedelta(weeks=1)
    lines += ["", f"The last assignment is due on {after}."] if weeks[-1].out else []
    lines += ["", "An assignment takes two to three hours. Where a week has two lessons, the assignment is that of the"]
    lines += ["later one; that of the other is there for whoever wants more practice."]
    if plan.project:
        lines += ["", "## The project", ""]
        for week in (week for week in weeks if week.project):
            by = week.first + datetime.timedelta(days=6)
            lines.append(f"- by {by} (week {week.number}): {week.project.removeprefix('Project: ')}")
        lines += ["", "Briefs, template and rubric: docs/capstone.md."]
    lines += ["", "## Week by week"]
    for week in (week for week in weeks if week.lessons):
        lines += ["", f"### Week {week.number}, from {week.first}"]
        for lesson in week.lessons:
            lines += ["", *_described(lesson)]
    return "\n".join([*lines, "", *_prerequisites(used)]) + "\n"


def _described(lesson: Lesson) -> Iterator[str]:
    yield f"**Lesson {lesson.number}, {lesson.title}** ({lesson.minutes} minutes). Afterwards students can"
    yield ""
    yield from (f"- {objective};" for objective in lesson.objectives[:-1])
    yield f"- {lesson.objectives[-1]}."
    if lesson.reading:
        yield ""
        yield "Reading:"
        yield ""
        yield from (f"- {one}" for one in lesson.reading)


def _prerequisites(used: Sequence[Lesson]) -> Iterator[str]:
    """The graph of what needs what, in Mermaid's language."""
    numbers = {lesson.number for lesson in used}
    yield "## What needs what"
    yield ""
    yield "A full arrow leads to a lesson that needs the other, a dotted one to a lesson that it helps."
    if missing := sorted({need for lesson in used for need in lesson.needs} - numbers):
        yield ""
        yield f"Needed, and not part of this plan: lesson {', '.join(missing)}. Students should know what is in it."
    yield from ("", "```mermaid", "graph LR")
    yield from (f'  L{lesson.number}["{lesson.number} {lesson.title}"]' for lesson in used)
    for lesson in used:
        yield from (f"  L{need} --> L{lesson.number}" for need in lesson.needs if need in numbers)
        yield from (f"  L{other} -.-> L{lesson.number}" for other in lesson.helps if other in numbers)
    yield "```"


def workshop(start: datetime.date, known: dict[str, Lesson]) -> tuple[str, list[Event]]:
    """Two days as Markdown and as events: lectures by the slides, and the sections of lessons that fit the time."""
    lines = ["# A workshop of two days: from a first network to GPT", "", f"{start} and the day after.", ""]
    lines += [
        "Lesson 01 is not part of it: participants should have trained a network before. Everybody needs a laptop"
    ]
    lines += ["on which `course doctor` shows no red line."]
    events = []
    for session in WORKSHOP:
        date, lesson = start + datetime.timedelta(days=session.day - 1), known[session.lesson]
        if not events or events[-1].first != date:
            lines += ["", f"## {date}", "", "| from | to | what |", "|---|---|---|"]
        opening = datetime.datetime.combine(date, datetime.time.fromisoformat(session.start))
        closing = opening + datetime.timedelta(minutes=session.minutes)
        if session.kind == "lecture":
            what = (
                f"Lecture {lesson.number}, {lesson.title} (`course slides {lesson.number} --minutes {session.minutes}`)"
            )
        else:
            parts = ", ".join(sections_for(lesson, session.minutes))
            what = f"Practical on lesson {lesson.number}, {lesson.title}: {parts}"
        lines.append(f"| {session.start} | {closing:%H:%M} | {what} |")
        events.append(
            Event(
                f"{session.kind.capitalize()} {lesson.number}, {lesson.title}", date, 1, session.start, session.minutes
            )
        )
    lines += [
        "",
        "Afterwards: the rest of the lessons, and assignments 05 and 08. Answers to questions belong into the breaks.",
    ]
    used = [known[number] for number in sorted({session.lesson for session in WORKSHOP})]
    return "\n".join([*lines, "", *_prerequisites(used)]) + "\n", events


def sections_for(lesson: Lesson, minutes: int) -> list[str]:
    """The lesson's first sections that fit the time; the idea is left out where a lecture tells it."""
    told = any(session.kind == "lecture" and session.lesson == lesson.number for session in WORKSHOP)
    chosen: list[str] = []
    for title, takes in lesson.sections:
        if told and title == "The idea":
            continue
        if takes > minutes:
            break
        chosen.append(title)
        minutes -= takes
    return chosen


def events_of(weeks: Sequence[Week]) -> Iterator[Event]:
    """Weeks, assignments out and due, and the milestones of the project."""
    for week in weeks:
        names = ", ".join(f"{lesson.number} {lesson.title}" for lesson in week.lessons) or "project"
        yield Event(f"Week {week.number}: {names}", week.first, days=7)
        if week.out:
            yield Event(f"Assignment {week.out} out", week.first)
            yield Event(f"Assignment {week.out} due", week.first + datetime.timedelta(weeks=1))
        if week.project:
            yield Event(f"{week.project} (due)", week.first + datetime.timedelta(days=6))


def write_syllabus(name: str, *, weeks: int | None, start: str, to: Path) -> int:
    """Writes syllabus.md and syllabus.ics for a plan, says what they hold, and returns the exit code."""
    if name not in (*PLANS, "workshop"):
        raise CannotStart(f"There is no plan {name!r}. There are: {', '.join(PLANS)}, workshop.")
    try:
        first = datetime.date.fromisoformat(start)
    except ValueError as problem:
        raise CannotStart(f"{start!r} is no date; write the first day like 2027-02-01.") from problem
    known = read_lessons()
    if name == "workshop":
        if weeks is not None:
            raise CannotStart("The workshop takes two days: leave out --weeks.")
        text, events = workshop(first, known)
        told = f"Workshop: two days from {first}, {len(events)} sessions"
    else:
        plan = PLANS[name]
        term = make_weeks(plan, plan.weeks if weeks is None else weeks, first, known)
        text, events = syllabus(plan, term), list(events_of(term))
        out = sum(bool(week.out) for week in term)
        told = f"{plan.title}: {len(term)} weeks from {first}, {len(plan.lessons)} lessons, {out} assignments"
    try:
        to.mkdir(parents=True, exist_ok=True)
        (to / "syllabus.md").write_text(text, encoding="utf-8")
        (to / "syllabus.ics").write_text(calendar(events), encoding="utf-8", newline="")
    except OSError as problem:
        raise CannotStart(f"The syllabus cannot be written to {to}: {problem.strerror or problem}.") from problem
    print(f"{told}\nWritten: {to / 'syllabus.md'} and {to / 'syllabus.ics'}")
    return 0
