"""The site's first page: a playground that runs, and the lessons as pictures."""

import base64
import html
import re
from collections.abc import Mapping
from pathlib import Path

import nbformat

ROW = re.compile(r"^\| (\d\d) \| \[(.+?)\]\((.+?)\) \| (.+?) \| (.+?) \|$", re.MULTILINE)
PLAYGROUND = re.compile(r'<div class="course-playground" data-playground="dictionary".*</div>', re.DOTALL)
PICTURE = re.compile(
    r'<img alt="([^"]+)"[^>]*? class="(course-\w+)"[^>]*? src="data:image/(png|svg\+xml);base64,([^"]+)"'
)


def raw(text: str) -> str:
    """HTML in a page of Markdown."""
    return f"```{{raw}} html\n{text}\n```\n"


def playground(lessons: Mapping[str, Path]) -> str:
    """The dictionary of lesson 08 with its static form, as that lesson has stored it; nothing without the lesson."""
    stored = (PLAYGROUND.search(text) for path in lessons.values() for text in _outputs(path))
    found = next(filter(None, stored), None)
    return raw(found[0]) if found else ""


def gallery(readme: str, lessons: Mapping[str, Path], folder: Path) -> str:
    """A card for each lesson of the README's table that has a page: its first figure, its name, what one does in it.

    `lessons` are the notebooks by their paths in the course; the figures become files in `folder`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    cards = []
    for number, title, path, minutes, does in ROW.findall(readme):
        if path in lessons:
            figure = _figure(lessons[path], folder / number)
            page = path.removesuffix(".ipynb") + ".html"
            cards.append(
                f'<a class="lesson-card" href="{page}">{figure}<strong>{number} · {html.escape(title)}</strong>'
                f"<span>{html.escape(does[0].upper() + does[1:])}.</span><small>{minutes} minutes</small></a>"
            )
    return raw(f'<div class="lesson-cards">{"".join(cards)}</div>') if cards else ""


def _outputs(path: Path) -> list[str]:
    cells = nbformat.read(path, as_version=4).cells
    return [output.get("data", {}).get("text/html", "") for cell in cells for output in cell.get("outputs", [])]


def _figure(path: Path, stem: Path) -> str:
    """The first figure of a lesson with its alt text, written to a file."""
    match = next(filter(None, map(PICTURE.search, _outputs(path))), None)
    if match is None:
        return ""
    alt, kind, form, pixels = match.groups()
    file = stem.with_suffix(".png" if form == "png" else ".svg")
    file.write_bytes(base64.b64decode(pixels))
    return f'<img class="{kind}" src="_static/lessons/{file.name}" alt="{alt}" loading="lazy">'
