import http.server
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DRIVE = Path(__file__).with_name("drive.py")
BASE = getattr(sys, "_base_executable", None) or sys.executable


class Course:
    """A copy of the course's set-up files in a folder, and ways to start it there."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir(parents=True)
        for name in ("course.py", "pyproject.toml", "constraints.txt"):
            shutil.copy(ROOT / name, folder)

    @property
    def venv(self):
        return self.folder / ".venv"

    def command(self, *arguments):
        return [BASE, str(DRIVE), str(self.folder), *arguments]

    def begin(self, *arguments, prefix=(), **environment):
        """Start course.py, with its stand-in for pip, and return the process."""
        return begin([*prefix, *self.command(*arguments)], environment)

    def start(self, *arguments, **environment):
        """Start course.py, with its stand-in for pip, to the end; returns (exit code, all that it printed)."""
        return ended(self.begin(*arguments, **environment))

    @staticmethod
    def finish(process):
        """Waits for a process of `begin` to end; returns (exit code, all that it printed)."""
        return ended(process)

    @staticmethod
    def run(command, **environment):
        """Runs any command to its end from another folder; returns (exit code, all that it printed)."""
        return ended(begin(command, environment))

    @staticmethod
    def read_until(process, words):
        """Reads what a process prints up to these words, byte by byte: the rest stays for `finish`."""
        said = b""
        while words.encode() not in said and (byte := os.read(process.stdout.fileno(), 1)):
            said += byte
        assert words in said.decode(), said.decode()
        return said.decode()

    def pip_calls(self):
        """The arguments of each call of pip so far."""
        calls = self.folder / "pip-calls.txt"
        return [json.loads(line) for line in calls.read_text().splitlines()] if calls.exists() else []

    def wait_for(self, name):
        deadline = time.monotonic() + 300
        while not (self.folder / name).exists():
            assert time.monotonic() < deadline, f"{name} did not appear"
            time.sleep(0.02)

    def allow_pip_to_go_on(self):
        (self.folder / "pip-go").touch()


def begin(command, environment):
    return subprocess.Popen(
        command,
        cwd="/" if os.name != "nt" else None,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
    )


def ended(process):
    output, _ = process.communicate(timeout=600)
    return process.returncode, output


@pytest.fixture
def course(tmp_path):
    """A fresh copy of the course, in a folder with spaces, accents and an apostrophe in its name."""
    return Course(tmp_path / "Les leçons d'été")


@pytest.fixture
def installed(course):
    """A copy of the course whose set-up for `lab` is finished."""
    code, output = course.start("lab")
    assert code == 0, output
    return course


@pytest.fixture
def without_root_powers():
    """A command prefix under which even root obeys the permissions of files."""
    if os.geteuid() != 0:
        return []
    return ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]


class QuietServer(http.server.BaseHTTPRequestHandler):
    def do_HEAD(self):
        self.send_response(200)
        self.end_headers()

    def log_message(self, *arguments):
        pass


@pytest.fixture
def index():
    """The address of a package index that answers."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), QuietServer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def module():
    """course.py, imported."""
    spec = importlib.util.spec_from_file_location("course_set_up", ROOT / "course.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
