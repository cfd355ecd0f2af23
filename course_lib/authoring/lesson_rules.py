"""The rules that every lesson keeps; each answers with one sentence for each violation."""

import ast
import functools
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from course_lib.authoring.lesson_pages import (
    ITEMS,
    OPTIONAL,
    Lesson,
    called,
    claims,
    counts,
    listings,
    minutes,
    minutes_promised,
    nodes,
    plain_texts,
    read_lesson,
    sections,
    sections_opened_by,
    tags,
    visible_lines,
)
from course_lib.authoring.stamps import NOT_COMPARED, PIXELS, stamp_problems
from course_lib.classroom.cards import heading, number_sections
from course_lib.commands.files import KERNELSPEC, MAX_BYTES, WIDGET_VIEW

__all__ = ["RULES", "Lesson", "read_lesson", "violations"]

SECTIONS = 7
AT_MOST = {  # by edition
    2: {"cells": 70, "code cells": 38, "words": 2800, "lines of code": 240, "listings": 3, "claims": 10, "figures": 8},
    3: {"cells": 95, "code cells": 60, "words": 5600, "lines of code": 380, "listings": 3, "claims": 10, "figures": 10},
}
AT_LEAST = {  # lesson 00 says in its metadata, under "at_least", what it has of these
    "predictions": 3,
    "quizzes": 5,
    "quizzes that ask for a number": 2,
    "quizzes that ask for a bug": 1,
    "exercises": 3,
    "exercises that stretch": 1,
    "uses of the learner's code": 1,
    "widgets": 2,
    "playgrounds with goals": 1,
}
AT_LEAST_THIRD = AT_LEAST | {"quizzes": 6, "exercises": 4, "diagrams": 1, "models of the learner's own": 1}
CELL_LINES = {2: 15, 3: 25}  # by edition; what a slide shows is shorter and narrower: course_lib.lectures.rules
CELL_COLUMNS, LISTING_LINES = 88, 25
MINUTES = {"lesson": (75, 90), "start": (75, 90), "third": (205, 240)}  # at most, without what is optional and with it
TOLERANCE = 0.15  # between the minutes that a page promises and those that its length gives

IGNORE = "nbval-ignore-output"
NBVAL_MARK = re.compile(r"(?:# *)?(raises-exception|(nbval|pytest.validate)[-_].*)", re.IGNORECASE)
GIVES_AWAY = {"alt", "answer", "claims", "outcome", "why"}  # arguments that belong into the lesson's folder
MACHINE_TIME = re.compile(r"\b(seconds|milliseconds|ms|minutes?|CPU|GPU|clock|wall)\b|\d ?s\b")
LIST_ITEM = re.compile(r"\s*([-*+]|\d+[.)])\s")
SPACED_COLOUR = re.compile(r'style="[^"]*?(rgba?\([^),]*\))')
PICTURES = ("image/png", "image/jpeg", "image/svg+xml")
MACHINE_PATH = re.compile(r"(?<![\w.:/~-])/(?:work|root|home|tmp|Users)/[\w.-]+|\b[A-Z]:\\+Users\b")
ADDRESS = re.compile(r"\b0x[0-9a-f]{6,}\b")
PAPER = re.compile(r"(?<!\[)\barXiv\s+(\d{4}\.\d{4,5})")  # not yet the words of a link
LONG_NUMBER = re.compile(r"(?<![\w.])(?<!arXiv )\d+\.\d{5,}")  # an arXiv number is no measurement
MARKDOWN_IMAGE = re.compile(r"!\[\s*\]\([^)]*\)")
HTML_IMAGE = re.compile(r"<(?:img|svg)\b[^>]*>", re.IGNORECASE)
DESCRIBED = re.compile(r"""\b(alt|aria-label)\s*=\s*(["'])\s*(?!\2)\S|aria-hidden""", re.IGNORECASE)


def violations(lesson: Lesson) -> list[str]:
    """Everything that the lesson does not keep."""
    return [sentence for rule in RULES for sentence in rule(lesson)]


# ---------------------------------------------------------------------------------------- the file


