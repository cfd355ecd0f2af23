"""What one plays with in lesson 03: a pair of eigenvalues and its fate, and a network that reads a name."""

import base64
import html
import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from torch import Tensor

from course_lib.classroom.widgets import Choice, Explorer, Goal, Slider, TextBox, token_bars
from course_lib.classroom.widgets.explorer import State
from course_lib.data.checkpoints import FOLDER, MODEL, load_trained
from course_lib.data.files import data_path
from course_lib.data.names import LANGUAGE_NAMES
from course_lib.lessons.lesson_03.learner import beliefs, most_probable
from course_lib.lessons.lesson_03.recipes import names
from course_lib.viz.style import GREY, PALETTE, figure

# ----------------------------------------------------------------------------------------- a pair of eigenvalues

STEPS = 40
START = np.array([0.8, 0.2])
LARGEST = 1.6  # of what is drawn
MOST = 1.4  # absolute value of an eigenvalue
BETWEEN = {"the matrix alone": "nothing", "then a tanh": "tanh"}


class Fate(NamedTuple):
    """What becomes of a state, and of the gradient that comes back."""

    states: Float[np.ndarray, "T 2"]
    gradient: Float[np.ndarray, " T"]  # its length after so many steps back, 1 at the end


def matrix(radius: float, angle: float) -> Float[np.ndarray, "2 2"]:
    """The matrix that turns by an angle, in degrees, and stretches: its eigenvalues are r exp(+-i angle)."""
    turn = math.radians(angle)
    return radius * np.array([[math.cos(turn), -math.sin(turn)], [math.sin(turn), math.cos(turn)]])


def fate(radius: float, angle: float, squashed: bool) -> Fate:
    """A_t = theta A_{t-1}, or its tanh, and a gradient of length 1 at the last step sent back through all of them."""
    theta, states = matrix(radius, angle), [START]
    for _ in range(STEPS):
        state = theta @ states[-1]
        states.append(np.tanh(state) if squashed else state)
    arrived, lengths = np.array([1.0, 0.0]), [1.0]
    for state in states[:0:-1]:
        slope = 1 - state**2 if squashed else 1.0
        arrived = theta.T @ (slope * arrived)
        lengths.append(float(np.linalg.norm(arrived)))
    return Fate(np.array(states), np.array(lengths))


def of(state: State) -> Fate:
    return fate(state["radius"], state["angle"], state["between"] == "tanh")


def eigenvalue_words(state: State) -> str:
    its = of(state)
    size = np.linalg.norm(its.states[-1]) / np.linalg.norm(START)
    squashed = ", and a tanh in each step" if state["between"] == "tanh" else ""
    return (
        f"Eigenvalues of absolute value {state['radius']:.2f} and angle ±{state['angle']:.0f}°{squashed}. "
        f"After {STEPS} steps the state is {size:.2g} times as long as at the start; "
        f"a gradient that was sent back {STEPS} steps, {its.gradient[-1]:.2g} times."
    )


