"""A lecture with a kernel: the slides of the deck, whose widgets recompute, served by Voila to this machine alone.

The deck stands there at once, with its frames. Meanwhile the lesson runs; then each widget takes the place of its
frames. Voila's own template of reveal.js asks other servers for parts of the page, hence one of ours.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from course_lib.data.place import CannotStart
from course_lib.lectures.deck import build_deck
from course_lib.lectures.rendering import template_text
from course_lib.lectures.story import compose

TEMPLATE = "course"
POLICY = (
    "default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; connect-src 'self' ws://127.0.0.1:* ws://localhost:*"
)
OURS = (
    "@voila-dashboards/widgets-manager8",
    "@jupyter-widgets/jupyterlab-manager",
)  # all that a lecture needs of JupyterLab


def prepare(lesson: NotebookNode, name: str, folder: Path, *, path: int = 90, theme: str = "light") -> Path:
    """Write what Voila serves into a folder, and return the notebook; share/jupyter there goes into JUPYTER_PATH."""
    slideshow = compose(lesson, path=path, keep_code=True)
    last = max((i for i, cell in enumerate(slideshow.cells) if _has_widget(cell)), default=-1)
    shown = build_deck(compose(lesson, path=path), theme=theme)
    place = folder / "share" / "jupyter" / "voila" / "templates" / TEMPLATE
    place.mkdir(parents=True)
    (place / "index.html.j2").write_text(live_template(shown), encoding="utf-8")
    (place / "conf.json").write_text(json.dumps({"base_template": "base"}), encoding="utf-8")
    slideshow.cells = slideshow.cells[: last + 1]  # nothing that comes after the last widget need run
    notebook = folder / f"{name}.ipynb"
    nbformat.write(slideshow, notebook)
    return notebook


def live_template(deck: str) -> str:
    """The template of the live page: the deck as it is, and below it the run of the lesson."""
    deck = re.sub(r'(Content-Security-Policy" content=")[^"]*', lambda found: found[1] + POLICY, deck, count=1)
    deck = deck.replace("</head>", f"<style>{template_text('live.css')}</style>\n</head>", 1)
    deck = deck.replace("<body>", '<body data-base-url="{% endraw %}{{ resources.base_url }}{% raw %}voila/">', 1)
    slides, end = deck.rsplit("</body>", 1)
    script = f"<script>{template_text('live.js')}</script>\n"
    return f"{{% raw %}}{slides}{script}{{% endraw %}}{template_text('live.html.j2')}</body>{end}"


def server_command(notebook: Path, *, port: int | None, browser: bool) -> list[str]:
    """The command line that serves a lecture. Raises CannotStart if Voila is not installed."""
    if find_spec("voila") is None:
        raise CannotStart(
            "A live lecture is served by Voila, which is not installed here. Install it with: python3 course.py "
            "lecture, or: pip install 'voila>=0.5.13,<0.6'. The slides work without it: course slides"
        )
    command = [
        sys.executable, "-m", "voila", str(notebook), f"--template={TEMPLATE}", "--Voila.ip=127.0.0.1",
        "--VoilaConfiguration.show_tracebacks=True",
        f"--VoilaConfiguration.extension_allowlist={json.dumps(list(OURS))}",
    ]  # fmt: skip
    if port is not None:
        command += [f"--port={port}"]
    if not browser:
        command += ["--no-browser"]
    return command


def environment(folder: Path) -> dict[str, str]:
    """The environment of the server: our template is found first."""
    paths = [str(folder / "share" / "jupyter"), *filter(None, [os.environ.get("JUPYTER_PATH")])]
    return os.environ | {"JUPYTER_PATH": os.pathsep.join(paths)}


def lecture(
    lesson: NotebookNode,
    name: str,
    *,
    path: int = 90,
    theme: str = "light",
    port: int | None = None,
    browser: bool = True,
) -> int:
    """Serve a lecture on this machine until it is stopped; returns the exit code of the server."""
    with tempfile.TemporaryDirectory(prefix="course-lecture-", ignore_cleanup_errors=True) as temporary:
        notebook = prepare(lesson, name, Path(temporary), path=path, theme=theme)
        command = server_command(notebook, port=port, browser=browser)
        print("The lecture opens in the browser. To stop it, press Ctrl-C here.", flush=True)
        return _serve(command, environment(Path(temporary)))


def _serve(command: Sequence[str], environment: dict[str, str]) -> int:
    server = subprocess.Popen(command, env=environment)
    while True:
        try:
            return server.wait()
        except KeyboardInterrupt:
            pass  # the server has heard Ctrl-C too, and stops


def _has_widget(cell: NotebookNode) -> bool:
    return "widget" in cell.metadata.get("lecture", {}).get("show", ())
