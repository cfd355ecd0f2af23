"""The command that opens formgrader: safe settings or none, and a sentence for what is missing."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from course_lib.commands import formgrader as opening
from course_lib.commands.formgrader import check_settings, formgrader, formgrader_command, formgrader_environment
from course_lib.commands.lab import CONFIG as SETTINGS
from course_lib.data.place import CannotStart
from course_lib.grading.folders import Folders
from tests.grading.unreleased import CONFIG, unreleased_course


@pytest.fixture
def course(tmp_path):
    folders = unreleased_course(tmp_path)
    folders.gradebook.write_bytes(b"")
    return folders


@pytest.fixture(autouse=True)
def no_server(monkeypatch):
    """In place of JupyterLab, which would take the place of this process."""
    monkeypatch.setattr(opening, "serve", lambda command, **options: 99)


def test_the_courses_own_settings_are_safe():
    check_settings(Folders(root=CONFIG.parent))


@pytest.mark.parametrize(
    "settings",
    [
        "c.Autograde.autograde_preprocessors = ['nbgrader.preprocessors.Execute']",
        "c.Autograde.autograde_preprocessors.append('nbgrader.preprocessors.Execute')",
        "from nbgrader.preprocessors import Execute\nc.Autograde.autograde_preprocessors.insert(0, Execute)",
        "del c.Autograde.autograde_preprocessors",
        "c.HTMLExporter.filters = {}",
        "del c.HTMLExporter.filters",
    ],
)
def test_settings_that_would_let_students_run_code_or_scripts_are_refused(course, settings):
    course.config.write_text(f"{course.config.read_text()}\n{settings}\n")
    with pytest.raises(CannotStart, match="nbgrader_config.py lets .* Copy c\\."):
        formgrader(folder=course.root)


def test_a_course_directory_without_settings_is_refused(course):
    course.config.unlink()
    with pytest.raises(CannotStart, match="lets the Autograde button"):
        formgrader(folder=course.root)


def test_before_the_first_release_it_says_what_to_do(course):
    course.gradebook.unlink()
    with pytest.raises(CannotStart, match="no gradebook .* course assign release 07"):
        formgrader(folder=course.root)
    shutil.rmtree(course.root / "source")
    with pytest.raises(CannotStart, match="no gradebook .* course assign release ASSIGNMENT"):
        formgrader(folder=course.root)


def test_a_taken_port_is_refused_before_anything_starts(course):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(CannotStart, match=f"Port {port} is taken.*--port {port + 1}"):
            formgrader(folder=course.root, port=port)


def test_the_server_listens_on_this_machine_alone(course):
    command = formgrader_command(course.root, port=9999, browser=False)
    assert "--ServerApp.ip=127.0.0.1" in command and "--ServerApp.port=9999" in command and "--no-browser" in command


def test_the_courses_settings_and_programs_come_first_and_those_that_were_there_stay(monkeypatch):
    for name in ("JUPYTER_CONFIG_PATH", "JUPYTER_PATH", "PATH"):
        monkeypatch.setenv(name, "/of/mine")
    found = formgrader_environment()
    of_course = {"JUPYTER_CONFIG_PATH": SETTINGS, "JUPYTER_PATH": opening.TEMPLATES}
    for name, first in (of_course | {"PATH": Path(sys.executable).parent}).items():
        assert found[name].split(os.pathsep) == [str(first), "/of/mine"]


OPEN = """
import sys
from course_lib.commands import formgrader as opening
opening.formgrader_command = lambda root, **options: [sys.executable, "-c", sys.argv[2], str(root)]
raise SystemExit(opening.formgrader(folder=sys.argv[1]))
"""


def hear_hang_ups():
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # even if these tests run under nohup


@pytest.fixture
def start(course):
    """start(code): formgrader in a process of its own, with this Python code in place of JupyterLab."""
    started = []

    def begin(code):
        command = [sys.executable, "-c", OPEN, str(course.root), code]
        environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
        process = psutil.Popen(
            command,
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=hear_hang_ups if os.name == "posix" else None,
        )
        started.append(process)
        return process

    yield begin
    for process in started:
        with process, contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def test_it_stays_until_the_server_ends_and_hands_on_its_exit_code(course, start):
    opened = start("import os, sys, time; time.sleep(0.2); sys.exit(7 if os.getcwd() == sys.argv[1] else 1)")
    assert opened.wait(timeout=120) == 7


@pytest.mark.needs("linux")
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGKILL"])
def test_no_server_outlives_the_command(start, name):
    number = getattr(signal, name)
    opened = start("import os, time; print('server', os.getpid(), flush=True); time.sleep(600)")
    line = next(line for line in opened.stdout if line.startswith("server "))
    server = psutil.Process(int(line.split()[1]))
    opened.send_signal(number)
    assert opened.wait(timeout=120) == -number
    assert psutil.wait_procs([server], timeout=120)[1] == []
