"""JupyterLab as a learner meets it: a server of its own, a real browser, and a record of all that goes wrong."""

import contextlib
import json
import os
import re
import secrets
import shutil
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from urllib.parse import quote, urlsplit

from playwright.sync_api import Locator, Page, Response, TimeoutError, expect

from course_lib.commands.lab import config_path

ROOT = Path(__file__).parents[2]
SCREENSHOTS = ROOT / "build" / "screenshots"
HOME = {"127.0.0.1", "localhost"}

CHROMIUM_FLAGS = [
    "--no-sandbox",  # Chromium refuses to run as root with one
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

AXE = """
async (part) => {
  const found = await axe.run(part || document, {resultTypes: ["violations"]});
  return found.violations.filter((one) => ["serious", "critical"].includes(one.impact))
    .map((one) => one.id + ": " + one.nodes.map((node) => node.html.slice(0, 90)).join(" | "));
}
"""

SECOND = 1000  # Playwright counts in milliseconds
PATIENCE = 240  # seconds, for whatever should happen at once: the machine may be busy


class Lab:
    """A JupyterLab server over a folder of notebooks, with homes of its own for learner and Jupyter."""

    def __init__(self, folder: Path):
        self.notebooks, self.home = folder / "notebooks", folder / "course-home"
        self.log, self.token = folder / "server.log", secrets.token_hex(16)
        self.kernel_was_shut_down = False
        for place in (self.notebooks, self.home):
            place.mkdir(parents=True)
        jupyter = {
            f"JUPYTER{name}_DIR": str(folder / f"jupyter{name.lower()}")
            for name in ("_CONFIG", "_DATA", "_RUNTIME", "LAB_SETTINGS", "LAB_WORKSPACES")
        }
        self.env = (
            os.environ
            | jupyter
            | {
                "COURSE_HOME": str(self.home),
                "IPYTHONDIR": str(folder / "ipython"),
                "JUPYTER_CONFIG_PATH": config_path(),  # what `course lab` sets too
            }
        )
        for name in ("MPLBACKEND", "COURSE_PROGRESS"):  # a learner sets neither
            self.env.pop(name, None)

    def __enter__(self) -> "Lab":
        command = [
            sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root",
            "--ServerApp.ip=127.0.0.1", "--ServerApp.port=0", f"--ServerApp.root_dir={self.notebooks}",
            f"--IdentityProvider.token={self.token}", "--LabApp.expose_app_in_browser=True",
        ]  # fmt: skip
        self.process = subprocess.Popen(
            command, env=self.env, cwd=self.notebooks, stdout=self.log.open("w"), stderr=subprocess.STDOUT
        )
        try:
            self.url = self._wait_for_server(seconds=PATIENCE)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_) -> None:
        if self.process.poll() is None:
            self.process.terminate()  # the server stops its kernels, then itself
            try:
                self.process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def clear(self) -> None:
        """Ask for a server as it was at its start: no kernel, no notebook, no progress, no settings."""
        for kernel in json.loads(self._api("GET", "kernels")):
            self._api("DELETE", f"kernels/{kernel['id']}")
        settings = (self.env["JUPYTERLAB_SETTINGS_DIR"], self.env["JUPYTERLAB_WORKSPACES_DIR"])
        for place in (self.notebooks, self.home, *map(Path, settings)):
            for entry in place.glob("*"):
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        self.kernel_was_shut_down = False

    def _api(self, method: str, path: str) -> bytes:
        request = urllib.request.Request(f"{self.url}api/{path}?token={self.token}", method=method)
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return answer.read()

    def _wait_for_server(self, *, seconds: int) -> str:
        runtime = Path(self.env["JUPYTER_RUNTIME_DIR"])
        end = time.monotonic() + seconds
        while time.monotonic() < end and self.process.poll() is None:
            for file in runtime.glob("jpserver-*.json"):
                with contextlib.suppress(OSError, ValueError):
                    url = json.loads(file.read_text())["url"]
                    urllib.request.urlopen(f"{url}api?token={self.token}", timeout=5).close()
                    return url
            time.sleep(0.1)
        raise RuntimeError(f"JupyterLab did not start within {seconds} s; its log ends:\n{self.log_tail()}")

    def log_tail(self, lines: int = 40) -> str:
        """The end of what the server said."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])


# JupyterLab asks each new kernel for its debugger's state, and says this if the page closes before the answer.
GIVEN_UP = "Could not restore the debugger state: Canceled future for debug_request"

# And this, at times, on a page with widgets whose kernel a test has shut down.
KERNEL_GONE = "uncaught error: Kernel is dead"


class Watch:
    """Everything that a page should not do: errors on its console, failed requests, requests to elsewhere."""

    def __init__(self, page: Page):
        self.problems: list[str] = []
        page.on("pageerror", lambda error: self.problems.append(f"uncaught error: {error}"))
        page.on("console", self._console)
        page.on("request", lambda request: self._host(request.url))
        page.on("websocket", lambda socket: self._host(socket.url))
        page.on("requestfailed", self._failed)
        page.on("response", self._response)

    def _console(self, message) -> None:
        if message.type == "error" and not message.text.startswith(GIVEN_UP):
            self.problems.append(f"console error: {message.text} ({message.location.get('url', '')})")

    def _host(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("data", "blob") and parts.hostname not in HOME:
            self.problems.append(f"request to another machine: {url}")

    def _failed(self, request) -> None:
        if request.failure != "net::ERR_ABORTED":  # the page itself gave it up
            self.problems.append(f"request failed: {request.url}: {request.failure}")

    def _response(self, response) -> None:
        if response.status >= 400:
            self.problems.append(f"answer {response.status}: {response.url}")


class NotebookPage:
    """One notebook, open in JupyterLab in a browser tab."""

    def __init__(self, page: Page, lab: Lab, name: str):
        self.page, self.lab, self.name = page, lab, name
        self.watch = Watch(page)
        page.goto(f"{lab.url}lab/tree/{name}?reset&token={lab.token}")
        page.wait_for_selector(".jp-NotebookPanel .jp-Notebook", timeout=PATIENCE * SECOND)
        self._wait_for_kernel()

    @property
    def problems(self) -> list[str]:
        """What went wrong so far; empty on a good page."""
        expected = KERNEL_GONE if self.lab.kernel_was_shut_down else None
        return [problem for problem in dict.fromkeys(self.watch.problems) if problem != expected]

    # ------------------------------------------------------------------------------- running

    def run_all(self, *, seconds: int = 1800) -> None:
        """Run > Run All Cells, as a learner does; RuntimeError names the cell that fails or is not done in time."""
        before = self._answered()
        self.page.locator(".lm-MenuBar-item", has_text=re.compile("^Run$")).click()
        self.page.locator('.lm-Menu-item[data-command="runmenu:run-all"]').click()
        self._wait_for_answers(before + sum(bool(cell["source"].strip()) for cell in self.code_cells()), seconds)
        if errors := self.errors():
            self.screenshot(f"error-{Path(self.name).stem}")
            raise RuntimeError(f"{self.name} stopped: {'; '.join(errors)}")

    def _wait_for_answers(self, number: int, seconds: int) -> None:
        # Execution counts would not do: a stored notebook has them before it runs.
        end = time.monotonic() + seconds
        while self._answered() < number or self._kernel_status() != "idle":
            if time.monotonic() > end:
                picture = self.screenshot(f"timeout-{Path(self.name).stem}")
                missing = number - self._answered()
                raise RuntimeError(f"after {seconds} s {missing} cells of {self.name} have not run: see {picture}")
            self.page.wait_for_timeout(200)

    def _answered(self) -> int:
        """How many cells the kernel has run since the page was opened, failed and given up ones included."""
        return self.page.evaluate("() => courseReplies.filter(id => courseEnded.includes(id)).length")

    def _wait_for_kernel(self) -> None:
        ready = "() => window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel?.status === 'idle'"
        try:
            self.page.wait_for_function(ready, timeout=PATIENCE * SECOND)
        except TimeoutError as error:
            picture = self.screenshot(f"no-kernel-{Path(self.name).stem}")
            said = f"no idle kernel after {PATIENCE} s: see {picture}; the server's log ends:\n{self.lab.log_tail()}"
            raise RuntimeError(said) from error
        self.page.evaluate("() => { window.courseReplies = []; window.courseEnded = []; window.courseRuns = []; }")
        self._notebook(
            "void panel.sessionContext.session.kernel.anyMessage.connect((_, { msg }) => {"
            " if (msg.header.msg_type === 'execute_reply') window.courseReplies.push(msg.parent_header.msg_id);"
            " if (msg.header.msg_type === 'execute_input') window.courseRuns.push(msg.content.code); })"
        )
        # The reply and the outputs come by two channels: a cell is done when both have arrived.
        self._notebook(
            "void panel.sessionContext.session.kernel.iopubMessage.connect((_, msg) => {"
            " if (msg.content.execution_state === 'idle') window.courseEnded.push(msg.parent_header.msg_id); })"
        )

    def executed(self) -> list[str]:
        """The sources that the kernel says it has run since the page was opened, in their order."""
        return self.page.evaluate("() => window.courseRuns")

    def _kernel_status(self) -> str:
        return self._notebook("panel.sessionContext.session.kernel.status")

    def _notebook(self, expression: str):
        """The value of an expression on the open panel and its code cells; JupyterLab draws only visible cells."""
        return self.page.evaluate(
            "() => { const panel = window.jupyterapp.shell.currentWidget; const cells = panel.content.widgets;"
            f" const codeCells = cells.filter(cell => cell.model.type === 'code'); return {expression}; }}"
        )

    # ------------------------------------------------------------------------------- reading

    def code_cells(self) -> list[dict]:
        """The code cells as JupyterLab holds them, outputs included."""
        cells = self._notebook("codeCells.map(cell => cell.model.toJSON())")
        return [cell | {"source": "".join(cell["source"])} for cell in cells]

    def errors(self) -> list[str]:
        """What cells have raised."""
        return [
            f"code cell {number}: {output['ename']}: {output['evalue']}"
            for number, cell in enumerate(self.code_cells(), start=1)
            for output in cell["outputs"]
            if output["output_type"] == "error"
        ]

    def cell(self, text: str) -> Locator:
        """The first code cell whose source holds the text, scrolled into view; ValueError if there is none."""
        cells = self._notebook("cells.map(cell => [cell.model.type, cell.model.sharedModel.getSource()])")
        for index, (kind, source) in enumerate(cells):
            if kind == "code" and text in source:
                return self._scrolled_to(index)
        raise ValueError(f"{self.name} has no code cell with {text!r} in it")

    def written_answer(self, grade_id: str) -> Locator:
        """The cell of an assignment with this grade_id, scrolled into view."""
        return self._scrolled_to(
            self._notebook(f"cells.findIndex(cell => cell.model.getMetadata('nbgrader')?.grade_id === '{grade_id}')")
        )

    def _scrolled_to(self, index: int) -> Locator:
        self._notebook(f"panel.content.scrollToItem({index}, 'center').catch(() => null)")
        found = self.page.locator(f'.jp-Notebook .jp-Cell[data-windowed-list-index="{index}"]')
        expect(found).to_be_visible(timeout=PATIENCE * SECOND)
        found.scroll_into_view_if_needed()
        return found

    # ------------------------------------------------------------------------------- doing

    def run_cell(self, text: str, *, seconds: int = 600) -> Locator:
        """Click into the code cell that holds the text and press Ctrl+Enter."""
        cell = self.cell(text)
        before = self._answered()
        cell.locator(".jp-InputArea-editor").click()
        self.page.keyboard.press("Control+Enter")
        self._wait_for_answers(before + 1, seconds)
        return self.cell(text)

    def replace_source(self, text: str, source: str) -> Locator:
        """Type new source into the code cell that holds the text."""
        cell = self.cell(text)
        content = cell.locator(".cm-content")
        content.click()
        expect(content).to_be_focused(timeout=PATIENCE * SECOND)  # keys pressed before that are lost
        self.page.keyboard.press("Control+a")
        self.page.keyboard.insert_text(source)
        expect(content).to_contain_text(source.splitlines()[0], timeout=PATIENCE * SECOND)
        return cell

    def move_slider(self, slider: Locator, steps: int) -> None:
        """Move an ipywidgets slider by arrow keys; a negative number of steps moves it down."""
        slider.locator(".noUi-handle").first.focus()
        for _ in range(abs(steps)):
            self.page.keyboard.press("ArrowRight" if steps > 0 else "ArrowLeft")

    def save(self) -> None:
        """File > Save Notebook, by its shortcut, until the server says that the file is written."""
        self.page.locator(".jp-Notebook").click(position={"x": 4, "y": 4})
        with self.page.expect_response(self._is_its_save, timeout=PATIENCE * SECOND) as answer:
            self.page.keyboard.press("Control+s")
        if not answer.value.ok:
            raise RuntimeError(f"{self.name} was not saved: {answer.value.status} {answer.value.text()}")

    def _is_its_save(self, response: Response) -> bool:
        address = urlsplit(response.url).path
        return response.request.method == "PUT" and address.endswith(f"/api/contents/{quote(self.name)}")

    def shut_down_kernel(self) -> None:
        """Kernel > Shut Down Kernel: the next page of this notebook starts a new one."""
        self.page.locator(".lm-MenuBar-item", has_text=re.compile("^Kernel$")).click()
        self.page.locator('.lm-Menu-item[data-command="kernelmenu:shutdown"]').click()
        self.lab.kernel_was_shut_down = True
        gone = "() => !window.jupyterapp.shell.currentWidget.sessionContext.session?.kernel"
        self.page.wait_for_function(gone)

    def screenshot(self, name: str, of: Locator | None = None) -> Path:
        """Write build/screenshots/NAME.png, of the window or of one element, in a window high enough for it."""
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        path = SCREENSHOTS / f"{name}.png"
        window = self.page.viewport_size
        if of is not None and of.bounding_box()["height"] > window["height"] - 200:  # bars above and below
            self.page.set_viewport_size(window | {"height": int(of.bounding_box()["height"]) + 300})
            of.scroll_into_view_if_needed()
        (of or self.page).screenshot(path=path)
        self.page.set_viewport_size(window)
        return path
