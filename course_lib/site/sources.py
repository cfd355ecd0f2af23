"""What stands on the site: lessons, guides and modules, laid out in a folder as Sphinx reads them.

The folder has the layout of the course, so that the links from page to page hold. What is for instructors alone stays
out of it: the notes of lectures, which are metadata of the lessons' cells, and everything below notebooks/assignments.
"""

import ast
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from posixpath import normpath

import nbformat

from course_lib.commands.files import read_notebook
from course_lib.data.place import course_folder
from course_lib.site import home

GUIDES = ("docs/library.md", "docs/data.md", "docs/scale.md", "docs/site.md", "docs/lecturing.md", "docs/grading.md")
GUIDES += (
    "docs/teaching.md",
    "docs/students.md",
    "docs/policies.md",
    "docs/capstone.md",
    "docs/capstone_example.md",
    "docs/calibration.md",
    "docs/hosting.md",
    "docs/security.md",
    "CONTRIBUTING.md",
    "LICENSE-TEXT.md",
)
FLOORS = {
    "functional": "tensors in, tensors out: attention with its masks, positions, images, losses, metrics, costs",
    "text": "vocabularies, BPE, WordPiece",
    "layers": "modules with plain keyword arguments",
    "models": "one paper, one file, with its config",
    "weights": "official checkpoints, and our own",
    "generation": "greedy, beam search, sampling, streaming",
    "data": "generators of sentences and images, texts, photographs",
    "training": "the loop, schedules, checkpoints, parallel jobs, and the shape of a recipe",
    "viz": "data in, Figure out",
    "tasks": "one table for a task: what is asked, how it goes wrong, what to say then",
    "classroom": "the page of a lesson: cards, questions, predictions, results, exercises, the widget kit, progress",
}
HOME = "docs/home.md"  # the site's first page, see `home`; LESSONS and PLAYGROUND in it are replaced
FIGURES = "_figures"  # a folder of static files
LINK = re.compile(r"\[(?P<words>[^\]]+)\]\((?P<target>[^)\s#:]+)(?P<anchor>#[^)\s]*)?\)")
TO_LESSON = re.compile(r'href="(?P<page>[^":#]+)\.ipynb(?:#cell-id=(?P<cell>[^"]*))?"')
TO_READ = (
    "A page to read, with every output as the authors' run left it; some playgrounds run in this page. In JupyterLab "
    "you make a prediction before a result opens, play with all of them, and run your own code: "
    "`python3 course.py lab {number}`."
)


