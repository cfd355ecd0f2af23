"""What one plays with in lesson 15: spans that T5 generates, and a melody that the Conformer transcribes."""

from dataclasses import replace
from functools import lru_cache
from html import escape
from itertools import groupby
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from matplotlib.figure import Figure
from torch import Tensor

from course_lib.classroom.widgets import Choice, Explorer, Goal, Slider, in_base64
from course_lib.data.draws import generator
from course_lib.data.tones import BANDS, NAMES, Melodies
from course_lib.functional.ctc import collapse
from course_lib.functional.language import corrupt_spans, random_spans
from course_lib.lessons.lesson_15 import figures
from course_lib.lessons.lesson_15.recipes import speech, text_to_text
from course_lib.models.conformer import Conformer
from course_lib.models.t5 import T5

MELODIES = {" ".join(tones): tones for tones in ("CEGc", "CCDEE", "cBAGFE", "GGGG")}
PAUSE, LENGTH, NOISIEST = 8, 16, 2.8  # the longest pause and the length of a tone, in frames; noise
PAUSE_STEP, NOISE_STEP = 4, 0.4
LEVELS = 15  # of a frame's energies on the page, above 0
BLANK = "–"
HEIGHT = 4.1  # of the figure: inches; both axes fit on a slide below the controls
SIMILAR = 0.5  # cosine of a frame and a clean tone above which the baseline says the tone


TEXTS, APART = 4, 500  # windows of the test text, and the tokens between their starts


class Filled(NamedTuple):
    """Tokens of a text, and for each removed span what was there and what was generated."""

    words: list[str]
    dropped: list[bool]
    removed: list[list[str]]
    generated: list[list[str]]


def spans(model: T5) -> Explorer:
    """Choose a text, how much of it is removed and in which spans, and T5 generates what is missing."""

    @lru_cache(maxsize=128)
    def of(text: int, rate: float, length: int, draw: int) -> Filled:
        return filled(model, text, rate=rate, mean_span=length, draw=draw)

    def its(state) -> Filled:
        return of(*(int(state[name]) if name != "rate" else round(float(state[name]), 2) for name in
                    ("text", "rate", "length", "draw")))  # fmt: skip

    def pairs(state):
        return zip(its(state).removed, its(state).generated, strict=True)

    def answer(asked) -> dict[str, Any]:
        """What the page asks for: gaps of a text that it names, or random ones, filled."""
        if asked["dropped"]:
            return filled_gaps(model, asked["text"], torch.tensor(asked["dropped"], dtype=torch.bool))._asdict()
        return its(asked)._asdict()

    def correct(state) -> int:
        return sum(a == b for removed, found in pairs(state) for a, b in zip(removed, found, strict=False))

    return Explorer(
        name="spans",
        title="Spans that are missing",
        controls=[
            Choice(name="text", label="text", options={f"text {n + 1}": n for n in range(TEXTS)}),
            Slider(name="rate", label="corruption rate", low=0.1, high=0.3, step=0.05, value=0.15),
            Slider(name="length", label="mean length of a span", low=2, high=5, step=1, value=3),
            Slider(name="draw", label="another draw", low=1, high=10, step=1, value=1),
        ],
        draw=lambda state: in_html(its(state)),
        alt=lambda state: f"{correct(state)} of {sum(its(state).dropped)} removed tokens are generated correctly.",
        goals=(
            Goal(
                "a span of two tokens or more, every one of them correct",
                lambda state: any(len(removed) > 1 and removed == found for removed, found in pairs(state)),
            ),
            Goal(
                "a span for which T5 generates fewer tokens than were removed, but some",
                lambda state: any(0 < len(found) < len(removed) for removed, found in pairs(state)),
            ),
            Goal(
                "at least 30 % removed, and at least three tokens correct",
                lambda state: state["rate"] > 0.29 and correct(state) >= 3,
            ),
        ),
        steps={"text": tuple(range(TEXTS)), "rate": (0.15, 0.3)},
        script="spans",
        config={"texts": TEXTS, "start": {"text": 0, "rate": 0.15, "length": 3, "draw": 1}},
        answers={"fill": answer},
    )


def window_of(text: int) -> Int[Tensor, " T"]:
    """The tokens of a window of the test text."""
    return text_to_text.plain_text("test")[APART * text :][: text_to_text.WINDOW]


def filled(model: T5, text: int, *, rate: float, mean_span: float, draw: int) -> Filled:
    """A window of the test text without some random spans, and what the model generates for each of them."""
    drawn = generator("spans to play with", draw)
    return filled_gaps(model, text, random_spans(text_to_text.WINDOW, rate=rate, mean_span=mean_span, generator=drawn))


