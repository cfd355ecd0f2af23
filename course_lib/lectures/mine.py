"""A lecturer's own changes to the slides of a lesson, in a file of their own that outlives an upgrade of the course.

    title = "Images as sentences"              # all of these may be left out
    author = "Ada Lovelace"
    date = "3 December"
    logo = "logo.png"
    css = "mine.css"
    hide = ["Two relatives"]

    [[move]]
    slide = "The bill of attention"
    after = "An image is a sequence"           # or: before = "..."

    [[insert]]
    after = "The bill of attention"
    minutes = 3
    text = '''
    ## What we do with it here

    - a point, a formula $x^2$, ![what it shows](picture.png)
    '''
    notes = "What to say."

A slide is named by its heading, whose capitals and signs do not matter. Files are named from the folder of this one.
"""

import base64
import difflib
import html
import mimetypes
import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from course_lib.data.place import CannotStart
from course_lib.lectures.story import slug

KEYS = {"title": str, "author": str, "date": str, "logo": str, "css": str, "hide": list, "move": list, "insert": list}
PLACES = ("after", "before")
MOVE = {"slide": str, "after": str, "before": str}
INSERT = {"text": str, "notes": str, "minutes": (int, float), "after": str, "before": str}
PICTURE = re.compile(r"!\[([^\]]*)\]\(([^)\s]+)\)")
LINK = re.compile(r"\[([^\]]+)\]\(#/?([^)]+)\)")  # to another slide


@dataclass(frozen=True, kw_only=True)
class Mine:
    """What a file says; each of `moves` and `inserts` is a table of it, checked."""

    file: Path
    title: str = ""
    author: str = ""
    date: str = ""
    logo: str = ""  # a data address
    css: str = ""
    hide: Sequence[str] = ()
    move: Sequence[dict] = field(default_factory=list)
    insert: Sequence[dict] = field(default_factory=list)


def read_mine(file: Path) -> Mine:
    """Read such a file. Raises CannotStart with a sentence that says what is wrong and where."""
    try:
        said = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise CannotStart(f"{file} cannot be read: {getattr(error, 'strerror', None) or error}.") from error
    except tomllib.TOMLDecodeError as error:
        raise CannotStart(f"{file} is not TOML: {error}. docs/lecturing.md has an example.") from error
    _check(file, "it", said, KEYS)
    if not all(isinstance(key, str) for key in said.get("hide", ())):
        raise CannotStart(f'{file}: hide is a list of headings, as in hide = ["Two relatives"].')
    for name, keys in (("move", MOVE), ("insert", INSERT)):
        for number, table in enumerate(said.get(name, ()), start=1):
            where = f"[[{name}]] number {number}"
            _check(file, where, table, keys)
            if len(set(PLACES) & set(table)) != 1:
                raise CannotStart(f"{file}: {where} needs one of after and before, with the heading of a slide.")
            if name == "move" and "slide" not in table:
                raise CannotStart(f"{file}: {where} needs slide, the heading of the slide to move.")
            if name == "insert" and not re.match(r"\s*## \S", table.get("text", "")):
                raise CannotStart(f"{file}: the text of {where} begins with a heading, as in '## What we do here'.")
    if "logo" in said:
        said["logo"] = _data_address(file, said["logo"])
    if "css" in said:
        said["css"] = _read(file, said["css"]).decode("utf-8", "replace").replace("</style", "")
    for table in said.get("insert", ()):
        table["text"] = PICTURE.sub(lambda found: _embedded(file, found), table["text"].strip())
    return Mine(file=file, **said)


def _check(file: Path, where: str, table: object, keys: dict) -> None:
    if not isinstance(table, dict):
        raise CannotStart(f"{file}: {where} is a table, as in docs/lecturing.md.")
    for key, value in table.items():
        if key not in keys:
            raise CannotStart(f"{file}: {where} has the key {key!r}; there are {', '.join(keys)}.")
        if not isinstance(value, keys[key]):
            kind = {str: "a text", list: "a list"}.get(keys[key], "a number")
            raise CannotStart(f"{file}: {key} in {where} is {kind}, not {value!r}.")


def _read(file: Path, name: str) -> bytes:
    try:
        return (file.parent / name).read_bytes()
    except OSError as error:
        raise CannotStart(f"{file} names the file {name}, which cannot be read: {error.strerror}.") from error


def _data_address(file: Path, name: str) -> str:
    kind = mimetypes.guess_type(name)[0] or ""
    if not kind.startswith("image/"):
        raise CannotStart(f"{file} names {name} as a picture; it takes PNG, JPEG, GIF, SVG and WebP files.")
    return f"data:{kind};base64,{base64.b64encode(_read(file, name)).decode()}"