def has_a_lesson_name(lesson: Lesson) -> Iterator[str]:
    """NN_name.ipynb, with the lesson's number and kind in the metadata and a page in the library."""
    match = re.fullmatch(r"(\d\d)(?:_[a-z0-9]+)+\.ipynb", lesson.path.name)
    if not match:
        yield f"the file is named {lesson.path.name!r}; a lesson is named like '05_attention.ipynb'"
        return
    wanted = {"lesson": match[1], "kind": "start" if match[1] == "00" else "lesson"}
    for key, value in wanted.items():
        if lesson.course.get(key) != value:
            yield f"course.{key} in the metadata is {lesson.course.get(key)!r}; for {lesson.path.name} it is {value!r}"
    if lesson.page is None:
        yield f"there is no `page` in course_lib.lessons.lesson_{match[1]}"


def is_small_and_runs_everywhere(lesson: Lesson) -> Iterator[str]:
    """At most 1.5 MB, for the kernel that every installation has."""
    if (size := lesson.path.stat().st_size) > MAX_BYTES:
        yield f"the file has {size / 1e6:.2f} MB; {MAX_BYTES / 1e6:.1f} MB is the most"
    if (name := lesson.notebook.metadata.get("kernelspec", {}).get("name")) != KERNELSPEC["name"]:
        yield f"the kernel is {name!r}; it should be {KERNELSPEC['name']!r}"


def outputs_are_of_this_code(lesson: Lesson) -> Iterator[str]:
    """The stamp fits, and one run numbered the cells: nbval does not compare a cell without a number."""
    yield from (f"{problem} (build the notebook)" for problem in stamp_problems(lesson.notebook))
    numbers = [cell.execution_count for _, cell in lesson.code()]
    if numbers != list(range(1, len(numbers) + 1)):
        yield f"the execution counts are {numbers}; one run from top to bottom numbers the cells 1, 2, 3, ..."


# ---------------------------------------------------------------------------------------- sections and what they hold


def has_its_sections_in_order(lesson: Lesson) -> Iterator[str]:
    """Opened and closed by its page, and for each section of the head card one heading, tagged with its number."""
    wanted = [name for name, _ in sections(lesson)]
    found = []
    for index, cell in enumerate(lesson.notebook.cells):
        for section in sections_opened_by(cell):
            found.append(section)
            if cell.cell_type != "markdown" or not re.match(r"#+ \S", cell.source):
                yield f"{lesson.where(index)} is tagged 'section:{section}' but does not begin with a heading"
    begun = {cell.source.split("\n")[0] for cell in lesson.notebook.cells if cell.cell_type == "markdown"}
    for number, section in number_sections(getattr(lesson.page, "sections", ())):
        if (title := f"## {heading(number, section)}") not in begun:
            yield f"no cell begins with {title!r}, to which the card leads"
    if found != wanted:
        yield f"the sections are tagged {', '.join(found)}; the page has {', '.join(wanted)}"
    if (numbered := len(wanted) - wanted.count(OPTIONAL)) < SECTIONS and not lesson.is_start:
        yield f"the page has {numbered} sections; a lesson has {SECTIONS}, and what is optional"
    methods = [call.method for call in lesson.calls]
    if lesson.is_start and methods[:1] == ["play"]:  # the course begins with a model, then says what a lesson is
        methods = methods[1:]
    if methods[:1] != ["open"] or methods.count("close") != 1:
        yield "the first call of the page is page.open(), and page.close() comes once"


def uses_what_the_page_has(lesson: Lesson) -> Iterator[str]:
    """Each item on the page stands in the lesson's folder, each one there on the page, in the section that says so."""
    for call, kind in ITEMS.items():
        used = set(lesson.named(call))
        if missing := sorted(used - set(lesson.items(kind))):
            yield f"page.{call}(...) is called for {', '.join(missing)}, but page.{kind} has no such name"
        if call != "use" and (idle := sorted(set(lesson.items(kind)) - used)):
            yield f"page.{kind} has {', '.join(idle)}, but no page.{call}(...) on the page asks for it"
    holds: dict[str, set] = {}
    for name, section in sections(lesson):
        holds.setdefault(name, set()).update(section.holds)
    for name, held in holds.items():
        here = [call for call in lesson.calls if call.section == name]
        asked = {call.name for call in here if call.method in ("predict", "quiz", "exercise")}
        if wrong := sorted((held - {call.name for call in here}) | (asked - held)):
            yield f"the page and what section {name} `holds` do not agree about {', '.join(wrong)}"


