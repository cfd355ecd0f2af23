"""What `course lecture` says where it cannot serve, and how it serves."""

import contextlib
import os
import signal
import socket
import subprocess
import sys

import psutil
import pytest

from course_lib.commands.files import read_notebook
from course_lib.data.place import CannotStart, course_folder
from course_lib.lectures import live
from course_lib.lectures.commands import teach
from course_lib.lectures.live import FIRST_PORT, _serve, free_port, prepare, server_command
from course_lib.lectures.story import slides_of

LESSON = course_folder() / "notebooks" / "05_attention.ipynb"
OPENING = course_folder() / "notebooks" / "00_start_here.ipynb"


@pytest.fixture
def taken():
    """A port on which somebody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


@pytest.fixture
def free(taken):
    """A port on which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    return port


# ------------------------------------------------------------------------------------------- what it cannot do


def test_without_voila_a_sentence_says_what_to_do(monkeypatch):
    monkeypatch.setattr(live, "find_spec", lambda name: None)
    with pytest.raises(CannotStart, match="Voila, which is not installed here. Install it with: python3 course.py"):
        teach(LESSON)


def test_a_port_that_is_taken_is_named_with_a_way_out(taken):
    with pytest.raises(CannotStart, match=rf"Port {taken} is taken by another program.* --port {taken + 1}"):
        teach(LESSON, port=taken)


def test_without_a_port_the_next_free_one_is_taken(monkeypatch):
    monkeypatch.setattr(live, "_is_free", lambda port: port > FIRST_PORT + 1)
    assert free_port() == FIRST_PORT + 2
    monkeypatch.setattr(live, "_is_free", lambda port: False)
    with pytest.raises(CannotStart, match=r"No port from 8866 to 8915 is free. Name another with --port"):
        free_port()


def test_a_port_is_free_until_somebody_listens(taken, free):
    assert free_port(free) == free
    assert not live._is_free(taken)


# ------------------------------------------------------------------------------------------- how it serves


def serve(code, port, **options):
    """Serve with a server of a few lines in place of Voila."""
    command = [sys.executable, "-c", f"import socket, time, sys; port = {port}\n{code}"]
    return _serve(command, dict(os.environ), port, **options)


@pytest.mark.parametrize(
    ("opens", "more"), [(True, []), (False, ["No browser could be opened: open this address in one."])]
)
def test_the_address_is_said_and_opened_when_the_server_answers(free, capfd, monkeypatch, opens, more):
    opened = []
    monkeypatch.setattr(live.webbrowser, "open", lambda address: opened.append(address) or opens)
    answering = "time.sleep(0.5)\nprint('up', flush=True)\nsocket.create_server(('127.0.0.1', port)).accept()"
    assert serve(answering, free, browser=True) == 0
    said = capfd.readouterr().out.splitlines()
    assert said == [
        "up",
        f"The lecture is at http://127.0.0.1:{free}/ for this machine alone. To stop it, press Ctrl-C here.",
        *more,
    ]
    assert opened == [f"http://127.0.0.1:{free}/"]


def test_a_server_that_ends_at_once_opens_nothing(free, capfd, monkeypatch):
    monkeypatch.setattr(live.webbrowser, "open", lambda address: pytest.fail("opened a browser for nothing"))
    assert serve("sys.exit(3)", free, browser=True) == 3
    assert capfd.readouterr().out == ""


OPEN = """
import sys
from course_lib.lectures import live
server = "import os, socket, time; print(os.getpid(), flush=True); time.sleep(600)"
live.server_command = lambda notebook, *, port: [sys.executable, "-c", server]
live.prepare = lambda lesson, name, folder, **options: (folder / "page").touch()
live.lecture(None, "05", browser=False)
"""


@pytest.fixture
def start(tmp_path):
    """start(on_hang_up): a lecture in a process of its own, and its server; a few lines in place of Voila."""
    with contextlib.ExitStack() as started:

        def begin(on_hang_up=signal.SIG_DFL):
            command = started.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", OPEN],
                    stdout=subprocess.PIPE,
                    env=os.environ | {"TMPDIR": str(tmp_path)},
                    preexec_fn=lambda: signal.signal(signal.SIGHUP, on_hang_up),
                )
            )
            server = psutil.Process(int(command.stdout.readline()))
            for process in (command, server):
                started.callback(kill, process)
            return command, server

        yield begin


def kill(process):
    with contextlib.suppress(psutil.NoSuchProcess):
        process.kill()


@pytest.mark.needs("linux")
@pytest.mark.parametrize("sign", ["SIGTERM", "SIGHUP"])
def test_no_signal_ends_the_command_and_leaves_its_server_or_its_folder(start, tmp_path, sign):
    command, server = start()
    assert list(tmp_path.glob("course-lecture-*/page"))
    command.send_signal(getattr(signal, sign))
    command.wait(timeout=300)
    assert psutil.wait_procs([server], timeout=300)[1] == [] and list(tmp_path.iterdir()) == []


@pytest.mark.needs("linux")
def test_under_nohup_a_lecture_outlives_its_terminal(start):
    command, server = start(on_hang_up=signal.SIG_IGN)
    for process in (command, server):
        process.send_signal(signal.SIGHUP)
    with pytest.raises(subprocess.TimeoutExpired):
        command.wait(timeout=1)
    assert server.is_running()


def test_the_server_listens_on_this_machine_alone_and_restarts_nothing(tmp_path):
    command = server_command(tmp_path, port=8899)
    assert {"--Voila.ip=127.0.0.1", "--Voila.port=8899", "--KernelRestarter.restart_limit=0"} <= set(command)


@pytest.mark.needs("lecture_assets")
def test_only_what_the_widgets_need_is_run_but_every_slide_is_there(tmp_path):
    for file, path, widgets in ((LESSON, 30, 0), (LESSON, 60, 1), (LESSON, 90, 3), (OPENING, 60, 3)):
        lesson, folder = read_notebook(file), tmp_path / f"{file.stem}.{path}"
        folder.mkdir()
        cells = read_notebook(prepare(lesson, file.stem, folder, path=path)).cells
        assert sum("page.play(" in cell.source for cell in cells) == widgets
        assert not cells or "page.play(" in cells[-1].source
        page = next(folder.rglob("index.html.j2")).read_text(encoding="utf-8")
        assert all(f'<section id="{slide.name}"' in page for slide in slides_of(lesson, path))
