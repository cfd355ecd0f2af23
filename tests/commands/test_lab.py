"""`course lab` while a learner opens a lesson and starts its kernel: its page, and what it says in the terminal."""

import contextlib
import json
import re
import subprocess
import time
import urllib.error
import urllib.request

import websocket

from course_lib.commands import lab
from course_lib.commands.lessons import find_lesson
from tests.ports import free_port

ALARMS = ("not trusted", "eavesdropping", "websocket_ping", "[W ", "[E ", "WARNING")
PATIENCE = 300  # seconds: the machine may be busy


class Server:
    def __init__(self, log):
        self.log, self.port = log, free_port()
        command = lab.lab_command(find_lesson("00"), port=self.port, browser=False)
        self.process = subprocess.Popen(command, env=lab.lab_environment(), stderr=log.open("w"))

    def ask(self, place, **body):
        token = re.search(r"token=(\w+)", self.log.read_text())[1]
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/api/{place}", json.dumps(body).encode() or None)
        request.method, request.headers["Authorization"] = "POST" if body else "GET", f"token {token}"
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return json.load(answer)

    def wait_until_it_answers(self):
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end and self.process.poll() is None:
            with contextlib.suppress(urllib.error.URLError, TypeError):
                return self.ask("status")
            time.sleep(0.1)
        raise AssertionError(self.log.read_text())

    def listen(self, kernel):
        """Until the kernel has said something."""
        token = re.search(r"token=(\w+)", self.log.read_text())[1]
        address = f"ws://127.0.0.1:{self.port}/api/kernels/{kernel}/channels?token={token}"
        with contextlib.closing(websocket.create_connection(address, timeout=PATIENCE)) as socket:
            return json.loads(socket.recv())


def test_opening_a_lesson_asks_the_network_nothing_and_raises_no_alarm_in_the_terminal(tmp_path, monkeypatch):
    for name in ("DATA", "RUNTIME", "CONFIG"):
        monkeypatch.setenv(f"JUPYTER_{name}_DIR", str(tmp_path / name))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    server = Server(tmp_path / "said.txt")
    try:
        server.wait_until_it_answers()
        address = re.search(r"http://127.\S+token=\w+", server.log.read_text())[0]
        with urllib.request.urlopen(address, timeout=PATIENCE) as answer:
            page = answer.read().decode()
        server.ask("contents/notebooks/00_start_here.ipynb?content=1")
        assert server.listen(server.ask("kernels", name="python3")["id"])
    finally:
        server.process.terminate()
        server.process.wait(PATIENCE)
    said = [line for line in server.log.read_text().splitlines() if "NbGrader" not in line]  # not at a learner's
    assert any("127.0.0.1" in line for line in said)
    assert [line for line in said if any(word in line for word in ALARMS)] == []
    assert f":{server.port}/lab/tree/notebooks/00_start_here.ipynb" in address
    config = json.loads(re.search(r'id="jupyter-config-data" type="application/json">(.*?)</script>', page, re.S)[1])
    assert config["news"] == {"disabled": True} and config["serverRoot"].endswith(lab.course_folder().name)
    extensions = ("apputils-extension:announcements", "extensionmanager-extension:plugin")
    assert config["disabledExtensions"] == [f"@jupyterlab/{name}" for name in extensions]
