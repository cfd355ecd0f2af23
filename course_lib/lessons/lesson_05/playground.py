"""What one plays with in lesson 05: a translator to talk to, a mask to paint, the softmax under a magnifying glass."""

import html
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch

from course_lib.classroom.widgets import Choice, Explorer, Goal, PaintGrid, Sentence, Slider, heat_map, linked
from course_lib.classroom.widgets.explorer import State
from course_lib.data.translation import detokenize_french, tokenize_english
from course_lib.data.translation import translate as gold_translation
from course_lib.functional.attention import causal_mask, local_mask, masked_softmax, padding_mask
from course_lib.models.seq2seq import Seq2Seq
from course_lib.training.translation import Translation, translate, vocabularies
from course_lib.viz.style import GREY, PALETTE, figure

# ----------------------------------------------------------------------------------------------- the translator

MAX_WORDS = 40


def translator(translate: Callable[[str], Translation], vocabulary: Sequence[str], examples: Sequence[str]) -> Explorer:
    """A sentence of one's own, its translation, and the English words that each French one attends to.

    `vocabulary` are the words that the model knows, `examples` sentences that it can translate: the first is there at
    the start. Raises ValueError without an example.
    """
    if not examples:
        raise ValueError("The translator needs at least one example sentence to start with, but got none.")
    latest: dict[str, Translation] = {}

    def result(text: str) -> Translation:
        text = " ".join(text.split())
        if not text:
            raise ValueError("Type a sentence, or take one of the examples.")
        if len(text.split()) > MAX_WORDS:
            raise ValueError(f"This sentence has {len(text.split())} words; please keep to {MAX_WORDS}.")
        if text not in latest:  # one translation to draw, to say and to judge
            latest.clear()
            latest[text] = translate(text)
        return latest[text]

    def goal(text: str, reached: Callable[[Translation], bool]) -> Goal:
        def judge(state: State) -> bool:
            translated = result(state["text"])
            return state["text"] not in examples and not translated.unknown and reached(translated)

        return Goal(text, judge)

    return Explorer(
        name="translator",
        title="Translate a sentence of your own",
        controls=[
            Sentence(
                name="text",
                label="English sentence",
                value=examples[0],
                examples=examples,
                vocabulary=vocabulary,
                split=tokenize_english,
            )
        ],
        draw=lambda state: translation_html(result(state["text"])),
        alt=lambda state: _translation_in_words(result(state["text"])),
        speaks=True,
        goals=(
            goal("two words that change places", swaps_words),
            goal("one English word, two French ones around another", is_split),
            goal("a wrong translation, all words known", is_wrong),
        ),
        steps={"text": tuple(examples)},
        script="translator",
        config={
            "models": ["attention"],
            "examples": list(examples),
            "vocabulary": " ".join(sorted(set(vocabulary))),
            "most": MAX_WORDS,
        },
        answers={"translate": lambda text: _answer(result(text))},
    )


def _answer(result: Translation) -> dict[str, Any]:
    """What the page draws; `gold` is the grammar's translation, None where it has none."""
    pair = gold_translation(" ".join(result.source))
    return {
        "source": result.source,
        "target": result.target,
        "weights": None if result.weights is None else np.asarray(result.weights).tolist(),
        "unknown": result.unknown,
        "gold": pair and pair.french,
    }


def looks(result: Translation) -> list[int]:
    """The English word, by its place, that each French one attends to most; none without attention."""
    return [] if result.weights is None else np.asarray(result.weights).argmax(axis=1).tolist()


def swaps_words(result: Translation) -> bool:
    """Whether two neighbours look at neighbours in the other order, each alone: ne ... pas does not count."""
    at = looks(result)
    return any(a == b + 1 and at.count(a) == at.count(b) == 1 for a, b in zip(at, at[1:], strict=False))


def is_split(result: Translation) -> bool:
    """Whether French words look at one English word and one between them looks elsewhere, as in ne ... pas."""
    at = looks(result)
    return any(len(at) - at[::-1].index(position) - at.index(position) > at.count(position) for position in set(at))


def is_wrong(result: Translation) -> bool:
    """Whether the grammar has another translation; False where it has none."""
    pair = gold_translation(" ".join(result.source))
    return pair is not None and pair.french != tuple(result.target)


def _verdict(result: Translation) -> str:
    pair = gold_translation(" ".join(result.source))
    if pair is None:
        return "The grammar of this course does not cover this sentence, so nobody checks the translation."
    if pair.french == tuple(result.target):
        return "✓ The grammar says the same."
    return f"✗ The grammar says: {detokenize_french(pair.french)}"


