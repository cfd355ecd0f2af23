"""`course site`: the pages, made by Sphinx with myst-nb and the theme Furo; they need no network and no server."""

import html
import io
import json
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable
from itertools import count
from pathlib import Path
from typing import Any

from course_lib.classroom.widgets.script import classic
from course_lib.data.place import CannotStart, course_folder
from course_lib.lectures.assets import MATHJAX, asset
from course_lib.site.links import problems
from course_lib.site.models import export_model
from course_lib.site.sources import FIGURES, Sources

HERE = Path(__file__).parent
PAGES = 20  # between two sentences of progress
MATHS = "es5/tex-svg-full.js"
PLAYGROUND = re.compile(r'data-playground="(\w+)" data-config="([^"]*)"')
REPAIRS = (  # of the theme's and Sphinx's HTML, for those who hear a page
    (r'<p class="caption" role="heading">', '<p class="caption" role="heading" aria-level="2">'),
    (r'<aside class="sidebar-drawer">', '<aside class="sidebar-drawer" aria-label="The site">'),
    (r'<aside class="toc-drawer( no-toc)?">', r'<aside class="toc-drawer\1" aria-label="This page">'),
    (r"<th\b[^>]*>\s*(<p>\s*</p>)?\s*</th>", "<td></td>"),
    (
        r"<dl>\s*(<dd>(?:(?!<dl|</dl>).)*)</dl>",
        r'<span class="sig-rows">\1</span>',
    ),  # a list of parameters has no terms
    (r'<dd>(<em class="sig-param">.*?)</dd>', r'<span class="sig-row">\1</span>'),
    (r'(?=<div id="search-results">)', "<h1>Search</h1>\n"),
)


def write_site(sources: Sources, to: Path | None = None) -> int:
    """Write the site into a folder, `build/site` if none is named; returns an exit code, 1 if it has faults.

    Raises CannotStart with a sentence if it cannot be made, or if the folder holds something else.
    """
    to = to or course_folder() / "build" / "site"
    _check_place(to)
    faults = build(sources, to, say=lambda words: print(words, flush=True))
    print(f"{to / 'index.html'}\n{_counts(to)}. Open it in any browser, or put the folder on any web server.")
    for fault in faults:
        print(f"✗ {fault}")
    return 1 if faults else 0


def build(sources: Sources, to: Path, *, say: Callable[[str], None] = lambda words: None) -> list[str]:
    """Make the site in a folder, in place of what is there; returns what Sphinx warned of, and the pages' faults.

    `say` is told how far it is.
    """
    try:
        import furo  # noqa: F401
        import myst_nb  # noqa: F401
        from sphinx.application import Sphinx
        from sphinx.util.docutils import docutils_namespace, patch_docutils
    except ImportError as error:
        raise CannotStart(
            f"The site is made with Sphinx, myst-nb and Furo, and {error.name} is not installed here. Let the course "
            "set itself up with them: python3 course.py site   (or, into another environment: pip install --editable "
            "'.[site]')"
        ) from error
    warnings = io.StringIO()
    with tempfile.TemporaryDirectory() as temporary:
        source, maths, made = (Path(temporary) / name for name in ("source", "maths", "site"))
        say("1/4 Laying out lessons, guides and reference")
        sources.write(source)
        maths.mkdir()
        (maths / Path(MATHS).name).write_bytes(asset(MATHJAX, MATHS))
        static = [str(HERE / "static"), str(maths), str(source / FIGURES)]
        settings = {"html_static_path": static, "exclude_patterns": [FIGURES]}
        with patch_docutils(), docutils_namespace():
            app = Sphinx(source, HERE, made, Path(temporary) / "doctrees", "html", settings, None, warnings)
            app.connect("source-read", _counter(app, say, "2/4 Reading"))
            app.connect("html-page-context", _counter(app, say, "3/4 Writing"))
            app.build()
        say("4/4 Checking links and pictures")
        playgrounds, models = set(), set()
        for page in made.rglob("*.html"):
            text = repaired(page.read_text(encoding="utf-8"))
            page.write_text(text, encoding="utf-8")
            for name, config in PLAYGROUND.findall(text):
                playgrounds.add(name)
                models |= set(json.loads(html.unescape(config)).get("models", ()))
        _write_playgrounds(playgrounds, made / "_static" / "playgrounds")
        for model in models:
            export_model(model, made / "_static" / "models")
        (made / ".nojekyll").touch()  # on GitHub Pages folders that begin with _ are served, too
        (made / ".buildinfo").unlink(missing_ok=True)
        _replace(to, made)
        said = re.sub(rf"{re.escape(str(source))}/|\x1b\[[\d;]*m", "", warnings.getvalue())
    return [*said.splitlines(), *problems(to)]


def _counter(app: Any, say: Callable[[str], None], doing: str) -> Callable[..., None]:
    """What Sphinx calls for each page: a sentence for the first one, and for every twentieth."""
    number = count()

    def tell(*_) -> None:
        if (done := next(number)) % PAGES == 0:
            say(f"{doing} page {done + 1} of {len(app.project.docnames)}")

    return tell


def _write_playgrounds(names: Iterable[str], folder: Path) -> None:
    """A script for each playground; the page loads it when the playground comes near (`static/course.js`)."""
    folder.mkdir(exist_ok=True)
    for name in names:
        (folder / f"{name}.js").write_text(classic(name), encoding="utf-8")


def repaired(page: str) -> str:
    """A page whose headings, landmarks and tables say what they are."""
    for wrong, right in REPAIRS:
        page = re.sub(wrong, right, page, flags=re.DOTALL)
    return page


def _check_place(to: Path) -> None:
    if to.exists() and not (to / "searchindex.js").is_file() and (not to.is_dir() or any(to.iterdir())):
        raise CannotStart(f"{to} holds something that is not a site of the course. Name another folder with --to.")


def _replace(to: Path, made: Path) -> None:
    try:
        if to.exists():
            shutil.rmtree(to)
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(made, to)
    except OSError as error:
        raise CannotStart(f"{to} cannot be written: {error.strerror}. Name another folder with --to.") from error


def _counts(to: Path) -> str:
    size = sum(file.stat().st_size for file in to.rglob("*") if file.is_file())
    return f"{len(list(to.rglob('*.html')))} pages, {size / 1e6:.0f} MB"
