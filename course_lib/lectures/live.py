"""A lecture with a kernel: the slides of the deck, whose widgets recompute, served by Voila to this machine alone.

The deck stands there at once, with its frames. Meanwhile the lesson runs; then each widget takes the place of its
frames. Voila's own template of reveal.js asks other servers for parts of the page, hence one of ours.
"""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import webbrowser
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

import nbformat
import zmq
from nbformat import NotebookNode

from course_lib.data.place import CannotStart
from course_lib.lectures.deck import build_deck, slideshow_of
from course_lib.lectures.mine import Mine
from course_lib.lectures.rendering import template_text
from course_lib.lectures.story import compose

TEMPLATE = "course"
FIRST_PORT, PORTS = 8866, 50
POLICY = (
    "default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; connect-src 'self' ws://127.0.0.1:* ws://localhost:*"
)
OURS = (
    "@voila-dashboards/widgets-manager8",
    "@jupyter-widgets/jupyterlab-manager",
    "anywidget",
)  # all that a lecture needs of JupyterLab


def prepare(
    lesson: NotebookNode,
    name: str,
    folder: Path,
    *,
    path: int | None = None,
    theme: str = "light",
    mine: Mine | None = None,
) -> Path:
    """Write what Voila serves into a folder, and return the notebook; share/jupyter there goes into JUPYTER_PATH.

    `mine` changes the slides, not the run of the lesson.
    """
    slideshow = compose(lesson, path=path, keep_code=True)
    last = max((i for i, cell in enumerate(slideshow.cells) if _has_widget(cell)), default=-1)
    shown = build_deck(slideshow_of(lesson, path=path, mine=mine), theme=theme, models=False)
    place = folder / "share" / "jupyter" / "voila" / "templates" / TEMPLATE
    place.mkdir(parents=True)
    (place / "index.html.j2").write_text(live_template(shown), encoding="utf-8")
    (place / "conf.json").write_text(json.dumps({"base_template": "base"}), encoding="utf-8")
    settings = {"Voila": {"tornado_settings": {"ws_ping_timeout": 30000}}}  # as the server would set it, and say so
    (folder / "voila.json").write_text(json.dumps(settings), encoding="utf-8")
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


def server_command(notebook: Path, *, port: int) -> list[str]:
    """The command line that serves a lecture. Raises CannotStart if Voila is not installed."""
    if find_spec("voila") is None:
        raise CannotStart(
            "A live lecture is served by Voila, which is not installed here. Install it with: python3 course.py "
            "lecture, or: pip install 'voila>=0.5.13,<0.6'. The slides work without it: course slides"
        )
    encrypted = ["--KernelManager.transport_encryption=auto"] if zmq.has("curve") else []  # else the kernel warns
    return [
        sys.executable, "-m", "voila", str(notebook), f"--template={TEMPLATE}", "--no-browser",
        "--Voila.ip=127.0.0.1", f"--Voila.port={port}", "--Voila.port_retries=0", "--Voila.log_level=ERROR",
        "--VoilaConfiguration.show_tracebacks=True",
        "--VoilaExecutor.allow_errors=True",  # a cell that fails does not stop the lecture
        *(f"--VoilaConfiguration.extension_allowlist={name}" for name in OURS),
        "--KernelRestarter.restart_limit=0",  # a new process would know nothing of the lesson's widgets
        *encrypted,
    ]  # fmt: skip


def free_port(port: int | None = None) -> int:
    """The port that a lecture listens on: the one asked for, else the first free one from FIRST_PORT on.

    Raises CannotStart if it is taken, or none is free.
    """
    if port is not None:
        if not _is_free(port):
            raise CannotStart(
                f"Port {port} is taken by another program, perhaps by a lecture that still runs. Leave out --port to "
                f"use the next free one, or name another: --port {port + 1 if port < 65535 else FIRST_PORT}"
            )
        return port
    found = next(filter(_is_free, range(FIRST_PORT, FIRST_PORT + PORTS)), None)
    if found is None:
        raise CannotStart(f"No port from {FIRST_PORT} to {FIRST_PORT + PORTS - 1} is free. Name another with --port.")
    return found


def _is_free(port: int) -> bool:
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


def environment(folder: Path) -> dict[str, str]:
    """The environment of the server: our template and settings are found first."""
    places = {"JUPYTER_PATH": folder / "share" / "jupyter", "JUPYTER_CONFIG_PATH": folder}
    found = {name: [str(place), *filter(None, [os.environ.get(name)])] for name, place in places.items()}
    return os.environ | {name: os.pathsep.join(paths) for name, paths in found.items()}


def lecture(
    lesson: NotebookNode,
    name: str,
    *,
    path: int | None = None,
    theme: str = "light",
    mine: Mine | None = None,
    port: int | None = None,
    browser: bool = True,
) -> int:
    """Serve a lecture on this machine until it is stopped; returns the exit code of the server.

    Raises CannotStart if Voila is not installed, the port is taken, or the lecture has no slides.
    """
    with tempfile.TemporaryDirectory(prefix="course-lecture-", ignore_cleanup_errors=True) as temporary:
        port = free_port(port)
        command = server_command(Path(temporary) / f"{name}.ipynb", port=port)
        prepare(lesson, name, Path(temporary), path=path, theme=theme, mine=mine)
        return _serve(command, environment(Path(temporary)), port, browser=browser)


def _serve(command: Sequence[str], environment: dict[str, str], port: int, *, browser: bool) -> int:
    address, announced = f"http://127.0.0.1:{port}/", False
    server = subprocess.Popen(command, env=environment)
    with _ending_with_this_process(server):
        while True:
            try:
                if not announced and answers(port, running=lambda: server.poll() is None):
                    announced = True
                    print(
                        f"The lecture is at {address} for this machine alone. To stop it, press Ctrl-C here.",
                        flush=True,
                    )
                    if browser and not webbrowser.open(address):
                        print("No browser could be opened: open this address in one.", flush=True)
                return server.wait()
            except KeyboardInterrupt:
                pass  # the server has heard Ctrl-C too, and stops


@contextlib.contextmanager
def _ending_with_this_process(server: subprocess.Popen) -> Iterator[None]:
    """Ends the server when this process is told to end, as by a terminal that closes; the folder is cleared then."""
    known = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    heard = [kind for kind in known if signal.getsignal(kind) is not signal.SIG_IGN]  # nohup lets it outlive a terminal
    before = {kind: signal.signal(kind, lambda *_: server.terminate()) for kind in heard}
    try:
        yield
    finally:
        for kind, handler in before.items():
            signal.signal(kind, handler)


def answers(port: int, *, running: Callable[[], bool]) -> bool:
    """Wait until a server listens on this port of this machine; False if it stops running before."""
    while running():
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
        time.sleep(0.1)
    return False


def _has_widget(cell: NotebookNode) -> bool:
    return "widget" in cell.metadata.get("lecture", {}).get("show", ())