def filled_gaps(model: T5, text: int, dropped: Bool[Tensor, " T"]) -> Filled:
    """The same without these tokens. Raises ValueError for no span, or more than there are sentinels for."""
    tokenizer, ids = text_to_text.tokenizer(), window_of(text)
    words = [tokenizer.decode([token]) for token in ids.tolist()]
    runs = [list(run) for _, run in groupby(range(len(ids)), dropped.tolist().__getitem__)]
    removed = [[words[i] for i in run] for run in runs if dropped[run[0]]]
    if not 0 < len(removed) < len(text_to_text.SENTINELS):
        most = len(text_to_text.SENTINELS) - 1
        raise ValueError(
            f"The text has {len(removed)} gaps, and this T5 fills 1 to {most}: remove or restore some words."
        )
    first = tokenizer.token_to_id(text_to_text.SENTINELS[-1])
    source, _ = corrupt_spans(ids, dropped, first_sentinel=first)
    (row,) = text_to_text.answers(model, [tokenizer.decode(source.tolist())])
    found, number = [[] for _ in removed], -1
    for token in row:
        if first - len(removed) <= token <= first:  # a sentinel
            number = first - token
        elif 0 <= number < len(removed):
            found[number].append(tokenizer.decode([token]))
    return Filled(words, dropped.tolist(), removed, found)


def in_html(its: Filled) -> str:
    """The text with its gaps, and below it a table of the spans."""
    text, number = [], 0
    for gone, run in groupby(zip(its.words, its.dropped, strict=True), lambda pair: pair[1]):
        number += gone
        text.append(f"<b>[{number}]</b>" if gone else escape(" ".join(word for word, _ in run)))
    rows = "".join(
        f"<tr><th>[{n}]</th><td>{escape(' '.join(removed))}</td><td>{escape(' '.join(found)) or '(nothing)'}</td></tr>"
        for n, (removed, found) in enumerate(zip(its.removed, its.generated, strict=True), 1)
    )
    return (
        f"<p>{' '.join(text)}</p><table><thead><tr><th>span</th><th>removed</th><th>T5</th></tr></thead>"
        f"<tbody>{rows}</tbody></table>"
    )


class Heard(NamedTuple):
    """A melody and what was made of it."""

    melody: Melodies
    probs: Float[Tensor, "t V"]
    path: list[str]  # the most probable symbol of each frame of the network
    played: list[str]
    found: list[str]
    baseline: list[str]


def transcribe(model: Conformer) -> Explorer:
    """Choose a melody, its noise and its pauses: symbols by frame, the greedy path and the collapsed text."""

    @lru_cache(maxsize=64)
    def of(tones: str, noise: float, pause: int) -> Heard:
        return hear(model, replace(speech.TONES, noise=noise).melody(tones, length=LENGTH, gap=pause))

    def heard(state) -> Heard:
        return of(state["melody"], round(float(state["noise"]), 1), int(state["pause"]))

    def words(state) -> str:
        its = heard(state)
        said = [
            f"Played: {' '.join(its.played)}.",
            f"Greedy path: {' '.join(its.path)}.",
            f"Collapsed: {' '.join(its.found) or '(nothing)'}, {verdict(its.found, its.played)}.",
            f"Nearest clean tone in each frame: {' '.join(its.baseline) or '(nothing)'}, "
            f"{verdict(its.baseline, its.played)}.",
        ]
        return " ".join(said)

    def repeated(state) -> bool:
        its = heard(state)
        twice = any(a == b for a, b in zip(its.played, its.played[1:], strict=False))
        return twice and state["pause"] == 0 and state["noise"] >= 2 and its.found == its.played

    return Explorer(
        name="transcribe",
        title="A melody, transcribed frame by frame",
        controls=[
            Choice(name="melody", label="melody", options=MELODIES),
            Slider(name="noise", label="noise", low=0, high=NOISIEST, step=NOISE_STEP, value=0.0),
            Slider(name="pause", label="pause (frames)", low=0, high=PAUSE, step=PAUSE_STEP, value=4),
        ],
        draw=lambda state: drawn(heard(state)),
        alt=words,
        goals=(
            Goal(
                "a noise at which the nearest clean tone is wrong and the Conformer is correct",
                lambda state: heard(state).baseline != heard(state).played == heard(state).found,
            ),
            Goal("equal tones without a pause between them, transcribed correctly at a noise of 2 or more", repeated),
            Goal(
                "a transcript with more tones than were played",
                lambda state: len(heard(state).found) > len(heard(state).played),
            ),
        ),
        steps={"noise": (0.0, 2.0), "pause": (4,)},
        script="transcribe",
        config={
            "melodies": {name: "".join(tones) for name, tones in MELODIES.items()},
            "names": NAMES,
            "blank": BLANK,
            "noise": {"high": NOISIEST, "step": NOISE_STEP},
            "pause": {"high": PAUSE, "step": PAUSE_STEP},
            "bands": BANDS,
            "levels": LEVELS,
            "each": figures.FRAME,
            "heard": {
                tones: [[on_page(of(tones, noise, pause)) for noise in noises()] for pause in pauses()]
                for tones in MELODIES.values()
            },
            "start": {"melody": next(iter(MELODIES.values())), "noise": 0.0, "pause": 4},
        },
    )


