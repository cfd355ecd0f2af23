"""The playgrounds of lessons 14 to 17 show what their models do, and know when a goal is reached."""

import numpy as np
import pytest
import torch

from course_lib.data.checkpoints import load_trained
from course_lib.functional.ctc import collapse
from course_lib.functional.images import standardise
from course_lib.lessons.lesson_14 import playground as segmentation
from course_lib.lessons.lesson_15 import playground as text_and_sound
from course_lib.lessons.lesson_15.recipes import speech
from course_lib.lessons.lesson_16 import control_playground as acting
from course_lib.lessons.lesson_16 import words_playground as words
from course_lib.lessons.lesson_16.recipes import control
from course_lib.lessons.lesson_17 import playground as dreaming
from tests.lessons.common import reached

EXPLORERS = {
    "scene": lambda: segmentation.scene(load_trained("unet").model, load_trained("unet_no_skips").model),
    "drawing": lambda: segmentation.drawing(load_trained("unet").model),
    "transcribe": lambda: text_and_sound.transcribe(load_trained("tones").model),
    "spans": lambda: text_and_sound.spans(load_trained("gaps").model),
    "agent": lambda: acting.agent(load_trained("mazes").model),
    "search": lambda: words.search(load_trained("icon_clip").model),
    "dream": lambda: dreaming.dream(load_trained("boltzmann").model),
    "scores": dreaming.scores,
}


@pytest.fixture(scope="module")
def explorer():
    """A playground by its name, made once."""
    made = {}
    return lambda name: made.get(name) or made.setdefault(name, EXPLORERS[name]())


@pytest.mark.parametrize(("name", "frames"), [("scene", 4), ("drawing", 6), ("transcribe", 2), ("dream", 6)])
def test_a_page_without_a_kernel_steps_through(name, frames, explorer):
    assert explorer(name).stepper().count("<details") == frames


YES, NO, ANY = True, False, None
GOALS = [  # of a playground: a state, and which of its goals are reached there
    ("scene", {}, (NO, NO, NO)),
    ("scene", {"apart": 10}, (YES, NO, NO)),
    ("scene", {"apart": 0, "below": 11}, (YES, ANY, ANY)),  # one upon the other
    ("scene", {"apart": 3, "below": 3}, (NO, ANY, ANY)),
    ("scene", {"first": 7, "second": -1, "across": 32, "side": 44}, (NO, YES, NO)),
    ("scene", {"first": 7, "second": -1, "across": 32, "side": 6}, (NO, NO, YES)),
    ("drawing", {"pad": np.zeros((segmentation.PAD, segmentation.PAD), np.uint8)}, (NO, NO)),
    ("transcribe", {}, (NO, NO, NO)),
    ("transcribe", {"noise": 0.8}, (YES, NO, NO)),
    ("transcribe", {"melody": "CCDEE", "noise": 2.0, "pause": 0}, (ANY, YES, ANY)),
    ("transcribe", {"melody": "CCDEE", "noise": 0.8, "pause": 0}, (ANY, NO, ANY)),
    ("transcribe", {"melody": "CEGc", "noise": 2.0, "pause": 0}, (ANY, NO, ANY)),  # no equal tones
    ("transcribe", {"noise": 2.0}, (NO, NO, YES)),
    ("agent", {}, (NO, NO, NO)),
    ("search", {"query": "zebra crossing"}, (NO, NO, ANY)),
    ("search", {"query": "Green  book", "where": "new names"}, (YES, ANY, ANY)),
    ("search", {"query": "green book"}, (NO, ANY, ANY)),
    ("search", {"query": "fish"}, (ANY, YES, ANY)),
    ("search", {"query": "yellow face"}, (ANY, ANY, YES)),
    ("search", {"query": "sunflower"}, (ANY, NO, NO)),
    ("dream", {"label": dreaming.NONE, "steps": 1}, (NO, NO, NO)),
    ("dream", {"label": 0, "steps": 100}, (YES, ANY, ANY)),
    ("dream", {"label": 0, "start": 8, "steps": 300}, (ANY, YES, ANY)),
    ("dream", {"label": 8, "start": 8, "steps": 300}, (ANY, NO, ANY)),
    ("dream", {"label": dreaming.NONE, "start": 8, "steps": 300}, (ANY, ANY, YES)),
    ("dream", {"label": dreaming.NONE, "start": 0, "steps": 1}, (ANY, ANY, NO)),
    ("scores", {}, (NO, NO, NO)),
    ("scores", {"kind": dreaming.LINEAR, "length": 16}, (YES, NO, NO)),
    ("scores", {"kind": dreaming.LOCAL, "length": 4096}, (ANY, YES, ANY)),
    ("scores", {"kind": dreaming.LINEAR, "length": 16384}, (ANY, ANY, YES)),
]


