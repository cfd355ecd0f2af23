"""What one plays with in lesson 04: one cell with its handles, and the cells of a network that reads along."""

import html
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

import matplotlib as mpl
import numpy as np
import torch
from jaxtyping import Float
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from torch import Tensor

from course_lib.classroom.widgets import Choice, Explorer, Goal, Slider, TextBox
from course_lib.classroom.widgets.explorer import State
from course_lib.lessons.lesson_04.units import auc, read_text, since_sentence
from course_lib.models.recurrent import CharacterLM
from course_lib.viz.style import DIVERGING, GREY, PALETTE, figure

# ------------------------------------------------------------------------------------------- a cell as a machine

STEPS = 50
MESSAGE, MARKS = "one message, then noise", "a mark every ten steps"
NOISE = np.random.default_rng(1).normal(scale=0.35, size=STEPS - 1).clip(-1, 1).round(2)
SIGNALS: Mapping[str, Float[np.ndarray, " T"]] = {
    MESSAGE: np.r_[1.0, NOISE],
    MARKS: (np.arange(STEPS) % 10 == 0).astype(float),
    "up, then down": np.r_[np.full(STEPS // 2, 0.2), np.full(STEPS // 2, -0.2)],
}
OPEN = {"always": "always", "in the first step only": "first"}


class Run(NamedTuple):
    """What one cell did."""

    proposal: Float[np.ndarray, " T"]
    write: Float[np.ndarray, " T"]  # the input gate
    cell: Float[np.ndarray, " T"]
    output: Float[np.ndarray, " T"]


def run(state: State) -> Run:
    """c = f c + i g and h = o tanh(c), the gates constant, but for an input gate that may be open only once."""
    proposal = SIGNALS[state["signal"]]
    write = np.full(STEPS, state["i"]) if state["open"] == "always" else np.r_[state["i"], np.zeros(STEPS - 1)]
    cell, cells = 0.0, []
    for g, i in zip(proposal, write, strict=True):
        cell = state["f"] * cell + i * g
        cells.append(cell)
    cells = np.array(cells)
    return Run(proposal, write, cells, state["o"] * np.tanh(cells))


def machine_words(state: State) -> str:
    its = run(state)
    return (
        f"f = {state['f']:.2f}, i = {state['i']:.2f}, o = {state['o']:.2f}. After {STEPS} steps the cell state is "
        f"{its.cell[-1]:.2f} and the hidden state {its.output[-1]:.2f}; of the gradient at the last cell state, "
        f"{state['f'] ** (STEPS - 1):.2g} reaches the first."
    ).replace("-0.00", "0.00")


def machine_figure(state: State) -> Figure:
    its, steps = run(state), np.arange(1, STEPS + 1)
    fig, (above, middle, below) = figure(8.6, 5.6, rows=3, sharex=True, height_ratios=(2, 3, 2))
    stems = np.stack([np.zeros(STEPS), its.proposal, np.full(STEPS, np.nan)], axis=1)  # one path: fewer bytes
    above.plot(np.repeat(steps, 3), stems.ravel(), color=GREY, linestyle="-", linewidth=1.5)
    above.plot(steps, its.write * its.proposal, "o", color=PALETTE["orange"], markersize=5)
    above.set_title("candidate g (lines) and i · g (dots)")
    middle.plot(steps, its.cell, color=PALETTE["blue"], linestyle="-", linewidth=3)
    middle.set_title("cell state c")
    below.plot(steps, its.output, color=GREY, linestyle="-", linewidth=3)
    below.set_title("hidden state h = o · tanh c")
    for axes, limits in ((above, (-1.3, 1.3)), (middle, (-2, 5.5)), (below, (-1.1, 1.1))):
        axes.set_ylim(*limits)
        axes.axhline(0, color=GREY, linewidth=0.8)
        axes.tick_params(axis="x", bottom=axes is below)
    middle.set_yticks([0, 2, 4])
    below.set_xlabel("step")
    return fig


def kept(state: State) -> bool:
    cell = run(state).cell
    return state["signal"] == MESSAGE and bool(cell[0] >= 0.3 and np.abs(cell - cell[0]).max() < 0.01 * cell[0])


def counted(state: State) -> bool:
    return state["signal"] == MARKS and abs(float(run(state).cell[-1]) - 5) < 0.05


def halved(state: State) -> bool:
    cell = run(state).cell
    return state["open"] == "first" and bool(abs(cell[10] - cell[0] / 2) < 0.03 * cell[0])


def machine() -> Explorer:
    """Set the gates of one cell by hand: its cell state and its hidden state over time."""
    return Explorer(
        name="machine",
        title="One cell, its gates set by hand",
        controls=[
            Choice(name="signal", label="Candidate g", options={name: name for name in SIGNALS}),
            Slider(name="f", label="Forget gate f", low=0, high=1, step=0.01, value=0.7),
            Slider(name="i", label="Input gate i", low=0, high=1, step=0.01, value=1.0),
            Choice(name="open", label="i is open", options=OPEN),
            Slider(name="o", label="Output gate o", low=0, high=1, step=0.01, value=1.0),
        ],
        draw=machine_figure,
        alt=machine_words,
        beside=True,
        words_first=True,
        height="31em",
        goals=(
            Goal("the cell keeps the message through 50 steps of noise, to within 1 %", kept),
            Goal("a cell that counts: after five marks its state is 5", counted),
            Goal("i open in the first step only: ten steps later half of the cell state is left", halved),
        ),
        steps={"signal": tuple(SIGNALS), "f": (0.7, 1.0)},
        script="machine",
        config={
            "signals": {name: signal.tolist() for name, signal in SIGNALS.items()},
            "message": MESSAGE,
            "marks": MARKS,
            "open": list(OPEN.items()),
            "start": {"signal": MESSAGE, "f": 0.7, "i": 1, "o": 1, "open": "always"},
        },
    )


# ---------------------------------------------------------------------------------------- cells over a text

TEXTS = (
    "The first call returns a list. The second one returns None. Nothing else is changed.",
    "If 'mode' is 'same' the output has the same size. Otherwise 'valid' is used, which is shorter.",
    "Don't call it twice: it isn't safe, and the caller's data won't survive.",
)
SENTENCES, LETTERS = 222, 27  # cells of the shipped network that reach the goals
LONGEST = 160


class Cells(NamedTuple):
    """A text and what all cells hold at each of its characters."""

    text: str
    inside: Float[Tensor, "T H"]


def shown_text(text: str) -> str:
    """A text on one line. Raises ValueError for an empty or a long one."""
    text = " ".join(text.split())
    if len(text) > LONGEST:
        raise ValueError(f"This text has {len(text)} characters; please keep to {LONGEST}.")
    if not text:
        raise ValueError("Write something for the network to read.")
    return text


def reader(model: CharacterLM) -> Explorer:
    """A text of one's own, and one cell of the network as colour behind its characters."""

    @lru_cache(maxsize=16)
    def cells(text: str) -> Cells:
        text = shown_text(text)
        return Cells(text, read_text(model, text).inside[0])

    def of(state: State) -> tuple[str, Float[Tensor, " T"]]:
        its = cells(state["text"])
        return its.text, its.inside[:, int(state["cell"])]

    def words(state: State) -> str:
        text, values = of(state)
        lowest, highest = int(values.argmin()), int(values.argmax())
        return (
            f"Cell {state['cell']:.0f} over {len(text)} characters: lowest, {values[lowest]:.1f}, at character "
            f"{lowest + 1} (“{text[lowest]}”), highest, {values[highest]:.1f}, at character {highest + 1} "
            f"(“{text[highest]}”)."
        ).replace("-0.0,", "0.0,")

    def picture(state: State) -> str:
        text, values = of(state)
        colours, largest = mpl.colormaps[DIVERGING], max(float(values.abs().max()), 1e-6)
        spans = []
        for character, value in zip(text, values.tolist(), strict=True):
            colour = to_hex(colours(0.5 - 0.3 * value / largest))  # pale enough for black type
            style = f"background:{colour};color:#000;padding:2px 0"
            spans.append(f'<span title="{value:.2f}" style="{style}">{html.escape(character)}</span>')
        line = f'<p style="font:22px/1.9 monospace;white-space:pre-wrap;margin:.3em 0">{"".join(spans)}</p>'
        note = f"Orange: above 0, purple: below. {html.escape(words(state))}"
        return f'<div style="max-width:60em">{line}<p style="margin:0">{note}</p></div>'

    def falls_at(values: Float[Tensor, " T"], end: int, share: float) -> bool:
        """Whether a cell is near its largest absolute value before this character, and less than half of it after."""
        before, after = values[end - 1].abs(), values[end + 1 : end + 4].mean().abs()
        return bool(before > share * values.abs().max() and after < 0.5 * before)

    def falls(state: State) -> bool:
        text, values = of(state)
        ends = (since_sentence(text)[1:] == 0).nonzero()[:, 0].tolist()
        return bool(ends) and ends[0] >= 15 and falls_at(values, ends[0], 0.8)

    def letters(state: State) -> bool:
        text, values = of(state)
        found = torch.tensor([character.isalpha() for character in text])
        if not 5 <= int(found.sum()) <= len(text) - 5:
            return False
        score = auc(values[:, None], found)[0].item()
        return max(score, 1 - score) > 0.85

    def own(state: State) -> bool:
        text, values = of(state)
        ends = (since_sentence(text)[1:] == 0).nonzero()[:, 0].tolist()
        long = all(end - start >= 15 for start, end in zip([0, *ends], ends, strict=False))
        return text not in TEXTS and len(ends) >= 2 and long and all(falls_at(values, end, 0.4) for end in ends)

    return Explorer(
        name="reader",
        title="A cell over a text",
        controls=[
            TextBox(name="text", label="Text", value=TEXTS[0], examples=TEXTS),
            Slider(name="cell", label="Cell", low=0, high=343, step=1, value=0),
        ],
        draw=picture,
        alt=words,
        speaks=True,
        goals=(
            Goal("a cell that grows through a sentence and falls back at its end", falls),
            Goal("a cell from 10 to 30 that separates letters from other characters, in 85 of 100 pairs", letters),
            Goal(
                "a text of your own with three sentences or more, and a cell that falls back after each full stop", own
            ),
        ),
        steps={"text": TEXTS[:2], "cell": (0, LETTERS, SENTENCES)},
        script="cells",
        config={
            "models": ["lstm_characters"],
            "texts": [[f"{' '.join(text.split()[:2])} …", text] for text in TEXTS],
            "longest": LONGEST,
            "count": model.config.hidden_dim,
        },
        answers={"read": lambda asked: cells(asked["text"]).inside.numpy().ravel()},
    )


PLAYGROUNDS = {"machine": machine, "reader": reader}