def _embedded(file: Path, found: re.Match) -> str:
    if found[2].startswith("data:"):
        return found[0]
    if re.match(r"\w+://", found[2]):
        raise CannotStart(
            f"{file} shows a picture from {found[2]}; save it beside the file, since a deck fetches nothing."
        )
    return f'<img class="own" alt="{html.escape(found[1])}" src="{_data_address(file, found[2])}">'


# ------------------------------------------------------------------------------------------------ to the slideshow


def arrange(slideshow: NotebookNode, mine: Mine, *, known: Sequence[str]) -> tuple[NotebookNode, list[str]]:
    """The slideshow with these changes, and a sentence for each change that names a slide that the lesson lacks.

    `known` are the headings of all slides of the lesson in their order, also of those that this path leaves out. Such
    a change is left out, and the others are made: after an upgrade there is still a deck.
    """
    groups = {_name(group): group for group in _slides(slideshow)}
    slides, told = list(groups), []
    everything = list(dict.fromkeys([*map(slug, known), *groups]))
    headings = {slug(heading): heading for heading in known}

    def find(key: str, doing: str) -> str | None:
        if (name := slug(key)) in everything:
            return name
        near = difflib.get_close_matches(name, everything, n=1, cutoff=0.0)[0]
        told.append(
            f"{mine.file.name} {doing} the slide {key!r}, which this lesson does not have: its nearest is "
            f"{headings.get(near, near)!r}."
        )
        return None

    def put(name: str, table: dict) -> None:
        place = next(place for place in PLACES if place in table)
        there = find(table[place], f"puts a slide {place}")
        if there is None:
            return
        before = everything[: everything.index(there) + (place == "after")]  # in a path without it: where it would be
        at = slides.index(there) + (place == "after") if there in slides else _behind(slides, before)
        slides.insert(at, name)

    for table in mine.insert:
        group = _inserted(table)
        name = _name(group)
        if name in everything:
            raise CannotStart(f"{mine.file.name} inserts a slide {name!r}, which exists: give it a heading of its own.")
        groups[name] = group
        put(name, table)
        everything += [name]
    for table in mine.move:
        if (name := find(table["slide"], "moves")) is None or name not in slides:
            continue
        if name == slug(table.get("after", table.get("before"))):
            raise CannotStart(f"{mine.file.name} moves the slide {table['slide']!r} to itself; name another slide.")
        at = slides.index(name)
        slides.remove(name)
        put(name, table)
        if name not in slides:
            slides.insert(at, name)
    hidden = {name for key in mine.hide if (name := find(key, "hides"))}
    if hidden >= set(slides):
        raise CannotStart(f"{mine.file.name} hides every slide; leave at least one of them.")
    made = nbformat.from_dict(slideshow)
    made.cells = [cell for name in slides if name not in hidden for cell in groups[name]]
    _dress(made, mine)
    return made, told


def _behind(slides: Sequence[str], before: Sequence[str]) -> int:
    return max((number + 1 for number, name in enumerate(slides) if name in before), default=0)


def _slides(slideshow: NotebookNode) -> Iterator[list[NotebookNode]]:
    """The cells of each slide."""
    starts = [i for i, cell in enumerate(slideshow.cells) if cell.metadata.slideshow.slide_type == "slide"]
    for start, end in zip(starts, [*starts[1:], len(slideshow.cells)], strict=True):
        yield slideshow.cells[start:end]


def _name(group: Sequence[NotebookNode]) -> str:
    return group[0].metadata.lecture["name"]


def _inserted(table: dict) -> list[NotebookNode]:
    name = slug(table["text"].partition("\n")[0])
    about = {"name": name, "paths": [], "minutes": table.get("minutes", 1), "section": ""}
    return [
        nbformat.v4.new_markdown_cell(
            table["text"], id=name[:64] or "own", metadata={"slideshow": {"slide_type": "slide"}, "lecture": about}
        ),
        nbformat.v4.new_markdown_cell(
            table.get("notes", "").strip(), metadata={"slideshow": {"slide_type": "notes"}, "lecture": {}}
        ),
    ]


def _dress(slideshow: NotebookNode, mine: Mine) -> None:
    """Title, author and date on the first slide; links to slides that are gone become their words."""
    slideshow.metadata["lecture"] |= {"logo": mine.logo, "css": mine.css}
    first = slideshow.cells[0] if slideshow.cells else None
    if first is not None and first.source.startswith("# "):
        heading, _, rest = first.source.partition("\n")
        by = html.escape(" · ".join(filter(None, [mine.author, mine.date])))
        first.source = f"# {mine.title}\n{rest}" if mine.title else f"{heading}\n{rest}"
        first.source += f'\n\n<p class="by">{by}</p>' if by else ""
    names = {cell.metadata.get("lecture", {}).get("name") for cell in slideshow.cells}
    for cell in slideshow.cells:
        if cell.cell_type == "markdown":
            cell.source = LINK.sub(lambda found: found[0] if found[2] in names else found[1], cell.source)