@pytest.mark.parametrize(("name", "state", "wanted"), GOALS)
def test_a_goal_is_reached_where_it_should_be_and_none_at_the_start(name, state, wanted, explorer):
    found = reached(explorer(name), **state)
    assert len(found) == len(wanted)
    assert all(each is ANY or each == goal for goal, each in zip(found, wanted, strict=True))


# ------------------------------------------------------------------------------------------------------- segmentation


def test_at_half_the_mask_is_the_likelier_of_ground_and_digit(explorer):
    unet, scene = load_trained("unet").model, explorer("scene")
    pixels = segmentation.arranged(scene.state()).pixels
    probs = unet(standardise(pixels[None, None])).softmax(dim=1)[0]
    marked = segmentation.mark(unet, pixels)
    assert torch.equal(marked.classes > 0, probs[0] < 0.5)
    assert segmentation.mark(unet, pixels, threshold=0.95).classes.count_nonzero() < marked.classes.count_nonzero()
    assert [thing.digit for thing in marked.things] == [3, 7]


def test_a_box_stands_around_what_is_marked(explorer):
    pixels = segmentation.arranged(explorer("scene").state(second=-1)).pixels
    marked = segmentation.mark(load_trained("unet").model, pixels)
    (thing,) = marked.things
    x0, y0, x1, y1 = thing.box
    assert marked.classes[y0:y1, x0:x1].count_nonzero() == marked.classes.count_nonzero()
    orange = (segmentation.boxed(marked, 4) == (230, 159, 0)).all(axis=-1)
    assert orange[4 * y0, 4 * x0] and not orange[4 * y0 + 8, 4 * x0 + 8]


def test_without_skips_it_is_less_sure_and_says_so(explorer):
    alt = explorer("scene").frame({"skips": False}).alt
    assert "IoU" in alt and alt != explorer("scene").frame().alt


@pytest.mark.parametrize(("name", "digit"), [("a five", 5), ("a two", 2), ("a four", 4)])
def test_an_example_is_marked_as_its_digit_on_both_grounds(name, digit, explorer):
    pad = segmentation.on_the_pad(segmentation.EXAMPLES[name])
    for ground in ("plain", "coins"):
        assert f"1 object: a {digit}" in explorer("drawing").frame({"pad": pad, "ground": ground}).alt


def test_empty_paper_is_marked_nowhere(explorer):
    paper = np.zeros((segmentation.PAD, segmentation.PAD), np.uint8)
    assert "Draw a digit" in explorer("drawing").frame({"pad": paper}).alt


# ------------------------------------------------------------------------------------------------------ text and sound


def test_the_greedy_path_collapses_to_what_is_said(explorer):
    its = text_and_sound.hear(load_trained("tones").model, speech.TONES.melody("CCDEE"))
    symbols = [text_and_sound.BLANK, *speech.NAMES]
    path = collapse([symbols.index(symbol) for symbol in its.path])
    assert [symbols[number] for number in path] == its.found == its.played == list("CCDEE")
    transcribe = explorer("transcribe")
    alt = transcribe.alt(transcribe.state(melody="CCDEE", noise=0.8))
    assert "Played: C C D E E." in alt and "Collapsed: C C D E E, correct." in alt


