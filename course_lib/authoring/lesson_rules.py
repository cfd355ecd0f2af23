"""The rules that every lesson notebook keeps; each answers with one sentence for each violation.

A heading cell tagged `part:<name>` opens a part of the lesson. The notebook's metadata says what it is:

    "course": {"lesson": "05", "kind": "lesson", "minutes": 75, "at_least": {"widgets": 3}}
"""

import ast
import io
import os
import re
import tokenize
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from nbformat import NotebookNode

from course_lib.authoring.stamps import NOT_COMPARED, PIXELS, code_cells, stamp_problems
from course_lib.commands.files import KERNELSPEC, MAX_BYTES, WIDGET_VIEW, read_notebook

LESSON_PARTS = {  # in the order in which a lesson opens them
    "objectives": "what the learner will be able to do, and how long it takes",
    "idea": "the idea in pictures",
    "mathematics": "the mathematics with every symbol named",
    "implementation": "the real implementation, shown from course_lib",
    "experiment": "the experiment, predicted before it runs",
    "widget": "a widget to play with",
    "questions": "self-test questions with explained answers",
    "exercises": "exercises with instant checks",
    "practice": "what went wrong in practice",
    "paper": "the paper's own numbers beside ours",
    "assignment": "the assignment",
    "reading": "where to read on",
}
START_PARTS = {  # of lesson 00, in any order
    "objectives": "what the course teaches, and how long this lesson takes",
    "idea": "architectures, parameters and their cost",
    "way": "how a lesson works",
    "map": "the map of the course",
    "machine": "checking the machine",
    "help": "where help is",
    "progress": "how progress is kept",
}

# A lesson may ask more of itself in its metadata under "at_least", never less.
AT_LEAST = {"quizzes": 8, "predictions": 4, "exercises": 4, "widgets": 1}
COUNTED_CALLS = {  # an exercise needs both: its task and its check
    "quizzes": ("quiz",),
    "predictions": ("predict",),
    "exercises": ("exercise", "check"),
}

MINUTES = (60, 90)
MAX_CODE_LINE = 60  # characters; longer lines are cut off on slides
IGNORE = "nbval-ignore-output"
NBVAL_MARK = re.compile(r"raises-exception|(nbval|pytest.validate)[-_].*", re.IGNORECASE)

