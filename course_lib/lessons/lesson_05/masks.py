"""A mask to paint: which word may look at which, and what that does to the attention weights."""

import numpy as np
import torch

from course_lib.classroom.widgets.explorer import Explorer, PaintGrid, State
from course_lib.functional.attention import causal_mask, local_mask, masked_softmax, padding_mask
from course_lib.viz.style import SEQUENTIAL, figure

WORDS = ("the", "cat", "sees", "a", "dog", "<pad>")

SCORES = torch.tensor(
    [
        [0.6, 1.8, 0.2, 0.1, 0.3, 0.4],
        [1.0, 0.7, 1.6, 0.0, 0.5, 0.2],
        [0.1, 1.7, 0.5, 0.2, 1.5, 0.6],
        [0.2, 0.1, 0.4, 0.6, 1.9, 0.3],
        [0.0, 0.6, 1.4, 1.1, 0.8, 0.5],
        [0.5, 0.4, 0.6, 0.3, 0.7, 0.9],
    ]
)
"""Scores q.k / sqrt(d_k) of a made-up sentence: row = the word that looks, column = the word looked at."""

Grid = tuple[tuple[bool, ...], ...]


def mask_painter() -> Explorer:
    """A six-by-six attention mask to paint, beside the weights that remain; True (✓) = may attend."""
    size = len(WORDS)
    full = torch.ones(size, size, dtype=torch.bool)
    presets = {
        "full": full,
        "causal": causal_mask(size),
        "local (1 word)": local_mask(size, window=1),
        "padding": padding_mask(torch.tensor([size - 1]), size)[0, 0] & full,
        "nothing": ~full,
    }
    grids = {name: _grid(mask) for name, mask in presets.items()}
    return Explorer(
        name="mask",
        title="Paint a mask: row = the word that looks, column = the word it looks at",
        controls=[
            PaintGrid(
                name="mask",
                label="✓ = may look, · = hidden",
                value=grids["causal"],
                rows=WORDS,
                columns=WORDS,
                square=_say,
                presets=grids,
            )
        ],
        draw=_draw,
        alt=_alt,
        beside=True,
        steps={"mask": tuple(grids.values())},
    )


def weights_of(state: State) -> torch.Tensor:
    """Return the attention weights under the painted mask; a row that sees nothing is zero."""
    return masked_softmax(SCORES, torch.tensor(state["mask"]))


def _grid(mask: torch.Tensor) -> Grid:
    return tuple(tuple(row) for row in mask.tolist())


def _say(row: int, column: int, on: bool) -> str:
    return f"{WORDS[row]!r} {'may look' if on else 'may not look'} at {WORDS[column]!r}"


def _draw(state: State):
    weights, mask = weights_of(state).numpy(), state["mask"]
    fig, axes = figure(4.9, 4.5, layout=None)
    fig.subplots_adjust(left=0.16, right=0.94, bottom=0.03, top=0.79)
    axes.imshow(weights, cmap=SEQUENTIAL, vmin=0, vmax=1)
    axes.grid(visible=False)
    axes.set_title("attention weights", pad=12)
    axes.set_xticks(range(len(WORDS)), WORDS, rotation=35, ha="left", rotation_mode="anchor")
    axes.set_yticks(range(len(WORDS)), WORDS)
    axes.xaxis.tick_top()
    for (i, j), weight in np.ndenumerate(weights):
        text, colour = (f"{weight:.2f}", "black" if weight > 0.45 else "white") if mask[i][j] else ("×", "#bbbbbb")
        axes.text(j, i, text, ha="center", va="center", color=colour, fontsize=12)
    return fig


def _alt(state: State) -> str:
    weights, mask = weights_of(state), state["mask"]
    blind = [WORDS[i] for i, row in enumerate(mask) if not any(row)]
    parts = []
    for word, row, seen in zip(WORDS, weights, mask, strict=True):
        if any(seen):
            best = int(row.argmax())
            parts.append(f"{word!r} looks most at {WORDS[best]!r} ({row[best]:.2f})")
    text = "; ".join(parts) + ". " if parts else ""
    if blind:
        rows = "The row of" if len(blind) == 1 else "The rows of"
        text += (
            f"{rows} {', '.join(map(repr, blind))} may look at nothing: all weights there are zero, "
            "and so is the output, not NaN."
        )
    else:
        text += "Each row sums to one over what is visible."
    return text