def test_without_noise_the_nearest_clean_tone_is_correct_and_without_a_pause_equal_tones_are_one():
    def baseline(tones, pause):
        return text_and_sound.nearest_tones(speech.replace(speech.TONES, noise=0.0).melody(tones, gap=pause))

    assert baseline("CEGc", 4) == [1, 3, 5, 8]
    assert baseline("CCEE", 0) == [1, 3]


def test_the_figure_says_what_was_played_and_the_path(explorer):
    above, below = explorer("transcribe").draw(explorer("transcribe").state()).axes
    titles = [axes.get_title("left") for axes in (above, below)]
    assert titles == ["played: C E G c", "collapsed: C E G c (correct)"]
    assert sum(text.get_text() == text_and_sound.BLANK for text in below.texts) > 3


def test_a_span_is_what_was_removed_and_the_table_has_a_row_for_each(explorer):
    its = text_and_sound.filled(load_trained("gaps").model, 0, rate=0.3, mean_span=3, draw=0)
    gone = [word for word, dropped in zip(its.words, its.dropped, strict=True) if dropped]
    assert [word for span in its.removed for word in span] == gone and len(its.generated) == len(its.removed)
    spans = explorer("spans")
    assert spans.draw(spans.state(rate=0.3)).count("<tr>") == 1 + len(its.removed)


def test_goals_of_the_spans_can_be_reached_and_none_is_at_the_start(explorer):
    spans = explorer("spans")
    assert not any(reached(spans))
    states = [spans.state(text=t, rate=r, length=n, draw=d) for t in range(4) for r in (0.15, 0.3) for n in (2, 4, 5)
              for d in range(1, 11)]  # fmt: skip
    assert all(any(goal(state) for state in states) for goal in spans.goals)


# ----------------------------------------------------------------------------------------------------- acting, dreaming


def test_the_agent_is_asked_and_goals_can_be_reached(explorer):
    asked = explorer("agent")
    assert "Asked for -10, it got -" in asked.alt(asked.state())
    states = [{"asked": want, "pair": pair} for want in (-40, -34, -28, -22, 0) for pair in range(len(acting.PAIRS))]
    found = [reached(asked, **state) for state in states]
    assert [any(column) for column in zip(*found, strict=True)] == [True, True, True]


def test_all_returns_at_once_give_the_trajectory_of_each(explorer):
    start, goal = control.pairs()["test"][0].tolist()
    cells = acting.trajectories(load_trained("mazes").model, start, goal)
    assert cells.shape == (41, 41) and (cells[:, 0] == start).all()
    steps, asked = int((cells[10] >= 0).sum()) - 1, explorer("agent")
    assert f"it got {-steps}," in asked.alt(asked.state(asked=-10, pair=0))


def test_it_says_how_the_chains_are_classified(explorer):
    dream = explorer("dream")
    alt = dream.frame(dream.state(label=0, steps=100)).alt
    assert alt.startswith("The label 0 is clamped. After 100 Gibbs steps") and " as 0" in alt
    assert dream.frame(dream.state(label=dreaming.NONE)).alt.startswith("No label is clamped.")


def test_costs_are_counted_by_hand_for_a_short_text():
    assert dreaming.attention_costs(dreaming.SOFTMAX, 3, 2, 1) == (2 * 2 * 6, 9, 12)
    assert dreaming.attention_costs(dreaming.FLASH, 100, 8, 1)[:2] == (2 * 8 * 5050, 6400)
    assert dreaming.attention_costs(dreaming.LOCAL, 3, 2, 1) == (2 * 2 * (1 + 2 + 2), 6, 8)
    assert dreaming.attention_costs(dreaming.LINEAR, 3, 2, 1) == (3 * 2 * 6, 0, 6)
