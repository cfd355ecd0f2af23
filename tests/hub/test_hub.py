"""A class on a real JupyterHub, as hub/jupyterhub_config.py has it: accounts, browsers, exchange, grading, feedback."""

import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

from tests.browser.lab import CHROMIUM_FLAGS
from tests.grading.courses import NAME, NOTEBOOK
from tests.grading.unreleased import SOLVED, unreleased_course
from tests.needs import find_chromium

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.needs("hub")]

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(sys.executable).parent
NAMESPACE = Path(__file__).with_name("hub_namespace.sh")
PASSWORD = "a password of the test"
ANSWERS = {"ada": SOLVED, "bob": SOLVED | {"double": "def double(x):\n    return x"}}
OURS = """
load_subconfig({config!r})
c.JupyterHub.bind_url = "http://127.0.0.1:{public}"
c.JupyterHub.hub_port = {inner}
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{api}"
c.JupyterHub.authenticator_class = "shared-password"
c.SharedPasswordAuthenticator.user_password = {password!r}
c.SharedPasswordAuthenticator.allowed_users = {{"ada", "bob"}}
"""
ANSWER = """
import sys
from pathlib import Path
sys.path.insert(0, {root!r})
from tests.grading.unreleased import answer
answer(Path(sys.argv[1]), **{answers!r}[sys.argv[2]])
"""


def free_ports(count):
    import socket

    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


class Hub:
    """The hub, running, with a home for each account; `files` is the root folder as they see it."""

    def __init__(self, folder):
        public, inner, api = free_ports(3)
        self.address, self.folder = f"http://127.0.0.1:{public}", folder
        config = folder / "config.py"
        ports = {"public": public, "inner": inner, "api": api}
        config.write_text(OURS.format(config=f"{ROOT}/hub/jupyterhub_config.py", password=PASSWORD, **ports))
        command = [PROGRAMS / "jupyterhub", "--config", config]
        self.process = subprocess.Popen(
            ["unshare", "--mount", "sh", NAMESPACE, sys.base_prefix, ROOT, *command],
            cwd=folder,
            stdout=(folder / "hub.log").open("w"),
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self.files = Path(f"/proc/{self.process.pid}/root")
        self.wait_for(self._answers, "the hub does not answer")

    def _answers(self):
        try:
            return urllib.request.urlopen(f"{self.address}/hub/health", timeout=5).status == 200
        except OSError:
            return False

    def wait_for(self, found, problem, seconds=90):
        end = time.monotonic() + seconds
        while not found():
            assert self.process.poll() is None and time.monotonic() < end, f"{problem}\n{self.log()[-3000:]}"
            time.sleep(0.1)

    def log(self):
        return (self.folder / "hub.log").read_text(errors="replace")

    def run(self, account, *command):
        """A command of an account's, outside of its server: what it prints, and its exit code."""
        environment = ["COURSE_EXCHANGE=/srv/exchange", f"PATH={PROGRAMS}:/usr/bin:/bin"]
        line = ["nsenter", f"--target={self.process.pid}", "--mount", "runuser", "-u", account, "--", "env", "-C"]
        line += [f"/home/{account}", f"HOME=/home/{account}", *environment, *command]
        done = subprocess.run(line, capture_output=True, text=True, timeout=200)
        return done.stdout + done.stderr, done.returncode

    def instruct(self, *command):
        said, code = self.run("teacher", *command)
        assert code == 0, said
        return said

    def close(self):
        os.killpg(self.process.pid, signal.SIGTERM)
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)


class Student:
    """A student in a browser, signed in, with a terminal of JupyterLab open."""

    def __init__(self, hub, browser, name):
        self.hub, self.name, self.commands = hub, name, 0
        self.page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
        self.page.set_default_timeout(90_000)
        self.page.goto(hub.address)
        self.page.fill("#username_input", name)
        self.page.fill("#password_input", PASSWORD)
        self.page.click("#login_submit")
        self.page.wait_for_url(f"**/user/{name}/lab**")
        self.page.locator('.jp-LauncherCard[title="Start a new terminal session"]').click()
        self.terminal = self.page.locator(".jp-Terminal .xterm")
        self.terminal.click()

    def type(self, command):
        """Types a command into the terminal; its exit code, and what it printed."""
        self.commands += 1
        said = self.hub.files / f"home/{self.name}/said{self.commands}"
        code = said.with_name(f"code{self.commands}")
        self.page.keyboard.type(f"({command}) > ~/{said.name} 2>&1; echo $? > ~/{code.name}\n")
        self.hub.wait_for(lambda: code.exists() and code.read_text().strip(), f"no end of: {command}")
        return int(code.read_text()), said.read_text()


@pytest.fixture(scope="module")
def hub(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hub")
    hub = Hub(folder)
    course = hub.files / "home/teacher/course"
    try:
        unreleased_course(course, settings='\nc.Exchange.root = "/srv/exchange"\n')
        (hub.files / "srv/answer.py").write_text(ANSWER.format(root=str(ROOT), answers=ANSWERS))
        (hub.files / "srv/exchange").mkdir(mode=0o755)
        shutil.chown(hub.files / "srv/exchange", *own(hub, "teacher"))
        for path in (course, *course.rglob("*")):
            shutil.chown(path, *own(hub, "teacher"))
        yield hub
    finally:
        hub.close()


def own(hub, account):
    numbers = (hub.files / "etc/passwd").read_text().split(f"\n{account}:x:")[1].split(":")
    return int(numbers[0]), int(numbers[1])


@pytest.fixture(scope="module")
def students(hub):
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), headless=True, args=CHROMIUM_FLAGS)
        yield {name: Student(hub, browser, name) for name in ANSWERS}
        browser.close()


def test_a_class_fetches_answers_hands_in_and_gets_its_feedback(hub, students):
    course = ["--folder", "/home/teacher/course"]
    hub.instruct("course", "assign", "release", NAME, *course)
    for name, student in students.items():
        for command in (
            f"course assign fetch {NAME} --to ~/work",
            f"python /srv/answer.py ~/work/{NOTEBOOK}.ipynb {name}",
            f"course assign submit {NAME} --notebook ~/work/{NOTEBOOK}.ipynb",
        ):
            code, said = student.type(command)
            assert code == 0, said
    assert "2 submissions" in hub.instruct("course", "assign", "collect", NAME, *course)
    assert "needs attention" not in hub.instruct("course", "grade", NAME, *course)
    hub.instruct("course", "assign", "feedback", NAME, *course)
    hub.instruct("env", "-C", "/home/teacher/course", "nbgrader", "release_feedback", NAME)
    pages = {}
    for name, student in students.items():
        code, said = student.type(f"course assign results {NAME} --notebook ~/work/{NOTEBOOK}.ipynb")
        assert code == 0, said
        (page,) = (hub.files / f"home/{name}/work").rglob("*.html")
        pages[name] = page.read_text()
    assert "5 of 9 points" in pages["ada"] and "3 of 9 points" in pages["bob"]


def test_nobody_reads_what_is_anothers(hub, students):
    for place in ("/home/ada", "/home/ada/work", "/home/teacher/course", "/srv/exchange/deep-learning/inbound"):
        code, said = students["bob"].type(f"ls {place}")
        assert code != 0 and "Permission denied" in said, f"{place}: {said}"


def test_a_server_keeps_its_limits(hub, students):
    code, said = students["bob"].type("python -c 'bytearray(9 << 30)'")
    assert code == 1 and "MemoryError" in said
    code, said = students["bob"].type("umask; ulimit -u")
    assert said.split() == ["0077", "512"]