def eigenvalue_figure(state: State) -> Figure:
    its, radius, turn = of(state), state["radius"], math.radians(state["angle"])
    fig, (plane, portrait, back) = figure(11.6, 4.2, columns=3, width_ratios=(1, 1, 1.15))
    plane.add_patch(Circle((0, 0), 1, fill=False, color=GREY, linewidth=2))
    for sign in (1, -1):
        plane.plot(radius * math.cos(turn), sign * radius * math.sin(turn), "o", color=PALETTE["vermilion"], ms=9)
    plane.set_title("the eigenvalues")
    plane.set(xlim=(-1.45, 1.45), ylim=(-1.45, 1.45), xlabel="real part", ylabel="imaginary part")
    grid = np.stack(np.meshgrid(*[np.linspace(-1.4, 1.4, 9)] * 2), axis=-1)
    moved = grid @ matrix(radius, state["angle"]).T
    moved = np.tanh(moved) if state["between"] == "tanh" else moved
    x, y = np.moveaxis(grid, -1, 0)
    u, v = np.moveaxis(moved - grid, -1, 0)
    portrait.quiver(x, y, u, v, color=GREY, alpha=0.5, angles="xy", scale_units="xy", scale=3, width=0.006)
    shown = its.states[np.abs(its.states).max(axis=1) <= LARGEST]
    portrait.plot(*shown.T, color=PALETTE["blue"], linestyle="-", marker="o", markersize=4, linewidth=1.2)
    portrait.plot(*START, "s", color=PALETTE["black"], markersize=7)
    portrait.set_title("the state over time")
    portrait.set(xlim=(-LARGEST, LARGEST), ylim=(-LARGEST, LARGEST))
    for axes in (plane, portrait):
        axes.set_aspect("equal")
    back.semilogy(np.maximum(its.gradient, 1e-9), color=PALETTE["orange"], linestyle="-", linewidth=3)
    back.axhline(1, color=GREY, linewidth=1)
    back.set(ylim=(1e-6, 1e6), xlabel="steps back")
    back.set_title("length of the gradient")
    return fig


def eigenvalues() -> Explorer:
    """Move a pair of eigenvalues: the state fades, turns or explodes, and the gradient with it."""

    def round_trip(state: State) -> bool:
        if state["between"] == "tanh":
            return False
        away = np.linalg.norm(of(state).states - START, axis=1)
        near = np.flatnonzero(away < 0.05 * np.linalg.norm(START))
        return len(near) > 1 and int(near[1]) == 8

    def saved(state: State) -> bool:
        its = of(state)
        lives = bool(np.linalg.norm(its.states[-1]) > 0.1)
        return state["between"] == "tanh" and state["radius"] >= 1.2 and lives and bool(its.gradient[-1] < 0.01)

    return Explorer(
        name="eigenvalues",
        title="A pair of eigenvalues",
        controls=[
            Slider(name="radius", label="Absolute value |λ|", low=0, high=MOST, step=0.01, value=0.9),
            Slider(name="angle", label="Angle, degrees", low=0, high=180, step=1, value=30),
            Choice(name="between", label="Each step", options=BETWEEN),
        ],
        draw=eigenvalue_figure,
        alt=eigenvalue_words,
        words_first=True,
        height="29em",
        goals=(
            Goal(
                "without a tanh: a gradient that is over 100,000 times as long",
                lambda state: state["between"] == "nothing" and bool(of(state).gradient[-1] > 1e5),
            ),
            Goal("without a tanh: a state that is back at its start after 8 steps, and not sooner", round_trip),
            Goal("|λ| ≥ 1.2 with a tanh: the state does not vanish, but the gradient does (try angles)", saved),
        ),
        steps={"radius": (0.9, 1.0, 1.1), "between": ("nothing", "tanh")},
        script="eigenvalues",
        config={
            "steps": STEPS,
            "first": START.tolist(),
            "most": MOST,
            "between": list(BETWEEN.items()),
            "start": {"radius": 0.9, "angle": 30, "between": "nothing"},
        },
    )


# ------------------------------------------------------------------------------------------------ a reader of names

NAMES = ("brazília", "kamboçya", "argentinien", "görögország", "grèce")  # of the test set
LONGEST = 18
SHOWN = 20  # numbers of the state
SURE, BARS = 0.9, 4


class Reading(NamedTuple):
    """A name, the network's state and what it believes after each letter."""

    text: str
    states: Float[Tensor, "T H"]
    probs: Float[Tensor, "T languages"]


