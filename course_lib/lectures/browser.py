"""A browser that prints: Chromium, Chrome or Edge without a window, told by its own protocol when to print.

Its command-line switch for printing does not wait until a page has typeset its mathematics, hence the protocol.
"""

import base64
import contextlib
import json
import os
import shutil
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

import websocket

from course_lib.data.place import CannotStart
from course_lib.lectures.deck import write_file

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "microsoft-edge", "msedge", "chrome")
PLACES = (  # where they lie when they are not on the path
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
    r"C:\Program Files\Google\Chrome\Application\chrome.exe",
    r"C:\Program Files (x86)\Microsoft\Edge\Application\msedge.exe",
)
SECONDS = 120  # that a browser may take for one PDF
IS_READY = "document.documentElement.dataset.ready === 'yes'"


class _Failed(Exception):
    """The browser did not do what it should; the message says what."""


def find_browser() -> str:
    """The path of a browser that can print: COURSE_CHROMIUM, or the first that is found.

    Raises CannotStart if there is none.
    """
    if named := os.environ.get("COURSE_CHROMIUM"):
        if not shutil.which(named):
            raise CannotStart(f"COURSE_CHROMIUM names {named}, which is not a program. Name a Chromium or a Chrome.")
        return named
    found = [path for name in NAMES if (path := shutil.which(name))]
    found += [place for place in PLACES if Path(place).is_file()]
    if not found:
        raise CannotStart(
            "A PDF is printed by Chromium, Chrome or Edge, and none of them is on this machine. Install one "
            "(on Debian or Ubuntu: sudo apt-get install chromium), or name it in COURSE_CHROMIUM. The slides "
            "themselves need none: course slides"
        )
    return found[0]


def print_pdf(page: Path, to: Path, *, browser: str, query: str = "") -> Path:
    """Print a page that says when it is ready (data-ready="yes" on its root), at the paper size of its style sheet.

    Raises CannotStart if the browser fails or the file cannot be written.
    """
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = [
            browser, "--headless", "--disable-gpu", "--no-first-run", "--disable-background-networking",
            "--disable-component-update", "--disable-sync", "--remote-debugging-port=0",
            f"--user-data-dir={profile}", "about:blank",
        ]  # fmt: skip
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            command.insert(1, "--no-sandbox")  # in a container everyone is root; the page is our own
        try:
            running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        except OSError as error:
            raise CannotStart(f"{browser} cannot be started: {error.strerror}.") from error
        try:
            data = _printed(running, Path(profile), page.resolve().as_uri() + query)
        except (_Failed, OSError, ValueError, websocket.WebSocketException) as error:
            raise CannotStart(f"{browser} did not print {to.name}: {error}.") from error
        finally:
            running.terminate()
            try:
                running.wait(timeout=10)
            except subprocess.TimeoutExpired:
                running.kill()
    write_file(to, data)
    return to


def _printed(running: subprocess.Popen, profile: Path, address: str) -> bytes:
    end = time.monotonic() + SECONDS
    port = _port(running, profile, end)
    with contextlib.closing(_Session(port)) as session:
        session.call("Page.navigate", url=address)
        while not session.call("Runtime.evaluate", expression=IS_READY)["result"].get("value"):
            if time.monotonic() > end:
                raise _Failed(f"the page was not ready within {SECONDS} seconds")
            time.sleep(0.1)
        options = {"preferCSSPageSize": True, "printBackground": True, "generateDocumentOutline": True}
        return base64.b64decode(session.call("Page.printToPDF", generateTaggedPDF=True, **options)["data"])


def _port(running: subprocess.Popen, profile: Path, end: float) -> int:
    """The port that the browser listens on, which it writes into its profile."""
    while time.monotonic() < end:
        with contextlib.suppress(OSError):
            lines = (profile / "DevToolsActivePort").read_text(encoding="ascii").splitlines()
            if len(lines) == 2:
                return int(lines[0])
        if running.poll() is not None:
            raise _Failed(f"it ended at once with exit code {running.returncode}")
        time.sleep(0.05)
    raise _Failed(f"it did not start within {SECONDS} seconds")


class _Session:
    """A new page of the browser, and calls of its protocol."""

    def __init__(self, port: int) -> None:
        new = urllib.request.Request(f"http://127.0.0.1:{port}/json/new?about:blank", method="PUT")
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(new, timeout=30) as answer:
            address = json.load(answer)["webSocketDebuggerUrl"]
        self.socket = websocket.create_connection(
            address, timeout=SECONDS, suppress_origin=True, http_no_proxy=["127.0.0.1", "localhost"]
        )
        self.number = 0

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self.number += 1
        self.socket.send(json.dumps({"id": self.number, "method": method, "params": parameters}))
        while True:
            answer = json.loads(self.socket.recv())
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise _Failed(f"{method}: {answer['error'].get('message')}")
                return answer["result"]

    def close(self) -> None:
        self.socket.close()
