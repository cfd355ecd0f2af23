"""The takeover map: in each field the old system and the Transformer that took over, on the same input."""

import html
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib.classroom.output import picture_html
from course_lib.classroom.widgets import Choice, Explorer, Goal, Slider, in_rows, pixel_image
from course_lib.classroom.widgets.pixels import Pixels, grey, in_base64
from course_lib.data import mazes
from course_lib.data.captions import captions
from course_lib.data.checkpoints import load_trained
from course_lib.data.scenes import DigitScenes
from course_lib.data.tones import NAMES
from course_lib.functional.ctc import collapse
from course_lib.functional.images import standardise
from course_lib.lessons.lesson_06.transformer import stream_words
from course_lib.lessons.lesson_15 import figures, learner
from course_lib.lessons.lesson_15.recipes import control, speech
from course_lib.lessons.lesson_15.recipes import pictures_and_words as words
from course_lib.training.translation import translate
from course_lib.viz.style import figure

SENTENCES = (
    "the minister does not see the european economic area .",
    "the young president of the public banks wrote a letter .",
    "some good students never sign an old agreement .",
)
MELODIES = ("CEGc", "CCDEE", "cBAGFE")
NUMBERS = {"first": 0, "second": 1, "third": 2}
STEP, NOISIEST = 0.2, 3  # of the noise


class Pair(NamedTuple):
    """What both systems made of an input, in words, and whether each was right; None where nobody knows.

    `picture()` shows it in HTML, and `drawn` holds the numbers from which the page draws it.
    """

    given: str
    old_name: str
    old: str
    new_name: str
    new: str
    right: tuple[bool, bool] | None
    picture: Callable[[], str] = str
    drawn: dict[str, Any] = {}


def translation(number: int, noise: float) -> Pair:
    """One fixed vector against attention alone."""
    said = SENTENCES[number]
    old = " ".join(translate(load_trained("fixed_vector").model, said).target)
    new = " ".join(stream_words(load_trained("translator").model, said))
    return Pair(said, "GRUs and one vector (lesson 05)", old, "Transformer (lesson 06)", new, None)


@torch.no_grad()
def pictures(number: int, noise: float) -> Pair:
    """A convolutional net against patches."""
    scene = DigitScenes(split="test").batch(8, seed=5)
    pixels, label = scene.pixels[number : number + 1], int(scene.labels[number])
    said, right = [], []
    for name in ("resnet", "vit"):
        share, best = load_trained(name).model(standardise(pixels))[0].softmax(dim=0).max(dim=0)
        said.append(f"{int(best)} ({float(share):.0%})")
        right.append(int(best) == label)

    def picture() -> str:
        return in_rows([[pixel_image(grey(pixels[0, 0]), 100, f"a digit on a texture, {label}")]], "The picture")

    return Pair(f"a picture of a {label}", "ResNet (lesson 01)", said[0], "ViT (lesson 11)", said[1],
                (right[0], right[1]), picture, _image(grey(pixels[0, 0]), "a digit on a texture"))  # fmt: skip


def _image(pixels: Pixels, label: str) -> dict[str, Any]:
    return {"image": {"width": pixels.shape[1], "bytes": in_base64(pixels), "label": label}}


@lru_cache(maxsize=1)
def bands() -> Tensor:
    """What each tone sounds like without noise: its mean frame."""
    alone = [replace(speech.TONES, noise=0.0).melody(name, length=16, gap=4, seed=0) for name in NAMES]
    return torch.stack([m.frames[0, int(m.begins[0, 0]) + 2 : int(m.ends[0, 0]) - 2].mean(dim=0) for m in alone])


def by_template(melody) -> str:
    """The nearest clean tone in each frame, blank where the frame is quiet; no learning at all."""
    frames = melody.frames[0, : int(melody.num_frames[0])]
    patterns, frames = (F.normalize(x - x.mean(dim=1, keepdim=True), dim=1) for x in (bands(), frames))
    like, best = (frames @ patterns.T).max(dim=1)
    path = torch.where(like > 0.5, best + 1, 0)
    return " ".join(NAMES[label - 1] for label in collapse(path.tolist()))


def hearing(number: int, noise: float) -> Pair:
    """Patterns of clean tones against a Conformer."""
    played = MELODIES[number]
    melody = replace(speech.TONES, noise=noise).melody(played, length=16, gap=4, seed=0)
    said = by_template(melody), speech.written(load_trained("tones").model, melody)[0]

    def picture() -> str:
        fig, axes = figure(2.8, 2.3)
        axes.imshow(melody.frames[0].T.numpy(), origin="lower", aspect="auto")
        axes.set(xticks=[], yticks=[])
        axes.grid(visible=False)
        return picture_html(fig, alt="The bands of the melody over time.")

    right = tuple(text == " ".join(played) for text in said)
    bands_over_time = (melody.frames[0].T.flip(0) + 1.5) / 5  # log energies, the highest band on top
    drawn = _image(grey(bands_over_time), "log energies of 24 bands, high ones on top, over time")
    return Pair(" ".join(played), "the nearest clean tone in each frame", said[0] or "(nothing)", "Conformer and CTC",
                said[1] or "(nothing)", right, picture, drawn)  # fmt: skip


@lru_cache(maxsize=1)
def counted() -> Tensor:
    """How often each action was taken at each cell for each goal: cloning without a network."""
    walks, maze = control.demonstrations(0), control.maze()
    counts = torch.zeros(len(maze.cells), len(maze.cells), maze.num_actions)
    goals = walks.goals[:, None].expand_as(walks.cells)[walks.valid]
    ones = torch.ones(len(goals))
    return counts.index_put((walks.cells[walks.valid], goals, walks.actions[walks.valid]), ones, accumulate=True)


