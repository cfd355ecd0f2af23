"""`course exam`: writes a paper with its solutions, or checks the banks."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from course_lib.data.place import CannotStart, course_folder
from course_lib.teaching.exams import check, latex, markdown, moodle, qti
from course_lib.teaching.exams.bank import Question, read_bank
from course_lib.teaching.exams.paper import Paper, draw_paper


def _markdown(paper: Paper, stem: Path) -> list[Path]:
    return [
        _written(stem.with_suffix(".md"), markdown.exam(paper)),
        _written(_beside(stem, "_solutions.md"), markdown.solutions(paper)),
    ]


def _latex(paper: Paper, stem: Path) -> list[Path]:
    return [
        _written(stem.with_suffix(".tex"), latex.exam(paper)),
        _written(_beside(stem, "_solutions.tex"), latex.solutions(paper)),
    ]


def _moodle(paper: Paper, stem: Path) -> list[Path]:
    if by_hand := moodle.marks_by_hand(paper):
        numbers = ", ".join(map(str, by_hand))
        print(f"Moodle counts a mark for each gap. In the quiz, set the maximum mark of these questions: {numbers}.")
    return [
        _written(_beside(stem, "_moodle.xml"), moodle.exam(paper)),
        _written(_beside(stem, "_solutions.md"), markdown.solutions(paper)),
    ]


def _qti(paper: Paper, stem: Path) -> list[Path]:
    qti.write(paper, _beside(stem, "_qti.zip"))
    return [_beside(stem, "_qti.zip"), _written(_beside(stem, "_solutions.md"), markdown.solutions(paper))]


FORMATS: dict[str, Callable[[Paper, Path], list[Path]]] = {  # each writes the exam and its solutions, and says where
    "md": _markdown,
    "tex": _latex,
    "moodle": _moodle,
    "qti": _qti,
}


def lessons_meant(text: str) -> list[str]:
    """The numbers of lessons in "03-08", "5" or "01,03-05". Raises CannotStart if it names none."""
    found: set[int] = set()
    for part in text.split(","):
        ends = re.fullmatch(r"\s*(\d{1,2})(?:\s*-\s*(\d{1,2}))?\s*", part)
        first, last = (int(ends[1]), int(ends[2] or ends[1])) if ends else (1, 0)
        if first > last:
            raise CannotStart(f"{text!r} names no lessons; write 05, 03-08 or 01,03-05.")
        found.update(range(first, last + 1))
    return [f"{number:02}" for number in sorted(found)]


def banks(lessons: Sequence[str], folder: Path | None = None) -> list[Path]:
    """The files of the banks of these lessons. Raises CannotStart for a lesson that has none."""
    folder = folder or course_folder() / "exams"
    if not folder.is_dir():
        raise CannotStart("The folder exams, with the banks of questions, is for instructors, and not in this copy.")
    there = {path.stem for path in folder.glob("[0-9][0-9].md")}
    if missing := [lesson for lesson in lessons if lesson not in there]:
        has = ", ".join(sorted(there)) or "none yet"
        raise CannotStart(f"Lesson {', '.join(missing)} has no bank of questions. These have one: {has}.")
    return [folder / f"{lesson}.md" for lesson in lessons]


def write_exam(lessons: str, *, points: int, seed: int, form: str, to: Path, folder: Path | None = None) -> int:
    """Writes the paper of a seed and its solutions into a folder, says what it holds, and returns the exit code."""
    if form not in FORMATS:
        raise CannotStart(f"There is no format {form!r}. There are: {', '.join(FORMATS)}.")
    questions: list[Question] = []
    try:
        for path in banks(lessons_meant(lessons), folder):
            questions += read_bank(path)
        paper = draw_paper(questions, points, seed)
    except ValueError as problem:
        raise CannotStart(f"{str(problem)[:1].upper()}{str(problem)[1:].removesuffix('.')}.") from problem
    first, last = paper.lessons[0], paper.lessons[-1]
    gapless = len(paper.lessons) == int(last) - int(first) + 1
    named = "_".join(paper.lessons) if not gapless else f"{first}-{last}" if last > first else first
    stem = to / f"exam_{named}_seed{seed}"
    try:
        to.mkdir(parents=True, exist_ok=True)
        written, solutions = FORMATS[form](paper, stem)
    except OSError as problem:
        raise CannotStart(f"The exam cannot be written to {to}: {problem.strerror or problem}.") from problem
    print(f"{markdown.title(paper)}, {markdown.facts(paper)}, {len(paper.items)} questions")
    for lesson in paper.lessons:
        items = [item for item in paper.items if item.question.lesson == lesson]
        kinds = ", ".join(item.question.kind for item in items)
        print(f"  {lesson}  {sum(item.question.points for item in items):>3} points  {kinds or 'no question'}")
    print(f"Written: {written}\nFor those who mark: {solutions}")
    return 0


def check_banks(lessons: str | None = None, folder: Path | None = None) -> int:
    """Checks the banks of some lessons, or all that there are; prints each slip and returns 1 if there is one."""
    folder = folder or course_folder() / "exams"
    names = lessons_meant(lessons) if lessons else sorted(path.stem for path in folder.glob("[0-9][0-9].md"))
    wrong = 0
    for path in banks(names, folder):
        slips = check.slips_of(path, taken=page_questions(path.stem))
        wrong += bool(slips)
        print("\n".join(slips) if slips else f"{path.name}: {len(read_bank(path))} questions, all well")
    return int(wrong > 0)


def page_questions(lesson: str) -> list[str]:
    """The texts of the questions on a lesson's page, the paragraph below each heading."""
    path = Path(__file__).parents[2] / "lessons" / f"lesson_{lesson}" / "questions.md"
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    return [found.strip() for found in re.findall(r"^## .+\n+(.+)", text, flags=re.MULTILINE)]


def _written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def _beside(stem: Path, ending: str) -> Path:
    return stem.with_name(f"{stem.name}{ending}")
