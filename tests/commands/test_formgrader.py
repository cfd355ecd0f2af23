"""The command that opens formgrader: safe settings or none, and a sentence for what is missing."""

import os
import shutil
import socket
import sys
from pathlib import Path

import pytest

from course_lib.commands import formgrader as opening
from course_lib.commands import lab
from course_lib.commands.formgrader import check_settings, formgrader, formgrader_command, formgrader_environment
from course_lib.data.place import CannotStart
from course_lib.grading.folders import Folders
from tests.grading.unreleased import CONFIG, unreleased_course
from tests.ports import free_port


class InItsPlace(Exception):
    """The server has taken the place of this process."""


@pytest.fixture
def course(tmp_path):
    folders = unreleased_course(tmp_path)
    folders.gradebook.write_bytes(b"")
    return folders


@pytest.fixture(autouse=True)
def started(monkeypatch):
    """The command lines and environments of what would have taken the place of this process: else nothing may start."""
    started = []

    def execve(path, command, environment):
        started.append((path, command, environment, os.getcwd()))
        raise InItsPlace

    monkeypatch.chdir("/")
    monkeypatch.setattr(lab.os, "execve", execve)
    monkeypatch.setattr(lab.subprocess, "Popen", lambda *_, **__: pytest.fail("a server that outlives the command"))
    return started


def test_the_courses_own_settings_are_safe():
    check_settings(Folders(root=CONFIG.parent))


EXECUTE = "nbgrader.preprocessors.Execute"


@pytest.mark.parametrize(
    "settings",
    [
        f"c.Autograde.autograde_preprocessors = ['{EXECUTE}']",
        f"c.Autograde.autograde_preprocessors.append('{EXECUTE}')",
        "from nbgrader.preprocessors import Execute\nc.Autograde.autograde_preprocessors.insert(0, Execute)",
        "del c.Autograde.autograde_preprocessors",
        "c.HTMLExporter.filters = {}",
        "del c.HTMLExporter.filters",
        None,
    ],
)
def test_settings_that_would_let_students_run_code_or_scripts_are_refused_as_is_their_absence(course, settings):
    own = course.config.read_text()
    course.config.unlink()
    if settings is not None:
        course.config.write_text(f"{own}\n{settings}\n")
    with pytest.raises(CannotStart, match="nbgrader_config.py lets .* Copy c\\."):
        formgrader(folder=course.root)


def test_before_the_first_release_it_says_what_to_do(course):
    course.gradebook.unlink()
    with pytest.raises(CannotStart, match="no gradebook .* course assign release 07"):
        formgrader(folder=course.root)
    shutil.rmtree(course.root / "source")
    with pytest.raises(CannotStart, match="no gradebook .* course assign release ASSIGNMENT"):
        formgrader(folder=course.root)


def test_a_taken_port_is_refused_before_anything_starts(course):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(CannotStart, match=f"Port {port} is taken.*--port {port + 1}"):
            formgrader(folder=course.root, port=port)


@pytest.mark.needs("linux")
def test_the_server_listens_on_this_machine_alone_and_takes_the_place_of_the_command(course, started):
    """So that no signal can end the one and leave the other, and its exit code is that of the command."""
    port = free_port()
    with pytest.raises(InItsPlace):
        formgrader(folder=course.root, port=port, browser=False)
    ((path, command, environment, folder),) = started
    assert command == formgrader_command(course.root, port=port, browser=False) and path == sys.executable
    assert {"--ServerApp.ip=127.0.0.1", f"--ServerApp.port={port}", "--no-browser"} < set(command)
    assert environment == formgrader_environment() and Path(folder) == course.root


def test_the_courses_settings_and_programs_come_first_and_those_that_were_there_stay(monkeypatch):
    for name in ("JUPYTER_CONFIG_PATH", "JUPYTER_PATH", "PATH"):
        monkeypatch.setenv(name, "/of/mine")
    found = formgrader_environment()
    of_course = {"JUPYTER_CONFIG_PATH": lab.CONFIG, "JUPYTER_PATH": opening.TEMPLATES}
    for name, first in (of_course | {"PATH": Path(sys.executable).parent}).items():
        assert found[name].split(os.pathsep) == [str(first), "/of/mine"]