def predictions_before_it_shows(lesson: Lesson) -> Iterator[str]:
    """A learner commits to an answer before the result is on the page."""
    predictions = {call.name: call.cell for call in lesson.calls if call.method == "predict"}
    for call in lesson.calls:
        if call.method == "result" and predictions.get(call.name, -1) > call.cell:
            yield f"{lesson.where(call.cell)} shows the result {call.name!r} before its prediction"


# ---------------------------------------------------------------------------------------- budgets


def keeps_its_budgets(lesson: Lesson) -> Iterator[str]:
    """Not more than a sitting holds."""
    present = counts(lesson)
    for name, most in AT_MOST[lesson.edition].items():
        if present[name] > most:
            yield f"the page has {present[name]} {name}; {most} are the most"
    for index, length in listings(lesson):
        if length > LISTING_LINES:
            yield f"{lesson.where(index)} lists {length} lines; {LISTING_LINES} are the most"
    for index, cell in lesson.code():
        lines = visible_lines(cell)
        if len(lines) > (most := CELL_LINES[lesson.edition]):
            yield f"{lesson.where(index)} has {len(lines)} lines; {most} are the most"
        if (width := max(map(len, lines), default=0)) > CELL_COLUMNS:
            yield f"{lesson.where(index)} has a line of {width} characters; {CELL_COLUMNS} are the most"


def has_enough_to_do(lesson: Lesson) -> Iterator[str]:
    """Enough predictions, quizzes, exercises (with minutes on each) and widgets."""
    present = counts(lesson)
    needed = AT_LEAST_THIRD if lesson.edition == 3 else AT_LEAST
    for name, least in (lesson.course.get("at_least", {}) if lesson.is_start else needed).items():
        if present.get(name, 0) < least:
            yield f"the page has {present.get(name, 0)} {name}; {least} is the least"
    for name, task in lesson.items("tasks").items():
        if not getattr(task, "minutes", 0):
            yield f"the exercise {name!r} does not say how many minutes it takes"


def takes_as_long_as_it_says(lesson: Lesson) -> Iterator[str]:
    """As many minutes as the edition's pace gives, exercises as stated; within 15 %."""
    said = minutes_promised(lesson)
    kind = "start" if lesson.is_start else "third" if lesson.edition == 3 else "lesson"
    for found, most in zip((said, minutes_promised(lesson, optional=True)), MINUTES[kind], strict=True):
        if found > most:
            yield f"the page promises {found:.0f} minutes; {most} are the most"
    parts = minutes(lesson)
    if abs((total := sum(parts.values())) - said) > TOLERANCE * said:
        account = ", ".join(f"{name} {value:.0f}" for name, value in parts.items())
        yield f"the page takes {total:.0f} minutes ({account}), and promises {said:.0f}"


# ---------------------------------------------------------------------------------------- text


def no_markdown_is_swallowed(lesson: Lesson) -> Iterator[str]:
    """After a list or a table comes an empty line: another one would become part of it."""
    for index, cell in enumerate(lesson.notebook.cells):
        if cell.cell_type != "markdown":
            continue
        block = None
        for line in re.sub(r"```.*?```", "", cell.source, flags=re.DOTALL).splitlines():
            if not line.strip():
                block = None
            elif line.lstrip().startswith("|"):
                block = "table"
            elif LIST_ITEM.match(line):
                block = "list"
            elif block == "table" or (block == "list" and not line.startswith(" ")):
                yield f"{lesson.where(index)}: the {block} swallows {line[:40]!r}; leave a line empty before it"
                block = None


def headings_are_plain(lesson: Lesson) -> Iterator[str]:
    """No LaTeX in a heading: the table of contents and the tab show it raw."""
    for index, cell in enumerate(lesson.notebook.cells):
        if cell.cell_type == "markdown":
            for heading in re.findall(r"^#+ .*\$.*", cell.source, flags=re.MULTILINE):
                yield f"{lesson.where(index)} has LaTeX in the heading {heading[:60]!r}"


def claims_nothing_about_time(lesson: Lesson) -> Iterator[str]:
    """Seconds are shown and never asserted: a busy machine must not stop a lesson."""
    for index, text in claims(lesson):
        if match := MACHINE_TIME.search(text):
            yield f"{lesson.where(index)} claims something about machine time ({match[0]!r}): {text!r}"


# ---------------------------------------------------------------------------------------- code cells


