"""`course slides`, `course handout` and `course lecture`: which files they write, and what they say."""

from pathlib import Path

import nbformat
from nbformat import NotebookNode

from course_lib.data.place import CannotStart, course_folder
from course_lib.lectures.deck import THEMES, slideshow_of, write_slideshow
from course_lib.lectures.handout import write_handout
from course_lib.lectures.live import lecture
from course_lib.lectures.mine import read_mine
from course_lib.lectures.powerpoint import write_powerpoint
from course_lib.lectures.story import paths_of


def write_slides(
    lesson: Path,
    *,
    path: int | None = None,
    theme: str = "light",
    mine: Path | None = None,
    student: bool = False,
    pptx: bool = False,
    to: Path | None = None,
) -> int:
    """Write the deck of one of a lesson's paths, the longest if none is named; returns an exit code.

    `mine` is a lecturer's own file (`course_lib.lectures.mine`); with `student` there are neither notes nor answers,
    with `pptx` it is a PowerPoint file. Raises CannotStart with a sentence that says what is wrong.
    """
    _check_theme(theme)
    notebook, name, path = _lesson(lesson, path)
    kind, own = ".pptx" if pptx else ".html", read_mine(mine) if mine else None
    place = to or course_folder() / "build" / "lectures"
    file = place if place.suffix == kind else place / f"{name}{'.student' if student else ''}.slides{kind}"
    slideshow = slideshow_of(notebook, path=path, mine=own, student=student)
    size = (write_powerpoint if pptx else write_slideshow)(slideshow, file, theme=theme)
    how = (
        "Each slide is a picture with a title and notes that you can edit."
        if pptx
        else f"Open it in any browser, with or without a network: {'' if student else 'S shows the notes, '}"
        "T changes the theme, ? names all keys."
    )
    starts = [cell for cell in slideshow.cells if cell.metadata.slideshow.slide_type == "slide"]
    minutes = sum(cell.metadata.lecture["minutes"] for cell in starts)
    print(f"{file}\n{len(starts)} slides, {minutes:g} minutes, {size / 1e6:.1f} MB. {how}")
    return 0


def write_handouts(
    lesson: Path,
    *,
    path: int | None = None,
    mine: Path | None = None,
    student: bool = False,
    to: Path | None = None,
) -> int:
    """Write the hand-outs of a lesson; returns an exit code. Raises CannotStart with a sentence, as above."""
    notebook, name, path = _lesson(lesson, path)
    folder, own = to or course_folder() / "build" / "lectures", read_mine(mine) if mine else None
    for file in write_handout(notebook, folder, name, path=path, mine=own, student=student):
        print(file)
    return 0


def teach(
    lesson: Path,
    *,
    path: int | None = None,
    theme: str = "light",
    mine: Path | None = None,
    port: int | None = None,
    browser: bool = True,
) -> int:
    """Serve the live slides of a lesson until they are stopped; returns an exit code. Raises CannotStart, as above."""
    _check_theme(theme)
    notebook, name, path = _lesson(lesson, path)
    own = read_mine(mine) if mine else None
    return lecture(notebook, name, path=path, theme=theme, mine=own, port=port, browser=browser)


def _check_theme(theme: str) -> None:
    if theme not in THEMES:
        raise CannotStart(f"A deck is {' or '.join(THEMES)}, not {theme!r}.")


def _lesson(file: Path, path: int | None) -> tuple[NotebookNode, str, int]:
    """The notebook in a file, how the files made from it are called, and the path that is meant."""
    try:
        notebook = nbformat.read(file, as_version=4)
        offered = paths_of(notebook)
    except Exception as error:  # whatever is wrong with a file, the terminal shows a sentence
        raise CannotStart(f"The slides of {file.name} cannot be read: {error}") from error
    if not offered:
        raise CannotStart(
            f"{file.stem} has no slides yet. An author gives a lesson its slides in the metadata of its cells: "
            'docs/lecturing.md, "Writing the lecture of another lesson".'
        )
    path = offered[-1] if path is None else path
    if path not in offered:
        *shorter, longest = map(str, offered)
        lengths = f"{', '.join(shorter)} or {longest}" if shorter else longest
        raise CannotStart(f"The lecture of {file.stem} takes {lengths} minutes, not {path}.")
    return notebook, file.stem if path == offered[-1] else f"{file.stem}.{path}", path