def _translation_in_words(result: Translation) -> str:
    if not len(result.target):
        return "There is no translation."
    pairs = zip(result.target, looks(result), strict=False)
    at = ", ".join(f"“{word}” to “{result.source[position]}”" for word, position in pairs)
    said = f" Each French word attends most: {at}." if at else ""
    return f"Translation: “{' '.join(result.target)}”. {_verdict(result)}{said}"


def translation_html(result: Translation) -> str:
    """The French sentence, large, above the English one, and beside them the map: all three light up together."""
    french = ""
    for i, word in enumerate(result.target):
        space = "" if word == "." or not french or french.endswith("&#x27;</span>") else " "
        french += f'{space}<span class="row-{i}" tabindex="0">{html.escape(word)}</span>'
    english = " ".join(
        f'<span class="column-{j}">{html.escape(word)}{" (?)" if word in result.unknown else ""}</span>'
        for j, word in enumerate(result.source)
    )
    hint = (
        ""
        if result.weights is None
        else "<p>Point at a French word: the English words that it attends to light up.</p>"
    )
    sentences = (
        '<div style="flex:1 1 16em;max-width:30em;line-height:1.3">'
        f'<p lang="fr" style="font-size:1.7em;margin:0 0 .3em"><b>{french or "There is no translation."}</b></p>'
        f'<p style="font-size:1.2em;margin:0 0 .6em">{english}</p><p>{html.escape(_verdict(result))}</p>{hint}</div>'
    )
    if result.weights is None or not len(result.target):
        return sentences
    weights = np.asarray(result.weights)
    table = heat_map(weights, result.target, result.source, label="Each French word (row) attends to English words")
    return linked(f'<div style="display:flex;flex-wrap:wrap;gap:1.2em">{sentences}{table}</div>', weights)


EXAMPLES = (  # sentences that the trained model translates
    "The minister does not see the European Economic Area.",
    "She doesn't see them.",
    "The rich actress visits her old school.",
)


def talk(model: Seq2Seq) -> Explorer:
    """A trained translator to talk to."""
    english, _ = vocabularies()
    return translator(partial(translate, model), english.vocabulary[4:], EXAMPLES)


def shows(text: str) -> Callable[[Seq2Seq], str]:
    """What a model makes of one sentence, as HTML, while it learns."""
    return lambda model: translation_html(translate(model, text))


# --------------------------------------------------------------------------------------------------- the mask

WORDS = ("le", "ministre", "ne", "signe", "pas", "<pad>")  # what a decoder has written, and what fills its row up

SCORES = torch.tensor(
    [
        [0.6, 1.8, 0.2, 0.1, 0.3, 0.4],
        [1.0, 0.7, 0.3, 1.6, 0.2, 0.3],
        [0.1, 0.4, 0.5, 1.2, 1.7, 0.6],
        [0.2, 1.9, 0.8, 0.6, 0.5, 0.3],
        [0.0, 0.3, 1.6, 1.1, 0.4, 0.5],
        [0.5, 0.4, 0.6, 0.3, 0.7, 0.9],
    ]
)
"""Scores q.k / sqrt(d_k), made up: row = query, column = key."""

BUTTONS = ("full", "nothing", "local (1 word)")  # the other presets are goals

Grid = tuple[tuple[bool, ...], ...]


def mask_painter() -> Explorer:
    """A mask to paint over half a French sentence, beside the weights that remain; True (✓) = may attend."""
    size = len(WORDS)
    full = torch.ones(size, size, dtype=torch.bool)
    presets = {
        "full": full,
        "nothing": ~full,
        "local (1 word)": local_mask(size, window=1),
        "causal": causal_mask(size),
        "padding": padding_mask(torch.tensor([size - 1]), size)[0, 0] & full,
    }
    grids = {name: tuple(tuple(row) for row in mask.tolist()) for name, mask in presets.items()}
    return Explorer(
        name="mask",
        title="Paint a mask: row = query, column = key",
        controls=[
            PaintGrid(
                name="mask",
                label="✓ = may attend, · = hidden",
                value=grids["full"],
                rows=WORDS,
                columns=WORDS,
                square=lambda row, column, on: (
                    f"{WORDS[row]!r} {'may attend' if on else 'may not attend'} to {WORDS[column]!r}"
                ),
                presets=grids,
                buttons=BUTTONS,
            )
        ],
        draw=lambda state: heat_map(
            weights_of(mask := state["mask"]), WORDS, WORDS, label="Weights", numbers=True, hidden=~np.array(mask)
        ),
        alt=_weights_in_words,
        beside=True,
        goals=(
            Goal("a decoder that cannot cheat", lambda state: is_causal(state["mask"])),
            Goal("the padding hidden from everyone", lambda state: hides_padding(state["mask"])),
            Goal("exactly one row that sees nothing", lambda state: sum(not any(row) for row in state["mask"]) == 1),
        ),
        steps={"mask": tuple(grids.values())},
        script="mask",
        config={
            "words": WORDS,
            "scores": SCORES.double().round(decimals=6).tolist(),
            "start": {"mask": grids["full"]},
            "presets": {name: grids[name] for name in BUTTONS},
        },
    )