def clone(states: Tensor, actions: Tensor, rewards: Tensor) -> Tensor:
    """The logarithm of how often others took each action here."""
    cell, goal = states[:, -1].unflatten(1, (2, -1)).argmax(dim=2).T
    return (counted()[cell, goal] + 0.01).log()


def walking(number: int, noise: float) -> Pair:
    """Cloning against a Decision Transformer that is asked for the best."""
    maze, pair = control.maze(), control.pairs()["test"][number : number + 1]
    both = (
        mazes.rollout(maze, clone, pair, length=control.LENGTH, seed=number),
        learner.walk(load_trained("mazes").model, -10, pair=number),
    )

    def picture() -> str:
        fig, panels = figure(1.8, 3.4, rows=2)
        for axes, walks, name in zip(panels, both, ("cloning", "asked for -10"), strict=True):
            figures.draw_walk(axes, maze, walks, 0, name)
        return picture_html(fig, alt="Both walks through the maze.")

    said = [f"{'arrives' if w.reached[0] else 'does not arrive'}, return {float(w.returns[0]):.0f}" for w in both]
    right = bool(both[0].reached[0]), bool(both[1].reached[0])
    goal = maze.cells[pair[0, 1]].tolist()
    ways = [maze.cells[w.cells[0, w.valid[0]]].tolist() + [goal] * int(w.reached[0]) for w in both]
    return Pair("a start and a goal ten steps apart", "cloning, by counting", said[0], "Decision Transformer", said[1],
                right, picture,
                {"goal": goal, "ways": ways})  # fmt: skip


@torch.no_grad()
def captioning(number: int, noise: float) -> Pair:
    """A language model that cannot see against the same one behind its gates."""
    scene = DigitScenes(split="test", clutter=words.CLUTTER).batch(8, seed=2**32 - 1)
    fields = words.look(scene.pixels[number : number + 1])
    seen, flamingo = torch.cat([fields, words.boxes_of(fields)], dim=-1), load_trained("pictures_and_words").model
    blind, sees = (words.write(model.given(seen), 1)[0] for model in (words.shut(flamingo), flamingo))
    true = captions(scene)[number]

    def picture() -> str:
        return in_rows([[pixel_image(grey(scene.pixels[number, 0]), 100, true)]], "The picture")

    drawn = _image(grey(scene.pixels[number, 0]), "a digit with clutter")
    return Pair(true, "a language model alone", blind, "Flamingo", sees, (blind == true, sees == true), picture, drawn)


FIELDS: dict[str, Callable[[int, float], Pair]] = {
    "speech": hearing,
    "control": walking,
    "pictures": pictures,
    "pictures and words": captioning,
    "translation": translation,
}


def takeover_map() -> Explorer:
    """Choose a field and an input: what did the work before, and what took over."""

    @lru_cache(maxsize=64)
    def of(field: str, number: int, noise: float) -> Pair:
        return FIELDS[field](number, noise)

    def pair(state) -> Pair:
        return of(state["field"], int(state["number"]), float(state["noise"]))

    def told(state) -> str:
        its = pair(state)
        return f"Given: {its.given}. {its.old_name}: {its.old}. {its.new_name}: {its.new}."

    def picture(state) -> str:
        its = pair(state)
        drawing = its.picture()
        rows = [("given", its.given), (its.old_name, its.old), (its.new_name, its.new)]
        body = "".join(
            f'<tr><th scope="row" style="text-align:left">{html.escape(name)}</th>'
            f'<td style="text-align:left">{html.escape(text)}</td></tr>'
            for name, text in rows
        )
        beside = f'<div style="flex:1 1 0;min-width:0">{drawing}</div>' if drawing else ""
        table = f'<div style="flex:1 1 0;min-width:0"><table><tbody>{body}</tbody></table></div>'
        return f'<div style="display:flex;gap:1em;align-items:center">{beside}{table}</div>'

    def goal(text: str, fits: Callable[[str, tuple[bool, bool] | None], bool]) -> Goal:
        return Goal(text, lambda state: fits(state["field"], pair(state).right))

    return Explorer(
        name="map",
        title="The takeover map",
        controls=[
            Choice(name="field", label="field", options={name: name for name in FIELDS}),
            Choice(name="number", label="input", options=NUMBERS),
            Slider(name="noise", label="noise (speech)", low=0, high=NOISIEST, step=STEP, value=0.0),
        ],
        draw=picture,
        alt=told,
        speaks=True,
        goals=(
            goal("a melody that only the Conformer gets right", lambda f, r: f == "speech" and r == (False, True)),
            goal("a melody that drowns for both", lambda f, r: f == "speech" and not any(r)),
            goal("a walk where only the successor arrives", lambda f, r: f == "control" and r == (False, True)),
            goal("a caption that Flamingo gets right, word for word",
                 lambda f, r: f == "pictures and words" and r == (False, True)),
        ),
        steps={"field": tuple(FIELDS)},
        script="takeover",
        config={
            "fields": {name: [_levels(name, number) for number in NUMBERS.values()] for name in FIELDS},
            "walls": ["".join(".#"[wall] for wall in row) for row in control.maze().walls.tolist()],
            "step": STEP,
            "most": NOISIEST,
            "start": {"field": next(iter(FIELDS)), "number": 0, "noise": 0},
        },
    )  # fmt: skip


def _levels(field: str, number: int) -> list[dict[str, Any]]:
    """An input of a field as the page has it, in speech at each level of noise."""
    levels = round(NOISIEST / STEP) + 1 if field == "speech" else 1
    pairs = [FIELDS[field](number, STEP * level) for level in range(levels)]
    return [
        {"given": p.given, "names": [p.old_name, p.new_name], "said": [p.old, p.new], "right": p.right, **p.drawn}
        for p in pairs
    ]
