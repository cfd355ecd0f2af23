"""Lesson 04 on the page: gates are dragged, and cells read a text; numbers, words and goals are Python's."""

import random

import numpy as np
import pytest

from course_lib.lessons.lesson_04.playground import LETTERS, MARKS, MESSAGE, SENTENCES, SIGNALS, TEXTS, run
from tests.browser.explorers import explorer
from tests.browser.played import computed, judged_as_in_python

pytestmark = pytest.mark.needs("chromium")


def machine_states():
    draw = random.Random(4)
    for _ in range(100):
        gates = {gate: draw.choice([0.0, 1.0, draw.randrange(101) / 100]) for gate in "fio"}
        yield {"signal": draw.choice(list(SIGNALS)), "open": draw.choice(["always", "first"]), **gates}
    always = {"signal": MARKS, "f": 1.0, "i": 1.0, "o": 0.5, "open": "always"}
    yield from (always, always | {"signal": MESSAGE, "open": "first"}, always | {"f": 0.93, "open": "first"})


def test_the_page_computes_and_says_what_python_does(blank):
    machine, states = explorer("machine"), list(machine_states())
    found = computed(
        blank, machine, states,
        """([states, config]) => states.map((state) => {
          const run = machineRun(state, config), goals = machineGoals.map((goal) => goal(state, run, config));
          return { ...run, goals, words: machineWords(state, config) };
        })""",
    )  # fmt: skip
    assert judged_as_in_python(machine, states, found).all()
    for state, here in zip(states, found, strict=True):
        its = run(state)
        np.testing.assert_allclose(here["write"], its.write)
        np.testing.assert_allclose(here["cell"], its.cell, atol=1e-12)
        np.testing.assert_allclose(here["hidden"], its.output, atol=1e-12)


def test_a_gate_is_dragged_and_a_goal_waits_until_it_is_let_go(play):
    here = play(explorer("machine"), kernel=True)
    before, forget = here.axes(), here.slider("forget f", exact=True)
    here.choose("in the first step only")
    here.drag(forget.locator(".play-grip"), (0, -300))
    assert forget.get_attribute("aria-valuenow") == "1"
    here.shows("it ends at 1.00")
    here.let_go(True, False, False)
    assert here.axes() == before


def test_the_keyboard_makes_the_cell_count_and_it_is_said(play):
    here = play(explorer("machine"))
    here.choose("a mark every ten steps")
    here.keys("forget f", *["PageUp"] * 3)
    assert here.reached() == 1
    here.keys("output o", "Home")
    here.says("f = 1.00, i = 1.00, o = 0.00. After 50 steps the cell state is 5.00")


# ------------------------------------------------------------------------------------------------ cells over a text

READ = """async ([asked, config]) => {
  const part = async (kind) => (await fetch(`/models/lstm_characters.${kind}`)).arrayBuffer();
  const { vocabulary } = JSON.parse(new TextDecoder().decode(await part("json"))).tokenizers.text;
  const model = { weights: readSafetensors(await part("safetensors")), vocabulary }, read = {};
  return asked.map(([text, cell]) => {
    const values = (read[text] ??= cellsOf(model, text)).map((all) => all[cell]);
    const goals = cellGoals.map((goal) => goal(text, values, config.texts.map(([, text]) => text)));
    return { values, words: cellWords(text, values, cell), goals };
  });
}"""


def cells_of_texts():
    yield from ((text, cell) for text in TEXTS for cell in (0, SENTENCES, LETTERS, *range(10, 31)))
    own = "We read the whole text again. It takes a long time to finish. Nothing else has to be done."
    yield from (("a", 3), ("No end here", SENTENCES), ("It is. 'x' it isn't", 3))
    yield from ((own, cell) for cell in range(200, 250))
    yield from ((own.replace("It takes a long time to finish", "It ends"), SENTENCES), (own[:61], SENTENCES))


def test_the_page_reads_a_text_as_python_does(play):
    cells, asked = explorer("cells"), list(cells_of_texts())
    found = computed(play(cells).page, cells, asked, READ)
    assert judged_as_in_python(cells, [{"text": text, "cell": cell} for text, cell in asked], found).all()
    for (text, cell), here in zip(asked, found, strict=True):
        values = cells.answers["read"]({"text": text}).reshape(len(text), -1)[:, cell]
        np.testing.assert_allclose(here["values"], values, atol=1e-4)


def test_a_text_is_read_with_each_key_and_goals_wait(play):
    here = play(explorer("cells"), kernel=True)
    here.shows("largest absolute value")
    assert here.told() == []
    here.write("Cell", str(SENTENCES))
    here.has_reached(1)
    here.write("Text", "")
    here.shows("Write something for the network to read.")
    here.type_keys("Text", "Two words.")
    here.says(f"Cell {SENTENCES} over 10 characters")
    here.write("Text", "日本")
    here.shows("is not in the vocabulary of 77")