def is_causal(mask: Grid) -> bool:
    """Whether each real word sees itself and all before it, and no word what comes after it."""
    real = len(WORDS) - 1
    return all(row == tuple(j <= i for j in range(len(WORDS))) for i, row in enumerate(mask[:real]))


def hides_padding(mask: Grid) -> bool:
    """Whether no row sees the padding, and each real word sees something."""
    return not any(row[-1] for row in mask) and all(any(row) for row in mask[:-1])


def weights_of(mask: Grid) -> torch.Tensor:
    """The attention weights under a mask; a row that sees nothing is zero."""
    return masked_softmax(SCORES, torch.tensor(mask))


def _weights_in_words(state: State) -> str:
    weights, mask = weights_of(state["mask"]), state["mask"]
    most = [
        f"{word!r} attends most to {WORDS[row.argmax()]!r} ({row.max():.2f})"
        for word, row, seen in zip(WORDS, weights, mask, strict=True)
        if any(seen)
    ]
    blind = [repr(word) for word, seen in zip(WORDS, mask, strict=True) if not any(seen)]
    if blind:
        rest = f"{', '.join(blind)} may attend to nothing: all weights there are zero, and so is the output, not NaN."
    else:
        rest = "Each row sums to one over what is visible."
    return f"{'; '.join(most)}{'. ' if most else ''}{rest}"


# ------------------------------------------------------------------------------------------------- the softmax

STARTS = (1.2, 0.4, -0.3, -1.1, 0.0)  # the scores of five keys at d_k = 1
EQUAL = 0.005  # weights that differ by less are called equal
SATURATED = 0.02  # norm of the Jacobian: below, hardly any gradient comes through


def softmax_explorer() -> Explorer:
    """The softmax over five scores q.k, with a temperature T and a width d_k to move.

    A key has its score at d_k = 1; a wider q and k make it sqrt(d_k) times as large, as independent entries of
    variance 1 do, unless it is divided by sqrt(d_k) (Vaswani et al. 2017, section 3.2.1). The gradient that is shown
    is the softmax's own, with respect to its inputs: that is what saturates. The division by sqrt(d_k) and by T comes
    before the softmax, so that with respect to the scores it is smaller by that factor, as the words say.
    """
    widths = {str(d): d for d in (2**power for power in range(11))}
    return Explorer(
        name="softmax",
        title="Softmax: from scores to weights",
        controls=[
            Choice(name="d_k", label="Width d_k", options=widths, value=1),
            Choice(name="scaled", label="Divide by √d_k", options={"no": False, "yes, as in the paper": True}),
            Slider(name="temperature", label="Temperature T", low=-1, high=1.6, step=0.05, value=1.0, log=True),
            *(
                Slider(name=f"z{i}", label=f"Score of key {i}", low=-3, high=3, step=0.1, value=value)
                for i, value in enumerate(STARTS, start=1)
            ),
        ],
        draw=_softmax_figure,
        alt=_softmax_in_words,
        goals=(
            Goal("a weight above 0.99, with T = 1", is_sharp),
            Goal(
                "d_k = 64, not divided, and a gradient above 0.2 all the same",
                lambda at: at["d_k"] == 64 and not at["scaled"] and gradient_size(at) > 0.2,
            ),
            Goal("five equal weights", lambda at: np.ptp(weights_at(at)) < EQUAL),
        ),
        steps={"d_k": (1, 16, 64), "temperature": (1.0, 4.0, 8.0)},  # T = sqrt(d_k) gives the same weights each time
        script="softmax",
        config={"start": {"scores": STARTS, "d_k": 1, "scaled": False, "temperature": 1.0}},
    )


def is_sharp(state: State) -> bool:
    """Whether one key has nearly all the weight, and not because of the temperature."""
    return abs(state["temperature"] - 1) < 0.01 and bool(weights_at(state).max() > 0.99)