def code_is_plain_python(lesson: Lesson) -> Iterator[str]:
    """No magics, no empty cells; no semicolon at an end, which hides an output and breaks nbval's comparison."""
    for index, cell in lesson.code():
        if not cell.source.strip():
            yield f"{lesson.where(index)} is empty"
        try:
            ast.parse(cell.source)
        except SyntaxError as error:
            yield f"{lesson.where(index)}, line {error.lineno} is not plain Python: {error.msg}"
        for number, line in enumerate(cell.source.splitlines(), start=1):
            if re.search(r";\s*(#.*)?$", line):
                yield f"{lesson.where(index)}, line {number} ends in a semicolon"


def code_gives_nothing_away(lesson: Lesson) -> Iterator[str]:
    """Alt texts, answers and outcomes stand in the lesson's folder, not in code that a learner sees."""
    for index, cell in lesson.code():
        if visible_lines(cell):
            keywords = {word.arg for node in nodes(cell.source) if isinstance(node, ast.Call) for word in node.keywords}
            for name in sorted(keywords & GIVES_AWAY):
                yield f"{lesson.where(index)} says `{name}=` in visible code; it belongs into the lesson's folder"


def a_watched_training_can_be_stopped(lesson: Lesson) -> Iterator[str]:
    """A loop that tells its steps to a display asks it whether to stop: otherwise "Stop here" is not shown."""
    for index, cell in lesson.code():
        shown = plain_texts(cell) if "show_source" in called(cell.source) else []
        if any("screen.update(" in text and "screen.stopped" not in text for text in (cell.source, *shown)):
            yield f"{lesson.where(index)} calls screen.update(...) and never asks for screen.stopped"


def copies_nothing_of_the_library(lesson: Lesson) -> Iterator[str]:
    """What the course implements is shown (show_source), never copied."""
    for index, cell in lesson.code():
        for name, body in _functions(cell.source):
            if body in _library():
                yield f"{lesson.where(index)} copies {name} of {_library()[body]}: show it"


@functools.cache
def _library() -> dict[str, str]:
    """The file in which each function of course_lib stands, by the function's code."""
    root = Path(__file__).parents[1]
    return {
        body: path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        for _, body in _functions(path.read_text(encoding="utf-8"))
    }


def _functions(source: str) -> Iterator[tuple[str, str]]:
    """Name and code of each function of more than one statement; its signature and docstring may be others."""
    for node in nodes(source):
        if isinstance(node, ast.FunctionDef):
            body = node.body[ast.get_docstring(node, clean=False) is not None :]
            if len(body) > 1:
                yield node.name, "\n".join(map(ast.dump, body))


def only_output_may_be_ignored(lesson: Lesson) -> Iterator[str]:
    """Of nbval's marks only the tag nbval-ignore-output, on one code cell in ten, and a claim beside each."""
    cells = list(lesson.code())
    ignored = [place for place, (_, cell) in enumerate(cells) if IGNORE in tags(cell)]
    for index, cell in cells:
        for mark in [*tags(cell), *re.findall(r"#.*", cell.source)]:
            if mark != IGNORE and NBVAL_MARK.fullmatch(mark.strip()):
                yield f"{lesson.where(index)} carries {mark!r}; only the tag {IGNORE!r} is allowed"
    if 10 * len(ignored) > len(cells):
        yield f"{len(ignored)} of {len(cells)} code cells are tagged {IGNORE!r}; at most one in ten may be"
    for place in ignored:
        beside = "\n".join(cell.source for _, cell in cells[max(place - 1, 0) : place + 2])
        if not {"claim", "result"} & set(called(beside)):
            yield f"{lesson.where(cells[place][0])} is tagged {IGNORE!r}, and no code cell beside it claims anything"


# ---------------------------------------------------------------------------------------- outputs


def no_output_is_an_error(lesson: Lesson) -> Iterator[str]:
    """No traceback and no warning is stored."""
    for index, cell in lesson.code():
        for output in cell.outputs:
            if output.output_type == "error":
                yield f"{lesson.where(index)} ended in {output.ename}: {output.evalue}"
            elif output.get("name") == "stderr":
                yield f"{lesson.where(index)} wrote to stderr: {output.text.strip()[:80]!r}"


