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
from collections.abc import Iterator
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
IS_READY = "document.documentElement?.dataset.ready === 'yes'"


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
    options = {"preferCSSPageSize": True, "printBackground": True, "generateDocumentOutline": True}
    with _opened(page, browser=browser, query=query, making=to.name) as session:
        data = base64.b64decode(session.call("Page.printToPDF", generateTaggedPDF=True, **options)["data"])
    write_file(to, data)
    return to


HIDE_HEADINGS = "document.head.append(Object.assign(document.createElement('style'), {textContent: '.top{opacity:0}'}))"
SLIDE = """
new Promise((done) => {
  Reveal.slide(NUMBER, 0, -1);
  const slide = Reveal.getCurrentSlide(), top = slide.querySelector(".top"), box = top.getBoundingClientRect();
  const style = getComputedStyle(top.firstElementChild || top);
  const shown = [...slide.querySelectorAll(".body img")].filter((image) => image.checkVisibility());
  const about = {
    title: slide.getAttribute("aria-label"), box: [box.x, box.y, box.width, box.height],
    size: parseFloat(style.fontSize), colour: style.color.match(/[0-9]+/g).slice(0, 3).map(Number),
    alt: shown.map((image) => image.alt).filter(Boolean).join(" "),
  };
  requestAnimationFrame(() => requestAnimationFrame(() => done(JSON.stringify(about))));
})
"""


def slide_pictures(deck: Path, *, browser: str) -> list[dict[str, Any]]:
    """Each slide of a deck, without its heading, as a picture (`png`) of 1920 x 1080 pixels.

    `title`, and its `box` (x, y, width, height), `size` and `colour`, say where the heading stands on a slide of
    1280 x 720 pixels; `alt` says what the figures show. Raises CannotStart if the browser fails.
    """
    with _opened(deck, browser=browser, making="the slides") as session:
        session.call("Emulation.setDeviceMetricsOverride", width=1280, height=720, deviceScaleFactor=1.5, mobile=False)
        session.evaluate(HIDE_HEADINGS)
        slides = []
        for number in range(session.evaluate("Reveal.getTotalSlides()")):
            about = json.loads(session.evaluate(SLIDE.replace("NUMBER", str(number))))
            png = base64.b64decode(session.call("Page.captureScreenshot", format="png")["data"])
            slides.append(about | {"png": png})
        return slides


@contextlib.contextmanager
def _opened(page: Path, *, browser: str, making: str, query: str = "") -> Iterator["_Session"]:
    """A browser with this page, which is ready. Raises CannotStart if it fails, also later on."""
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
            end = time.monotonic() + SECONDS
            with contextlib.closing(_Session(_port(running, Path(profile), end))) as session:
                session.call("Page.navigate", url=page.resolve().as_uri() + query)
                while not session.evaluate(IS_READY):
                    if time.monotonic() > end:
                        raise _Failed(f"the page was not ready within {SECONDS} seconds")
                    time.sleep(0.1)
                yield session
        except (_Failed, OSError, ValueError, websocket.WebSocketException) as error:
            raise CannotStart(f"{browser} did not print {making}: {error}.") from error
        finally:
            running.terminate()
            try:
                running.wait(timeout=10)
            except subprocess.TimeoutExpired:
                running.kill()


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

    def evaluate(self, expression: str) -> Any:
        """What an expression is, or will be, in the page."""
        answer = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise _Failed(answer["exceptionDetails"].get("text", "a script failed"))
        return answer["result"].get("value")

    def close(self) -> None:
        self.socket.close()