def scores_of(state: State) -> np.ndarray:
    """The scores of the keys at d_k = 1."""
    return np.array([state[f"z{i}"] for i in range(1, len(STARTS) + 1)])


def divisor(state: State) -> float:
    """What q.k is divided by on its way into the softmax: the temperature, and sqrt(d_k) if asked for."""
    return (math.sqrt(state["d_k"]) if state["scaled"] else 1.0) * state["temperature"]


def logits_of(state: State) -> np.ndarray:
    """What goes into the softmax: q.k, divided."""
    return scores_of(state) * math.sqrt(state["d_k"]) / divisor(state)


def weights_at(state: State) -> np.ndarray:
    """exp(z_i) / sum_j exp(z_j)."""
    logits = logits_of(state)
    powers = np.exp(logits - logits.max())
    return powers / powers.sum()


def jacobian(weights: np.ndarray) -> np.ndarray:
    """dp_i / dz_j = p_i (1[i = j] - p_j): how much a small change of the softmax's input j moves weight i."""
    return np.diag(weights) - np.outer(weights, weights)


def gradient_size(state: State) -> float:
    """The norm of the softmax's Jacobian."""
    return float(np.linalg.norm(jacobian(weights_at(state))))


def _softmax_figure(state: State):
    scores, logits, weights = scores_of(state), logits_of(state), weights_at(state)
    keys = np.arange(1, len(logits) + 1)
    fig, (left, middle, right) = figure(9.6, 4.3, columns=3, layout=None, gridspec_kw={"width_ratios": [1, 1.1, 1.2]})
    fig.subplots_adjust(left=0.06, right=0.99, bottom=0.18, top=0.9, wspace=0.25)
    left.bar(keys, scores, color=PALETTE["orange"])
    left.bar(keys, logits, width=0.9, color="none", edgecolor=GREY, linestyle="--")
    left.axhline(0, color=GREY, linewidth=1)
    left.set(title="scores", xlabel="dashed: softmax input", xlim=(0.4, 5.6), ylim=(-3.2, 3.2))
    left.set_xticks(keys, [f"{logit:.{int(abs(logit) < 9.95)}f}".replace("-0.0", "0.0") for logit in logits])
    middle.bar(keys, weights, color=PALETTE["blue"])
    for key, weight in zip(keys, weights, strict=True):
        middle.text(key, weight + 0.02, f"{weight:.2f}", ha="center")
    middle.set(title="weights", xlabel="key", xticks=keys, xlim=(0.4, 5.6), ylim=(0, 1.12))
    slope = jacobian(weights)
    right.imshow(slope, cmap="PuOr", vmin=-0.25, vmax=0.25)
    right.grid(visible=False)
    for (i, j), value in np.ndenumerate(slope):
        text = f"{value:.2f}".replace("-0.00", "0.00").replace("0.", ".")
        right.text(j, i, text, ha="center", va="center", color="white" if value > 0.12 else "black")
    right.set(title="∂ weight / ∂ input", xlabel="softmax input")
    right.set_xticks(range(len(keys)), keys)
    right.set_yticks(range(len(keys)), keys)
    return fig


def _softmax_in_words(state: State) -> str:
    weights, root, divided = weights_at(state), math.sqrt(state["d_k"]), divisor(state)
    size = gradient_size(state)
    back = ", and the division takes that back" if state["scaled"] else ""
    chain = f"With respect to the scores q·k it is divided by {divided:g}: {size / divided:.3f}. "
    saturated = "The softmax is saturated: hardly any gradient comes through."
    return (
        f"The weights of keys 1 to {len(weights)} are {', '.join(f'{weight:.2f}' for weight in weights)}; "
        f"{_largest(weights)}. d_k = {state['d_k']} multiplies the standard deviation of the scores by "
        f"√d_k = {root:g}{back}. "
        f"The gradient with respect to the softmax's inputs (norm of the Jacobian) is {size:.3f}. "
        f"{'' if math.isclose(divided, 1) else chain}"
        f"{saturated if size < SATURATED else 'A change of the scores moves the weights.'}"
    )


def _largest(weights: np.ndarray) -> str:
    """Which keys have the largest weight, as far as two decimals tell."""
    *first, last = (str(key + 1) for key in np.flatnonzero(weights.max() - weights < EQUAL))
    if len(first) + 1 == len(weights):
        return "they are equal"
    return f"keys {', '.join(first)} and {last} have the largest" if first else f"key {last} has the largest"


PLAYGROUNDS = {"translator": talk, "mask": mask_painter, "softmax": softmax_explorer}