def figures_carry_alt_text(lesson: Lesson) -> Iterator[str]:
    """Whoever cannot see a figure is told what it shows: in outputs, in Markdown and in HTML."""
    for index, cell in enumerate(lesson.notebook.cells):
        outputs = cell.get("outputs", [])
        html = (
            [cell.source] if cell.cell_type == "markdown" else [o.get("data", {}).get("text/html", "") for o in outputs]
        )
        images = [image for text in html for image in HTML_IMAGE.findall(text) if not DESCRIBED.search(image)]
        for image in images + (MARKDOWN_IMAGE.findall(cell.source) if cell.cell_type == "markdown" else []):
            yield f"{lesson.where(index)} shows an image without alt text: {image[:60]}"
        for output in outputs:
            for mime in set(PICTURES) & set(output.get("data", {})):
                alt = str(output.get("metadata", {}).get(mime, {}).get("alt", "")).strip()
                if not alt or output.data.get("text/plain") != f"Figure: {alt}":
                    yield f"{lesson.where(index)} shows a figure whose plain text is not 'Figure: <its alt text>'"


def colours_are_shown_before_a_run(lesson: Lesson) -> Iterator[str]:
    """JupyterLab drops `rgb(0 114 178/0.5)` from a style that it does not trust, and keeps `rgba(0,114,178,0.5)`."""
    for index, cell in enumerate(lesson.notebook.cells):
        for output in cell.get("outputs", []):
            if match := SPACED_COLOUR.search(output.get("data", {}).get("text/html", "")):
                yield f"{lesson.where(index)} has the colour {match[1]} in a style; write rgba(red,green,blue,alpha)"


def papers_are_linked(lesson: Lesson) -> Iterator[str]:
    """An arXiv number in a text leads to its paper."""
    for index, cell in enumerate(lesson.notebook.cells):
        for number in PAPER.findall(cell.source) if cell.cell_type == "markdown" else ():
            yield f"{lesson.where(index)} names arXiv {number} without a link to https://arxiv.org/abs/{number}"


def names_no_place_on_a_machine(lesson: Lesson) -> Iterator[str]:
    """No absolute path of the machine that built the notebook, in sources or outputs."""
    for index, cell in enumerate(lesson.notebook.cells):
        texts = [cell.source]
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            texts += [output.get("text", ""), *output.get("traceback", [])]
            texts += [PIXELS.sub("", str(value)) for mime, value in data.items() if mime not in NOT_COMPARED]
        for match in MACHINE_PATH.finditer("\n".join(texts)):
            yield f"{lesson.where(index)} names a place on one machine: {match[0]!r}"


def stored_text_can_be_repeated(lesson: Lesson) -> Iterator[str]:
    """No memory addresses, at most four decimals where nbval compares, no random ids of widgets."""
    if "widgets" in lesson.notebook.metadata:
        yield "the metadata hold the state of widgets, with random ids (build the notebook)"
    asking = {
        call.cell for call in lesson.calls if call.method in ("predict", "quiz", "exercise")
    }  # written, not measured
    for index, cell in lesson.code():
        if any(WIDGET_VIEW in output.get("data", {}) for output in cell.outputs):
            yield f"{lesson.where(index)} stores the view of a widget, with a random id (build the notebook)"
        text = "\n".join(plain_texts(cell))
        if match := ADDRESS.search(text):
            yield f"{lesson.where(index)} shows a memory address, {match[0]}, which is another in each run"
        if IGNORE not in tags(cell) and index not in asking and (match := LONG_NUMBER.search(text)):
            yield f"{lesson.where(index)} shows {match[0]}; print at most 4 decimals"


RULES: tuple[Callable[[Lesson], Iterator[str]], ...] = (
    has_a_lesson_name,
    is_small_and_runs_everywhere,
    outputs_are_of_this_code,
    has_its_sections_in_order,
    uses_what_the_page_has,
    predictions_before_it_shows,
    keeps_its_budgets,
    has_enough_to_do,
    takes_as_long_as_it_says,
    no_markdown_is_swallowed,
    headings_are_plain,
    claims_nothing_about_time,
    code_is_plain_python,
    code_gives_nothing_away,
    a_watched_training_can_be_stopped,
    copies_nothing_of_the_library,
    only_output_may_be_ignored,
    no_output_is_an_error,
    figures_carry_alt_text,
    colours_are_shown_before_a_run,
    papers_are_linked,
    names_no_place_on_a_machine,
    stored_text_can_be_repeated,
)