def reader() -> Explorer:
    """A name of one's own, read letter by letter: the state as colours, and what the network believes."""
    model, tokenizer = load_trained("names").model.eval(), names.tokenizer()

    @lru_cache(maxsize=32)
    def read(text: str) -> Reading:
        text = " ".join(text.lower().split())[:LONGEST]
        if not text:
            raise ValueError("Write a name for the network to read.")
        with torch.no_grad():
            states = model.features(torch.tensor([tokenizer.encode(text)]))[0]
        return Reading(text, states, beliefs(model, tokenizer, text))

    def words(state: State) -> str:
        its = read(state["text"])
        ((language, share),) = most_probable(its.probs[-1])
        changes = sum(a != b for a, b in zip(*(its.probs.argmax(-1).tolist()[k:] for k in (0, 1)), strict=False))
        times = "once" if changes == 1 else f"{changes} times"
        return f"“{its.text}”: {language}, {share:.0%} sure. While reading it changed its mind {times}."

    def picture(state: State) -> str:
        its = read(state["text"])
        cell = "border:0;padding:0;width:32px;min-width:32px;text-align:center;font-weight:400;font-size:16px"

        def colour(value: float) -> str:
            kind = "230,159,0" if value > 0 else "0,114,178"
            return f"rgba({kind},{min(1, abs(value)):.2f})"

        letters = "".join(
            f'<th scope="col" style="{cell}">{html.escape(letter) if letter != " " else "␣"}</th>'
            for letter in its.text
        )
        said = "".join(f'<td style="{cell}">{html.escape(most_probable(row)[0][0][:3])}</td>' for row in its.probs)
        rows = "".join(
            '<tr style="background:none">'
            + "".join(
                f'<td title="{value:.2f}" style="{cell};height:8px;background-color:{colour(value)}"></td>'
                for value in its.states[:, number].tolist()
            )
            + "</tr>"
            for number in range(SHOWN)
        )
        table = (
            '<table style="border-collapse:collapse;margin:0;line-height:1.1;width:auto">'
            f'<caption style="text-align:left;color:inherit">The state after each letter, its first {SHOWN} numbers '
            "(orange above 0, blue below), and the most probable language then</caption>"
            f'<thead><tr style="background:none">{letters}</tr></thead><tbody>{rows}'
            f'<tr style="background:none">{said}</tr></tbody></table>'
        )
        bars = token_bars(most_probable(its.probs[-1], BARS), label="After the last letter")
        return (
            f'<div style="display:flex;gap:2em;flex-wrap:wrap;align-items:start"><div style="overflow-x:auto">{table}'
            f"</div><div>{bars}<p>{html.escape(words(state))}</p></div></div>"
        )

    def turned(state: State) -> bool:
        its = read(state["text"])
        return len(its.text) > 3 and bool(its.probs[-1].argmax() != its.probs[-2].argmax())

    def at_once(state: State) -> bool:
        its = read(state["text"])
        return len(its.text) >= 3 and bool(its.probs[2].max() >= SURE)

    def torn(state: State) -> bool:
        first, second = read(state["text"]).probs[-1].topk(2).values.tolist()
        return len(read(state["text"]).text) > 3 and first - second < 0.05

    return Explorer(
        name="reader",
        title="Which language is this name?",
        controls=[TextBox(name="text", label="Name", value=NAMES[0], examples=NAMES)],
        draw=picture,
        alt=words,
        speaks=True,
        goals=(
            Goal("its last letter changes the answer", turned),
            Goal("three letters, and the network is 90 % sure", at_once),
            Goal("two languages are within five points of each other", torn),
        ),
        steps={"text": NAMES},
        script="origin",
        config={
            "names": NAMES,
            "longest": LONGEST,
            "shown": SHOWN,
            "languages": LANGUAGE_NAMES,
            "letters": {letter: i for i, letter in enumerate(tokenizer.vocabulary)},
            "unknown": tokenizer.unknown_id,
            "weights": base64.b64encode(data_path(FOLDER, "names", MODEL).read_bytes()).decode(),  # 101 kB
        },
    )


PLAYGROUNDS = {"eigenvalues": eigenvalues, "reader": reader}