def noises() -> list[float]:
    """The levels of noise that can be chosen."""
    return [round(NOISE_STEP * step, 1) for step in range(round(NOISIEST / NOISE_STEP) + 1)]


def pauses() -> range:
    """The pauses that can be chosen, in frames."""
    return range(0, PAUSE + 1, PAUSE_STEP)


def on_page(its: Heard) -> dict[str, Any]:
    """What `transcribe.js` draws: energies in half a byte each, probabilities in a byte each, whose largest is kept."""
    frames = its.melody.frames[0, : int(its.melody.num_frames[0])]
    low, high = frames.amin(), frames.amax()
    levels = (LEVELS * (frames - low) / (high - low)).round().byte().numpy()
    probs = (254 * its.probs).byte()
    probs[torch.arange(len(probs)), its.probs.argmax(dim=1)] += 1
    return {
        "frames": in_base64(16 * levels[:, ::2] + levels[:, 1::2]),
        "probs": in_base64(probs.numpy()),
        "begins": its.melody.begins[0, : len(its.played)].tolist(),
        "baseline": "".join(its.baseline),
    }


@torch.no_grad()
def hear(model: Conformer, melody: Melodies) -> Heard:
    """Both transcripts of one melody."""
    log_probs, lengths = speech.log_probs_of(model.eval(), melody)
    probs = log_probs[0, : int(lengths[0])].exp()
    path = probs.argmax(dim=1).tolist()
    played, found, baseline = (
        [NAMES[number - 1] for number in numbers]
        for numbers in (melody.spoken()[0], collapse(path), nearest_tones(melody))
    )
    return Heard(melody, probs, [BLANK if s == 0 else NAMES[s - 1] for s in path], played, found, baseline)


def verdict(found: list[str], played: list[str]) -> str:
    return "correct" if found == played else "wrong"


@lru_cache(maxsize=1)
def clean_tones() -> Float[Tensor, "tones bands"]:
    """The mean frame of each tone without noise."""
    alone = [replace(speech.TONES, noise=0.0).melody(name, length=LENGTH, gap=4) for name in NAMES]
    return torch.stack(
        [one.frames[0, int(one.begins[0, 0]) + 2 : int(one.ends[0, 0]) - 2].mean(dim=0) for one in alone]
    )


def nearest_tones(melody: Melodies) -> list[int]:
    """A baseline without learning: the most similar clean tone of each frame, or blank if none is; collapsed."""
    frames = melody.frames[0, : int(melody.num_frames[0])]
    tones, frames = (F.normalize(x - x.mean(dim=1, keepdim=True), dim=1) for x in (clean_tones(), frames))
    cosine, best = (frames @ tones.T).max(dim=1)
    return collapse(torch.where(cosine > SIMILAR, best + 1, 0).tolist())


def drawn(its: Heard) -> Figure:
    """The frames, the probabilities, and the greedy path above them."""
    begins = its.melody.begins[0, : len(its.played)].tolist()
    fig = figures.spikes(its.melody.frames[0, : int(its.melody.num_frames[0])], its.probs, NAMES, begins, HEIGHT)
    above, below = fig.axes
    above.set_title(f"played: {' '.join(its.played)}")
    below.set_title(f"collapsed: {' '.join(its.found) or '(nothing)'} ({verdict(its.found, its.played)})")
    below.set(ylim=(-0.4, 1.4))
    for t, symbol in enumerate(its.path):
        at = figures.FRAME * t + (figures.FRAME - 1) / 2
        below.text(at, -0.2, symbol, ha="center", va="center")
    return fig


PLAYGROUNDS = {"spans": spans, "transcribe": transcribe}
