"""A translator to talk to: type a sentence, see its translation and where the attention looks."""

import difflib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from course_lib.classroom.widgets.explorer import Explorer, State, TextBox
from course_lib.viz.style import SEQUENTIAL, figure


def translator(
    translate: Callable[[str], Any],
    *,
    vocabulary: Sequence[str],
    examples: Sequence[str],
    max_words: int = 40,
    title: str = "Translate a sentence of your own",
) -> Explorer:
    """A box for a sentence, its translation and the attention map.

    `translate(text)` gives an object with `source` and `target` (words), `weights` (T_target, T_source) and `unknown`
    (words of the text that the model has never seen). `vocabulary` are the words it knows, from which near ones are
    suggested. Raises ValueError without an example.
    """
    if not examples:
        raise ValueError("The translator needs at least one example sentence to start with, but got none.")
    known = sorted(set(vocabulary))
    latest: dict[str, Any] = {}

    def result(state: State) -> Any:
        text = " ".join(state["text"].split())
        if not text:
            raise ValueError("Type a sentence, or take one of the examples.")
        if len(text.split()) > max_words:
            raise ValueError(f"This sentence has {len(text.split())} words; please keep to {max_words}.")
        if text not in latest:  # drawn and said from one translation
            latest.clear()
            latest[text] = translate(text)
        return latest[text]

    def alt(state: State) -> str:
        return _in_words(result(state), known)

    return Explorer(
        name="translator",
        title=title,
        controls=[TextBox(name="text", label="English sentence", value=examples[0], examples=list(examples))],
        draw=lambda state: _draw(result(state)) if len(result(state).target) else "",
        alt=alt,
        words_first=True,
        steps={"text": tuple(examples)},
    )


def suggestions(word: str, known: Sequence[str]) -> list[str]:
    """Return up to three known words that are spelt like `word`, the nearest first."""
    return difflib.get_close_matches(word.lower(), known, n=3, cutoff=0.6)


def _in_words(result: Any, known: Sequence[str]) -> str:
    parts = []
    for word in dict.fromkeys(result.unknown):
        near = suggestions(word, known)
        did = f" Did you mean {' or '.join(f'“{w}”' for w in near)}?" if near else ""
        parts.append(f"I do not know the word “{word}” yet, so I can only guess.{did}")
    if not len(result.target):
        return " ".join([*parts, "There is no translation."])
    parts.append(f"Translation: “{' '.join(result.target)}”.")
    weights = np.asarray(result.weights)
    looks = (f"“{word}” at “{result.source[row.argmax()]}”" for word, row in zip(result.target, weights, strict=True))
    parts.append(f"Where each French word looks most: {', '.join(looks)}.")
    return " ".join(parts)


def _draw(result: Any):
    weights = np.asarray(result.weights)
    unknown = {word.lower() for word in result.unknown}
    source = [f"{word} (?)" if word.lower() in unknown else word for word in result.source]
    rows, columns = weights.shape
    if (rows, columns) != (len(result.target), len(source)):
        raise ValueError(
            f"The weights have shape {(rows, columns)}, but there are {len(result.target)} target and {len(source)} "
            "source words."
        )
    left, top = 1.7, 1.15
    width, height = left + 0.3 + max(0.66 * columns, 3.8), top + 0.5 + max(0.3 * rows, 0.8)
    fig, axes = figure(width, height, layout=None)
    fig.subplots_adjust(left=left / width, right=1 - 0.8 / width, top=1 - top / height, bottom=0.35 / height)
    axes.imshow(weights, cmap=SEQUENTIAL, vmin=0, vmax=1, aspect="auto")
    axes.grid(visible=False)
    axes.set_xticks(range(columns), source, rotation=40, ha="left", rotation_mode="anchor", fontsize=14)
    axes.set_yticks(range(rows), result.target, fontsize=14)
    axes.xaxis.tick_top()
    axes.set_xlabel("English word; a bright square = much attention (0 to 1)", fontsize=14)
    for i, best in enumerate(weights.argmax(axis=1)):
        colour = "black" if weights[i, best] > 0.45 else "white"
        axes.text(best, i, f"{weights[i, best]:.2f}".lstrip("0"), ha="center", va="center", color=colour, fontsize=14)
    return fig
