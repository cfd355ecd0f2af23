"""Scripts of playgrounds: one text without imports, and a widget that hears the page and answers it."""

import re

import numpy as np
import pytest

from course_lib.classroom.widgets import script
from course_lib.classroom.widgets.script import FOLDER, NAME, ScriptWidget, bundle, classic, module

FOUR = 'import { four } from "../engine/four.js";\n'
PLAYGROUNDS = ("softmax", "mask")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """folder(name=text, ...): scripts of our own, in the place of the course's."""
    monkeypatch.setattr(script, "FOLDER", tmp_path / "browser")

    def write(**texts):
        for name, text in texts.items():
            path = tmp_path / name.replace("__", "/")
            path.parent.mkdir(exist_ok=True)
            path.with_suffix(".js").write_text(text)

    return write


def test_a_bundle_holds_each_module_once_after_those_that_it_imports(folder):
    folder(
        browser__one=f'import {{ two, three }} from "./two.js";\n{FOUR}\nexport function one() {{}}\n',
        browser__two=f"{FOUR}export const two = 2;\nexport async function three() {{}}\n",
        engine__four="export class four {}\nconst exported = 4;\n",
    )
    text = bundle("one")
    assert NAME.findall(text) == ["four", "exported", "two", "three", "one"]
    assert not re.search("^(import|export )", text, re.MULTILINE)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('import { a } from "./gone.js";\n', "no script browser/gone.js"),
        ('import a from "./two.js";\n', "has the line 'import a from"),
        ("export default 3;\n", "has the line 'export default 3;'"),
        ('import { two } from "./two.js";\nconst two = 3;\n', "scripts two.js, one.js become one .* define two"),
    ],
)
def test_a_script_that_cannot_be_joined_is_named(folder, text, sentence):
    folder(browser__one=text, browser__two="export const two = 2;\n")
    with pytest.raises(ValueError, match=sentence):
        bundle("one")


def test_every_script_of_the_course_can_be_joined():
    names = [file.stem for file in FOLDER.glob("*.js")]
    assert {"kit", *PLAYGROUNDS} <= set(names)
    for name in names:
        assert f"function {name}(" in module(name) or name not in PLAYGROUNDS


def test_the_kit_and_its_first_playgrounds_stay_short():
    lines = {
        name: len((FOLDER / f"{name}.js").read_text(encoding="utf-8").splitlines()) for name in ("kit", *PLAYGROUNDS)
    }
    assert lines.pop("kit") <= 400 and max(lines.values()) <= 120


@pytest.mark.parametrize("name", PLAYGROUNDS)
def test_both_forms_come_from_one_function_and_ask_no_network(name):
    widget, page = module(name), classic(name)
    assert widget.count(f"function {name}(") == page.count(f"function {name}(") == 1
    assert f"playgrounds.{name} = {name};" in page and "export default { render(" in widget
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", widget + page)


# ------------------------------------------------------------------------------------------- the widget


def says(widget, message):
    """What comes back when the page sends a message: each content, with its buffers."""
    sent = []
    widget.send = lambda content, buffers=None: sent.append((content, buffers))
    widget._handle_custom_msg(message, [])
    return sent


def test_the_page_says_that_it_was_touched_once_and_which_goals_it_saw():
    touched = []
    widget = ScriptWidget("mask", {"goals": ["a", "b"]}, touched=lambda: touched.append(True))
    assert widget.reached == [False, False]
    for message in ({"touched": True}, {"touched": True}, {"reached": [False, True]}):
        assert says(widget, message) == []
    assert touched == [True] and widget.reached == [False, True]


def test_a_question_is_answered_by_json_by_an_array_or_by_a_sentence():
    answers = {
        "double": lambda number: 2 * number,
        "logits": lambda payload: np.array(payload["ids"], np.float32).reshape(1, -1).T / 2,
        "wide": lambda _: np.zeros(2, np.float16),
        "bad": lambda _: {}["key"],
    }
    widget = ScriptWidget("mask", {}, answers=answers)

    def ask(name, payload=None):
        ((content, buffers),) = says(widget, {"ask": name, "question": 7, "payload": payload})
        assert content.pop("answer") == 7
        return content, buffers

    assert ask("double", 4) == ({"value": 8}, None)
    content, (data,) = ask("logits", {"ids": [1, 3]})
    assert content == {"dtype": "float32"} and np.frombuffer(data, np.float32).tolist() == [0.5, 1.5]
    assert ask("wide")[0]["error"] == "An answer is an array of float32, float64, int32, uint8, not of float16."
    assert ask("bad")[0]["error"] == "KeyError: 'key'"
    assert ask("triple")[0]["error"] == "This playground answers double, logits, wide, bad, not 'triple'."
