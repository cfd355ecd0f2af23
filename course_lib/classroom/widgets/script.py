"""Playgrounds that are computed in the browser: their scripts, and the widget that runs one in JupyterLab.

A playground is a JavaScript function of the same name as its file in the folder `browser`:

    export function softmax({ root, config, kernel })

It builds its view inside the element `root` and returns a function that removes it. `config` comes from Python as
JSON. `kernel` is null on a site and in a deck; in JupyterLab it sends messages to `ScriptWidget` and asks it questions.
Modules import each other in lines like `import { bars } from "./kit.js";`, so that one script can be made of them
without a build step, and a page with it can be opened as a file.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import anywidget
import numpy as np
import traitlets

FOLDER = Path(__file__).with_name("browser")
IMPORT = re.compile(r'^import \{ [\w, ]+ \} from "(\.{1,2}/(?:\w+/)?\w+\.js)";\n', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:async )?(?:function|const|let|class)\b)", re.MULTILINE)
NAME = re.compile(r"^(?:async )?(?:function\*?|const|let|class) (\w+)", re.MULTILINE)
OTHER = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)
ARRAYS = ("float32", "float64", "int32", "uint8")  # what kernel.js can read

Answer = Callable[[Any], Any]


def bundle(*names: str) -> str:
    """Return one script with these modules of the folder `browser` and all that they import, each once.

    Raises ValueError for a module that is not there, an import or export of another form, or a name that two of the
    modules define.
    """
    texts: dict[Path, str] = {}
    for name in names:
        _collect(FOLDER / f"{name}.js", texts)
    script = "\n".join(texts.values())
    if twice := [name for name, count in Counter(NAME.findall(script)).items() if count > 1]:
        files = ", ".join(path.name for path in texts)
        raise ValueError(f"The scripts {files} become one text, but two of them define {', '.join(twice)}.")
    return script


def _collect(path: Path, texts: dict[Path, str]) -> None:
    """Add a module after those that it imports; modules of one folder may not import each other in a circle."""
    if path in texts:
        return
    if not path.is_file():
        raise ValueError(f"There is no script {path.parent.name}/{path.name} beside the widgets.")
    text = path.read_text(encoding="utf-8")
    for other in IMPORT.findall(text):
        _collect((path.parent / other).resolve(), texts)
    text = EXPORT.sub("", IMPORT.sub("", text))
    if found := OTHER.search(text):
        raise ValueError(
            f"{path.name} has the line {found[0]!r}; a script imports in one line, as in "
            'import { bars } from "./kit.js";, and exports named functions, constants and classes.'
        )
    texts[path] = text


def style() -> str:
    """Return the CSS of all playgrounds."""
    return (FOLDER / "kit.css").read_text(encoding="utf-8")


def module(name: str) -> str:
    """Return a playground as an anywidget's module."""
    return f"""{bundle(name, "kernel")}
export default {{ render({{ model, el }}) {{
  const kernel = kernelOf(model), remove = {name}({{ root: el, config: model.get("config"), kernel }});
  return () => {{ remove(); kernel.close(); }};
}} }};
"""


def classic(*names: str) -> str:
    """Return a script for pages without a kernel, also such as are opened as files.

    It brings the style, and puts the functions of these playgrounds into `window.coursePlaygrounds` by their names and
    `startPlayground(box)` into `window`.
    """
    registered = "\n".join(f"playgrounds.{name} = {name};" for name in names)
    return f"""(function () {{
"use strict";
{bundle(*names, "start")}
if (!document.querySelector("style[data-course-play]")) {{
  document.head.append(Object.assign(document.createElement("style"), {{ textContent: {json.dumps(style())} }}));
  document.head.lastChild.dataset.coursePlay = "";
}}
const playgrounds = (window.coursePlaygrounds ??= {{}});
{registered}
window.startPlayground = startPlayground;
}})();
"""


class ScriptWidget(anywidget.AnyWidget):
    """A playground in JupyterLab.

    `touched` is called when the learner moves something for the first time; `reached` tells which goals the page has
    seen. `answers` are functions by name that the page can ask: each takes JSON and returns JSON, or a NumPy array of
    one of the types ARRAYS, which the page receives as a typed array. An error becomes a sentence there.
    """

    _css = FOLDER / "kit.css"
    config = traitlets.Dict().tag(sync=True)

    def __init__(
        self,
        name: str,
        config: Mapping[str, Any],
        *,
        answers: Mapping[str, Answer] | None = None,
        touched: Callable[[], None] | None = None,
    ):
        super().__init__(config=dict(config), _esm=module(name))
        self.answers, self.touched = dict(answers or {}), touched
        self.reached: list[bool] = [False] * len(config.get("goals", ()))
        self.on_msg(lambda _, message, __: self._hear(message))

    def _hear(self, message: Mapping[str, Any]) -> None:
        if "ask" in message:
            self._answer(message["ask"], message["question"], message.get("payload"))
        if message.get("touched") and self.touched:
            touched, self.touched = self.touched, None
            touched()
        if "reached" in message:
            self.reached = [bool(goal) for goal in message["reached"]]

    def _answer(self, name: str, question: int, payload: Any) -> None:
        reply: dict[str, Any] = {"answer": question}
        try:
            if name not in self.answers:
                raise ValueError(f"This playground answers {', '.join(self.answers) or 'nothing'}, not {name!r}.")
            value = self.answers[name](payload)
            if not isinstance(value, np.ndarray):
                self.send(reply | {"value": value})
                return
            if value.dtype.name not in ARRAYS:
                raise ValueError(f"An answer is an array of {', '.join(ARRAYS)}, not of {value.dtype.name}.")
            self.send(reply | {"dtype": value.dtype.name}, [np.ascontiguousarray(value).tobytes()])
        except Exception as error:  # whatever the learner's own model does, the page answers with a sentence
            reason = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
            self.send(reply | {"error": reason})