@dataclass(frozen=True, kw_only=True)
class Sources:
    """What to put on a site: paths of lessons and guides below the course's folder, and full names of modules."""

    course: Path = field(default_factory=course_folder)
    lessons: Sequence[str] = ()
    guides: Sequence[str] = GUIDES
    modules: Sequence[str] = ()

    @property
    def pages(self) -> set[str]:
        """The files of the course that have a page on the site."""
        return {"README.md", *self.lessons, *self.guides}

    def write(self, folder: Path) -> None:
        """Lay everything out in a folder, HOME as its first page."""
        for name in self.lessons:
            _put(folder / name, nbformat.writes(self._lesson(name)))
        for name in ("README.md", *self.guides):
            words = self.relinked((self.course / name).read_text(encoding="utf-8"), name, folder)
            _put(folder / name, words)
        _put(folder / "index.md", self._home(folder))
        write_reference(self.modules, folder / "reference")

    def relinked(self, text: str, page: str, folder: Path) -> str:
        """Markdown of which each link leads to a page of the site, or to a file copied there; else its words remain."""

        def link(found: re.Match) -> str:
            target = normpath(PurePosixPath(page).parent / found["target"])
            if target in self.pages:
                return found[0]
            file = self.course / target
            if file.is_file() and file.suffix not in (".md", ".ipynb"):
                _put(folder / target, file.read_bytes())
                return found[0]
            return found["words"]

        blocks = re.split(r"(^```.*?^```$)", text, flags=re.MULTILINE | re.DOTALL)
        return "".join(block if block.startswith("```") else LINK.sub(link, block) for block in blocks)

    def _lesson(self, name: str) -> nbformat.NotebookNode:
        """A lesson with its outputs, and of its metadata nothing."""
        notebook = read_notebook(self.course / name)
        for cell in notebook.cells:
            cell.metadata = {}
            for output in cell.get("outputs", []):
                if "text/html" in output.get("data", {}):
                    output.data["text/html"] = TO_LESSON.sub(self._page_of, output.data["text/html"])
        note = f":::{{note}}\n{TO_READ.format(number=Path(name).name[:2])}\n:::"
        notebook.cells.insert(1, nbformat.v4.new_markdown_cell(note, id="to-read"))
        notebook.metadata = {"kernelspec": notebook.metadata.kernelspec}
        return notebook

    def _page_of(self, link: re.Match) -> str:
        """A link to a notebook's cell as one to the heading that the cell begins with, as Sphinx names it."""
        from docutils.nodes import make_id

        place = ""
        if link["cell"]:
            notebook = read_notebook(self.course / "notebooks" / f"{link['page']}.ipynb")
            heading = next(cell.source for cell in notebook.cells if cell.id == link["cell"]).split("\n")[0]
            place = f"#{make_id(heading)}"
        return f'href="{link["page"]}.html{place}"'

    def _home(self, folder: Path) -> str:
        """The first page, with a playground, the lessons as pictures, and the site's table of contents."""

        def from_the_top(found: re.Match) -> str:
            place = normpath(PurePosixPath(HOME).parent / found["target"])
            return f"[{found['words']}](/{place}{found['anchor'] or ''})"

        text, readme = (self.course.joinpath(name).read_text(encoding="utf-8") for name in (HOME, "README.md"))
        lessons = {name: self.course / name for name in self.lessons}
        text = LINK.sub(from_the_top, self.relinked(text, HOME, folder))
        text = text.replace("PLAYGROUND", home.playground(lessons))
        return text.replace("LESSONS", home.gallery(readme, lessons, folder / FIGURES / "lessons")) + self._contents()

    def _contents(self) -> str:
        """The site's table of contents, which the sidebar shows."""
        parts = {
            "Lessons": self.lessons,
            "Library": ["reference/index"] * bool(self.modules),
            "Guides": ["README", *self.guides],
        }
        return "".join(
            f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n" + "\n".join(names) + "\n```\n"
            for caption, names in parts.items()
            if names
        )


def all_sources(lessons: Iterable[Path]) -> Sources:
    """The whole course: these lessons, every guide, every module with something public in it."""
    folder = course_folder()
    names = [path.relative_to(folder).as_posix() for path in lessons]
    guides = [name for name in GUIDES if (folder / name).is_file()]  # a student bundle has those for students
    modules = [name for floor in FLOORS for name in public_modules(floor)]
    return Sources(course=folder, lessons=names, guides=guides, modules=modules)


def public_modules(floor: str) -> list[str]:
    """The full names of a floor's modules that define something public, in the order of the alphabet."""
    files = sorted((course_folder() / "course_lib" / floor).rglob("*.py"))
    return [_name(file) for file in files if any(map(_is_public, ast.parse(file.read_text(encoding="utf-8")).body))]


def write_reference(modules: Sequence[str], folder: Path) -> None:
    """A page for each module, one for each floor that lists its modules, and one above them all."""
    floors: dict[str, list[str]] = {}
    for name in modules:
        floors.setdefault(name.split(".")[1], []).append(name)
        _put(folder / f"{name}.rst", f"{_title(_short(name))}.. automodule:: {name}\n   :members:\n")
    for floor, names in floors.items():
        lines = "\n".join(f"* :doc:`{_short(name)} <{name}>`: {_summary(name)}" for name in names)
        words = FLOORS[floor][0].upper() + FLOORS[floor][1:]
        _put(folder / f"{floor}.rst", f"{_title(floor)}{words}.\n\n{lines}\n\n{_toctree(names)}")
    if floors:
        lines = "\n".join(f"* :doc:`{floor}`: {FLOORS[floor]}" for floor in floors)
        words = "``course_lib``, from the ground up: a module imports only from its own floor and those above it here."
        _put(folder / "index.rst", f"{_title('Reference')}{words}\n\n{lines}\n\n{_toctree(floors)}")


def as_rst(lines: Iterable[str]) -> list[str]:
    """A docstring of ours as reStructuredText: `code` becomes code, or a link, and all other signs stay as they are.

    An indented block that follows an empty line is shown letter by letter.
    """
    made: list[str] = []
    for block in re.split(r"\n\s*\n", "\n".join(lines).strip("\n")):
        rows = block.splitlines()
        if rows and all(row.startswith("  ") for row in rows):
            made += ["::", "", *rows, ""]
        else:
            made += [*_inline(block).splitlines(), ""]
    return made


def _inline(text: str) -> str:
    """Words with `code` among them as reStructuredText; a name in code is a link where the reference knows it."""
    made = []
    for number, part in enumerate(re.split(r"`+([^`]+)`+", text)):
        if number % 2 == 0:
            made.append(re.sub(r"([\\*_|])", r"\\\1", part))
        elif re.fullmatch(r"[A-Za-z_][\w.]*", part):
            made.append(rf"\ :py:obj:`{part}`\ ")
        else:
            made.append(rf"\ ``{part}``\ ")
    return "".join(made)


def _is_public(node: ast.AST) -> bool:
    return isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_")


def _name(file: Path) -> str:
    parts = file.relative_to(course_folder()).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


def _short(name: str) -> str:
    return ".".join(name.split(".")[2:]) or name.split(".")[1]


def _summary(name: str) -> str:
    """The first paragraph of a module's docstring, read without importing it."""
    path = course_folder() / name.replace(".", "/")
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    words = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    return _inline(" ".join(words.split("\n\n")[0].split()))


def _title(words: str) -> str:
    return f"{words}\n{'=' * len(words)}\n\n"


def _toctree(names: Iterable[str]) -> str:
    entries = "".join(f"   {_short(name) if '.' in name else name} <{name}>\n" for name in names)
    return f".. toctree::\n   :hidden:\n\n{entries}"


def _put(file: Path, contents: str | bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(contents.encode() if isinstance(contents, str) else contents)
