"""`course slides`, `course handout` and `course lecture`: which files they write, and what they say."""

from pathlib import Path

import nbformat
from nbformat import NotebookNode

from course_lib.data.place import CannotStart, course_folder
from course_lib.lectures.deck import THEMES, write_deck
from course_lib.lectures.handout import write_handout
from course_lib.lectures.live import lecture
from course_lib.lectures.story import paths_of, slides_of


def write_slides(lesson: Path, *, path: int | None = None, theme: str = "light", to: Path | None = None) -> int:
    """Write the deck of one of a lesson's paths, the longest if none is named; returns an exit code.

    Raises CannotStart with a sentence that says what is wrong.
    """
    _check_theme(theme)
    notebook, name, path = _lesson(lesson, path)
    place = to or course_folder() / "build" / "lectures"
    file = place if place.suffix == ".html" else place / f"{name}.slides.html"
    size = write_deck(notebook, file, path=path, theme=theme)
    chosen = slides_of(notebook, path)
    minutes = sum(slide.minutes for slide in chosen)
    print(
        f"{file}\n{len(chosen)} slides, {minutes:g} minutes, {size / 1e6:.1f} MB. Open it in any browser, with or "
        "without a network: S shows the notes, T changes the theme, ? names all keys."
    )
    return 0


def write_handouts(lesson: Path, *, path: int | None = None, to: Path | None = None) -> int:
    """Write the hand-outs of a lesson; returns an exit code. Raises CannotStart with a sentence, as above."""
    notebook, name, path = _lesson(lesson, path)
    for file in write_handout(notebook, to or course_folder() / "build" / "lectures", name, path=path):
        print(file)
    return 0


def teach(
    lesson: Path, *, path: int | None = None, theme: str = "light", port: int | None = None, browser: bool = True
) -> int:
    """Serve the live slides of a lesson until they are stopped; returns an exit code. Raises CannotStart, as above."""
    _check_theme(theme)
    notebook, name, path = _lesson(lesson, path)
    return lecture(notebook, name, path=path, theme=theme, port=port, browser=browser)


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