PICTURES = ("image/png", "image/jpeg", "image/svg+xml")
MACHINE_PATH = re.compile(r"(?<![\w.:/~-])/(?:work|root|home|tmp|Users)/[\w.-]+|\b[A-Z]:\\+Users\b")
ADDRESS = re.compile(r"\b0x[0-9a-f]{6,}\b")
LONG_NUMBER = re.compile(r"(?<![\w.])(?<!arXiv )\d+\.\d{5,}")  # an arXiv number is no measurement
MARKDOWN_IMAGE = re.compile(r"!\[([^\]]*)\]\(([^)]*)\)")
HTML_IMAGE = re.compile(r"<img\b[^>]*>", re.IGNORECASE)
SVG_IMAGE = re.compile(r"<svg\b[^>]*>", re.IGNORECASE)
HTML_ALT = re.compile(r"""\balt\s*=\s*(?:"([^"]*)"|'([^']*)')""", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Lesson:
    """A lesson notebook as it is stored."""

    path: Path
    notebook: NotebookNode

    @property
    def course(self) -> dict:
        """What the notebook's metadata say about the lesson."""
        return self.notebook.metadata.get("course", {})

    @property
    def is_start(self) -> bool:
        """Whether this is lesson 00, which has parts of its own and no exercises."""
        return self.course.get("kind") == "start"


def read_lesson(path: str | os.PathLike) -> Lesson:
    """The lesson in a notebook file. Raises ValueError if the file is no notebook."""
    return Lesson(path=Path(path), notebook=read_notebook(path))


def violations(lesson: Lesson) -> list[str]:
    """Everything that the lesson does not keep."""
    return [sentence for rule in RULES for sentence in rule(lesson)]


# ---------------------------------------------------------------------------------------- the file


def has_a_lesson_name(lesson: Lesson) -> list[str]:
    """NN_name.ipynb, with the lesson's number in the metadata too."""
    match = re.fullmatch(r"(\d\d)_[a-z0-9]+(?:_[a-z0-9]+)*\.ipynb", lesson.path.name)
    if not match:
        return [f"the file is named {lesson.path.name!r}; a lesson is named like '05_attention.ipynb'"]
    number, kind = lesson.course.get("lesson"), lesson.course.get("kind")
    found = []
    if number != match[1]:
        found.append(f"course.lesson in the metadata is {number!r}; the file's name says {match[1]!r}")
    expected = "start" if match[1] == "00" else "lesson"
    if kind != expected:
        found.append(f"course.kind in the metadata is {kind!r}; for lesson {match[1]} it is {expected!r}")
    return found


def is_small(lesson: Lesson) -> list[str]:
    """At most 1.5 MB."""
    size = lesson.path.stat().st_size
    if size <= MAX_BYTES:
        return []
    return [f"the file has {size / 1e6:.2f} MB; {MAX_BYTES / 1e6:.1f} MB is the most"]


def runs_on_the_usual_kernel(lesson: Lesson) -> list[str]:
    """Kernelspec python3, which every installation has."""
    name = lesson.notebook.metadata.get("kernelspec", {}).get("name")
    if name == KERNELSPEC["name"]:
        return []
    return [f"the kernel is {name!r}; it should be {KERNELSPEC['name']!r}"]


def outputs_are_of_this_code(lesson: Lesson) -> list[str]:
    """The stamp fits: the stored outputs were made by the present code and not touched since."""
    return [f"{problem} (build the notebook)" for problem in stamp_problems(lesson.notebook)]


def was_run_from_top_to_bottom(lesson: Lesson) -> list[str]:
    """Execution counts 1, 2, 3, ...: nbval does not compare a cell that has none."""
    counts = [cell.execution_count for cell in code_cells(lesson.notebook)]
    if counts == list(range(1, len(counts) + 1)):
        return []
    return [f"the execution counts are {counts}; one run from top to bottom numbers the cells 1, 2, 3, ..."]


# ---------------------------------------------------------------------------------------- the lesson's way


def has_every_part_in_order(lesson: Lesson) -> list[str]:
    """Each part opens with a tagged heading, the first ones of each kind in the order of the lesson's way."""
    required = START_PARTS if lesson.is_start else LESSON_PARTS
    found, first = [], {}
    for index, cell in enumerate(lesson.notebook.cells):
        where = _where(lesson, index)
        for name in _parts_opened_by(cell):
            first.setdefault(name, index)
            if name not in required:
                found.append(f"{where} is tagged 'part:{name}'; the parts are {', '.join(required)}")
            if cell.cell_type != "markdown" or not re.match(r"#+ \S", cell.source):
                found.append(f"{where} is tagged 'part:{name}' but does not begin with a heading")
    found += [
        f"the part '{name}' is missing ({meaning}): tag its heading 'part:{name}'"
        for name, meaning in required.items()
        if name not in first
    ]
    if not lesson.is_start:
        present = [name for name in required if name in first]
        for before, after in zip(present, present[1:], strict=False):
            if first[before] > first[after]:
                found.append(f"part '{after}' comes before '{before}'; the order is {', '.join(required)}")
    return found


def says_how_long_it_takes(lesson: Lesson) -> list[str]:
    """Minutes in the metadata, the same number in the objectives, 60 to 90 for a lesson."""
    minutes = lesson.course.get("minutes")
    if not isinstance(minutes, int):
        return [f"course.minutes in the metadata is {minutes!r}; it says how many minutes a learner needs"]
    found = []
    if not lesson.is_start and not MINUTES[0] <= minutes <= MINUTES[1]:
        found.append(f"course.minutes is {minutes}; a lesson takes {MINUTES[0]} to {MINUTES[1]} minutes")
    text = "\n".join(cell.source for cell in _part(lesson, "objectives") if cell.cell_type == "markdown")
    if not re.search(rf"\b{minutes}\s+minutes\b", text):
        found.append(f"the part 'objectives' should tell the learner that the lesson takes {minutes} minutes")
    return found


def has_enough_to_do(lesson: Lesson) -> list[str]:
    """Enough quizzes, predictions, exercises and widgets."""
    if lesson.is_start:
        return []
    found = []
    for name, number in _demands(lesson).items():
        if number < AT_LEAST[name]:
            found.append(f"course.at_least.{name} is {number}; {AT_LEAST[name]} is the least")
        if (present := count_of(lesson, name)) < number:
            calls = " and ".join(f"{call}('...')" for call in COUNTED_CALLS.get(name, ()))
            how = f"different names in {calls}" if calls else "code cells tagged 'widget'"
            found.append(f"the lesson has {present} {name}; {number} is the least, counted as {how}")
    return found


def count_of(lesson: Lesson, name: str) -> int:
    """How many quizzes, predictions, exercises or widgets the lesson has."""
    cells = code_cells(lesson.notebook)
    if name == "widgets":
        return sum("widget" in _tags(cell) for cell in cells)
    named = [{item for cell in cells for item in _names_in(cell.source, call)} for call in COUNTED_CALLS[name]]
    return len(set.intersection(*named))


def _demands(lesson: Lesson) -> dict[str, int]:
    return AT_LEAST | {name: n for name, n in lesson.course.get("at_least", {}).items() if name in AT_LEAST}


def predicts_before_the_first_experiment(lesson: Lesson) -> list[str]:
    """A learner commits to an answer before a result is on the page."""
    if lesson.is_start:
        return []
    for cell in _part(lesson, "experiment"):
        if cell.cell_type == "code" and "predict" in _called(cell.source):
            return []
        if cell.get("outputs"):
            return ["the part 'experiment' shows an output before its first predict(...)"]
    return ["the part 'experiment' has no predict(...)"]


def shows_the_real_implementation(lesson: Lesson) -> list[str]:
    """The source is read from course_lib (a call such as show_source), never copied into the notebook."""
    found = []
    if not lesson.is_start:
        code = [cell.source for cell in _part(lesson, "implementation") if cell.cell_type == "code"]
        if not any("source" in name for source in code for name in _called(source)):
            found.append("the part 'implementation' shows no source from course_lib, as show_source(...) does")
    library = _library_definitions()
    for index, cell in _code(lesson):
        for node in _definitions(cell.source):
            if (module := library.get(_without_docstrings(node))) is not None:
                found.append(f"{_where(lesson, index)} copies {node.name} of {module}: show it")
    return found


def _library_definitions() -> dict[str, str]:
    """Each function and class of course_lib, without docstrings, and the module in which it stands."""
    root = Path(__file__).parents[1]
    return {
        _without_docstrings(node): path.relative_to(root.parent).with_suffix("").as_posix().replace("/", ".")
        for path in sorted(root.rglob("*.py"))
        for node in _definitions(path.read_text(encoding="utf-8"))
    }


def _definitions(source: str) -> Iterator[ast.FunctionDef | ast.ClassDef]:
    """Functions and classes of more than one statement: a one-liner may well be written twice."""
    for node in _nodes(source):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and len(_body(node)) > 1:
            yield node


def _body(node: ast.AST) -> list[ast.stmt]:
    has_docstring = ast.get_docstring(node, clean=False) is not None
    return node.body[has_docstring:]


def _without_docstrings(node: ast.AST) -> str:
    # The signature stays out: a copy is a copy under other annotations too.
    kinds = ast.FunctionDef | ast.ClassDef
    return "\n".join(
        _without_docstrings(child) if isinstance(child, kinds) else ast.dump(child) for child in _body(node)
    )


# ---------------------------------------------------------------------------------------- code cells


def code_is_plain_python(lesson: Lesson) -> list[str]:
    """No magics, no shell commands, no empty code cells: the same code runs in a script and on Windows."""
    found = []
    for index, cell in _code(lesson):
        if not cell.source.strip():
            found.append(f"{_where(lesson, index)} is empty")
            continue
        try:
            ast.parse(cell.source)
        except SyntaxError as error:
            found.append(f"{_where(lesson, index)}, line {error.lineno} is not plain Python: {error.msg}")
    return found


def code_fits_a_slide(lesson: Lesson) -> list[str]:
    """No line of code longer than 60 characters."""
    return [
        f"{_where(lesson, index)}, line {number} has {len(line)} characters; {MAX_CODE_LINE} fit on a slide"
        for index, cell in _code(lesson)
        for number, line in enumerate(cell.source.splitlines(), start=1)
        if len(line) > MAX_CODE_LINE
    ]


def no_line_ends_in_a_semicolon(lesson: Lesson) -> list[str]:
    """A trailing semicolon hides an output from the learner and breaks nbval's comparison."""
    found = []
    for index, cell in _code(lesson):
        tokens = _tokens(cell.source)
        for token, following in zip(tokens, tokens[1:], strict=False):
            ends = (tokenize.NEWLINE, tokenize.COMMENT, tokenize.NL, tokenize.ENDMARKER)
            if token.string == ";" and following.type in ends:
                found.append(f"{_where(lesson, index)}, line {token.start[0]} ends in a semicolon")
    return found


def only_output_may_be_ignored(lesson: Lesson) -> list[str]:
    """No mark for nbval but the tag nbval-ignore-output, and that on at most one code cell in ten."""
    found = []
    for index, cell in _code(lesson):
        comments = [token.string for token in _tokens(cell.source) if token.type == tokenize.COMMENT]
        for mark in [*_tags(cell), *comments]:
            if mark != IGNORE and NBVAL_MARK.fullmatch(mark.lstrip("# ").rstrip()):
                found.append(f"{_where(lesson, index)} carries {mark!r}; only the tag {IGNORE!r} is allowed")
    total = len(list(_code(lesson)))
    ignored = [index for index, _ in _ignored(lesson)]
    if 10 * len(ignored) > total:
        found.append(f"{len(ignored)} of {total} code cells are tagged {IGNORE!r}; at most one in ten may be")
    return found


def ignored_cells_are_followed_by_a_claim(lesson: Lesson) -> list[str]:
    """What nbval does not compare, the next code cell asserts."""
    return [
        f"{_where(lesson, index)} is tagged {IGNORE!r}, but no claim(...) follows in the next"
        for index, following in _ignored(lesson)
        if following is None or not _claims(following.source)
    ]


def _ignored(lesson: Lesson) -> Iterator[tuple[int, NotebookNode | None]]:
    """Index of each code cell tagged nbval-ignore-output, and the code cell after it."""
    cells = list(_code(lesson))
    followers = [cell for _, cell in cells[1:]] + [None]
    for (index, cell), following in zip(cells, followers, strict=True):
        if IGNORE in _tags(cell):
            yield index, following


def _claims(source: str) -> bool:
    return "claim" in _called(source) or any(isinstance(node, ast.Assert) for node in _nodes(source))


# ---------------------------------------------------------------------------------------- outputs


def no_output_is_an_error(lesson: Lesson) -> list[str]:
    """No traceback and no warning is stored."""
    found = []
    for index, cell in _code(lesson):
        for output in cell.outputs:
            if output.output_type == "error":
                found.append(f"{_where(lesson, index)} ended in {output.ename}: {output.evalue}")
            elif output.output_type == "stream" and output.name == "stderr":
                found.append(f"{_where(lesson, index)} wrote to stderr: {output.text.strip()[:80]!r}")
    return found


def figures_carry_alt_text(lesson: Lesson) -> list[str]:
    """Whoever cannot see a figure is told what it shows: in outputs, in Markdown and in HTML."""
    found = []
    for index, cell in enumerate(lesson.notebook.cells):
        where = _where(lesson, index)
        if cell.cell_type == "markdown":
            texts = [cell.source]
        else:
            texts = [output.get("data", {}).get("text/html", "") for output in cell.get("outputs", [])]
        for image in (image for text in texts for image in _images_without_alt(text)):
            found.append(f"{where} shows an image without alt text: {image}")
        for output in cell.get("outputs", []):
            data, metadata = output.get("data", {}), output.get("metadata", {})
            for mime in PICTURES:
                if mime not in data:
                    continue
                alt = str(metadata.get(mime, {}).get("alt", "")).strip()
                if not alt:
                    found.append(f"{where} shows a figure without alt text; show(figure, alt=...) stores one")
                elif data.get("text/plain") != f"Figure: {alt}":
                    found.append(f"{where} shows a figure whose plain text is not 'Figure: <its alt text>'")
    return found


def _images_without_alt(text: str) -> Iterator[str]:
    for image in MARKDOWN_IMAGE.finditer(text):
        if not image[1].strip():
            yield f"![]({image[2][:40]})"
    for tag in HTML_IMAGE.findall(text):
        alt = HTML_ALT.search(tag)
        if alt is None or not (alt[1] or alt[2] or "").strip():
            yield tag[:60]
    for tag in SVG_IMAGE.findall(text):
        if "aria-label" not in tag and "aria-hidden" not in tag:
            yield tag[:60]


def names_no_place_on_a_machine(lesson: Lesson) -> list[str]:
    """No absolute path of the machine that built the notebook, in sources or outputs."""
    return [
        f"{_where(lesson, index)} names a place on one machine: {match[0]!r}"
        for index, text in [*_sources(lesson), *_output_texts(lesson)]
        for match in MACHINE_PATH.finditer(text)
    ]


def stored_text_can_be_repeated(lesson: Lesson) -> list[str]:
    """No memory addresses, at most four decimals where nbval compares, no random ids of widgets."""
    found = []
    if "widgets" in lesson.notebook.metadata:
        found.append("the metadata hold the state of widgets, with random ids (build the notebook)")
    for index, cell in _code(lesson):
        where = _where(lesson, index)
        for output in cell.outputs:
            data = output.get("data", {})
            if WIDGET_VIEW in data:
                found.append(f"{where} stores the view of a widget, with a random id (build the notebook)")
            text = "\n".join([output.get("text", ""), data.get("text/plain", "")])
            if match := ADDRESS.search(text):
                found.append(f"{where} shows a memory address, {match[0]}, which is another in each run")
            if IGNORE not in _tags(cell) and (match := LONG_NUMBER.search(text)):
                found.append(f"{where} shows {match[0]}; print at most 4 decimals")
    return found


RULES: tuple[Callable[[Lesson], list[str]], ...] = (
    has_a_lesson_name,
    is_small,
    runs_on_the_usual_kernel,
    outputs_are_of_this_code,
    was_run_from_top_to_bottom,
    has_every_part_in_order,
    says_how_long_it_takes,
    has_enough_to_do,
    predicts_before_the_first_experiment,
    shows_the_real_implementation,
    code_is_plain_python,
    code_fits_a_slide,
    no_line_ends_in_a_semicolon,
    only_output_may_be_ignored,
    ignored_cells_are_followed_by_a_claim,
    no_output_is_an_error,
    figures_carry_alt_text,
    names_no_place_on_a_machine,
    stored_text_can_be_repeated,
)


# ---------------------------------------------------------------------------------------- reading cells


def _where(lesson: Lesson, index: int) -> str:
    """A cell as its author finds it: its number, its kind and its first line."""
    cell = lesson.notebook.cells[index]
    first = next((line.strip() for line in cell.source.splitlines() if line.strip()), "empty")
    return f"cell {index + 1} ({cell.cell_type}, {first[:40]!r})"


def _tags(cell: NotebookNode) -> list[str]:
    return cell.metadata.get("tags", [])


def _parts_opened_by(cell: NotebookNode) -> list[str]:
    return [tag.removeprefix("part:") for tag in _tags(cell) if tag.startswith("part:")]


def _part(lesson: Lesson, name: str) -> list[NotebookNode]:
    """The cells of every part of that name: from its heading to the next part's."""
    cells, inside = [], False
    for cell in lesson.notebook.cells:
        if opened := _parts_opened_by(cell):
            inside = name in opened
        if inside:
            cells.append(cell)
    return cells


def _code(lesson: Lesson) -> Iterator[tuple[int, NotebookNode]]:
    return ((index, cell) for index, cell in enumerate(lesson.notebook.cells) if cell.cell_type == "code")


def _sources(lesson: Lesson) -> Iterator[tuple[int, str]]:
    return ((index, cell.source) for index, cell in enumerate(lesson.notebook.cells))


def _output_texts(lesson: Lesson) -> Iterator[tuple[int, str]]:
    for index, cell in _code(lesson):
        for output in cell.outputs:
            yield index, output.get("text", "")
            yield index, "\n".join(output.get("traceback", []))
            for mime, value in output.get("data", {}).items():
                if isinstance(value, str) and mime not in NOT_COMPARED:
                    yield index, PIXELS.sub("", value)


def _nodes(source: str) -> list[ast.AST]:
    try:
        return list(ast.walk(ast.parse(source)))
    except SyntaxError:
        return []  # code_is_plain_python reports it


def _called(source: str) -> list[str]:
    """The last names of everything called: `quiz` for quiz(...) and for classroom.quiz(...)."""
    return [_function_name(node) for node in _nodes(source) if isinstance(node, ast.Call)]


def _names_in(source: str, call: str) -> Iterator[str]:
    """What calls of a function name first: "bottleneck" for quiz("bottleneck", ...)."""
    for node in _nodes(source):
        if isinstance(node, ast.Call) and _function_name(node) == call and node.args:
            if isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str):
                yield node.args[0].value


def _function_name(node: ast.Call) -> str:
    return getattr(node.func, "id", None) or getattr(node.func, "attr", "")


def _tokens(source: str) -> list[tokenize.TokenInfo]:
    try:
        return list(tokenize.generate_tokens(io.StringIO(source).readline))
    except (tokenize.TokenError, SyntaxError):
        return []  # code_is_plain_python reports it
