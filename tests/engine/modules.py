"""The engine's files, and a page that has what they export."""

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from playwright.sync_api import Page, Route

from course_lib import classroom
from course_lib.site.models import export_model

ENGINE = Path(classroom.__file__).parent / "widgets" / "engine"
FILES = sorted(ENGINE.glob("*.js"))
SITE = "http://engine.test"
START = """async (names) => {
    for (const name of names) Object.assign(window, await import(`/engine/${name}`));
    const read = async (name) => {
        const buffer = await (await fetch(`/models/${name}.safetensors`)).arrayBuffer();
        return { weights: readSafetensors(buffer), ...(await (await fetch(`/models/${name}.json`)).json()) };
    };
    const known = {};
    window.exported = (name) => (known[name] ??= read(name));
}"""


class Engine:
    """A page on which each name that a file of the engine exports is a global.

    There, `exported(name)` reads what `export_model` writes of a checkpoint: { weights, config, tokenizers }.
    """

    def __init__(self, page: Page, folder: Path):
        self.page, self.folder = page, folder
        page.route("**/*", self._answer)
        page.goto(SITE)
        page.evaluate(START, [file.name for file in FILES])

    def run(self, body: str, given: Any = None) -> Any:
        """What the body of an async function, which knows `given`, returns."""
        return self.page.evaluate(f"async (given) => {{ {body} }}", given)

    def refusal(self, body: str, given: Any = None) -> str:
        """The message of the error that such a body ends with."""
        return self.run(f"try {{ {body} }} catch (error) {{ return error.message; }}", given)

    def _answer(self, route: Route) -> None:
        """What the page asks for, from this machine's files: an empty page, /engine/FILE or /models/FILE."""
        _, folder, *name = urlsplit(route.request.url).path.split("/")
        if folder == "engine":
            route.fulfill(body=(ENGINE / name[0]).read_bytes(), content_type="text/javascript")
        elif folder == "models":
            if not (self.folder / name[0]).exists():
                export_model(Path(name[0]).stem, self.folder)
            route.fulfill(body=(self.folder / name[0]).read_bytes())
        else:
            route.fulfill(body="<!doctype html>", content_type="text/html")


def relative_error(found: Any, expected: Any) -> float:
    """The largest difference, as a fraction of the largest value expected; ValueError unless the sizes agree."""
    found, expected = np.asarray(found, dtype=np.float64).ravel(), np.asarray(expected, dtype=np.float64).ravel()
    if found.shape != expected.shape:
        raise ValueError(f"got {found.size} numbers, expected {expected.size}")
    return float(np.abs(found - expected).max() / np.abs(expected).max())
