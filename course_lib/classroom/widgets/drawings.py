"""Drawings in HTML: they can be hovered, with no kernel and no script, and read aloud as the tables they are."""

import hashlib
import html
from collections.abc import Collection, Sequence

import matplotlib as mpl
import numpy as np
from jaxtyping import Bool, Float
from matplotlib.colors import to_hex
from torch import Tensor

from course_lib.viz.style import PALETTE, SEQUENTIAL

DARK = 0.47  # up to this share white reads better on the colour, from here on black: both 4.5:1 or more (WCAG AA)
HIDDEN = "position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)"  # heard, not seen

# Named twice, the class outweighs what JupyterLab says of all tables in an output (stripes, text at the right): a map
# has one look in an output, in a widget and on a slide. Without `numbers` its squares are square, so a ring is round.
_MAP_CSS = f"""
.course-map {{--side:1.75em;overflow-x:auto}}
.course-map.course-map table {{border-collapse:separate;border-spacing:1px;margin:0;width:auto;font-size:inherit;
  line-height:1.35}}
.course-map.course-map caption {{text-align:left;font-size:inherit;color:inherit;padding:0}}
.course-map.course-map tr:nth-child(n) {{background:none}}
.course-map.course-map :is(th,td) {{padding:0 .3em;border:0;font-weight:400;max-width:none;font-size:inherit;
  line-height:inherit;vertical-align:middle}}
.course-map.course-map thead th {{writing-mode:vertical-rl;transform:rotate(180deg);text-align:left;padding:.3em 0}}
.course-map.course-map tbody th {{text-align:right;cursor:default;white-space:nowrap}}
.course-map.course-map td {{text-align:center}}
.course-map.course-map:not(.full) td[title] {{box-sizing:border-box;width:var(--side);min-width:var(--side);
  height:var(--side);padding:0;line-height:1}}
.course-map:not(.full) td > span {{font-size:.8em}}
.course-map:not(.full) td:not(.best) > span {{opacity:0}}
.course-map.course-map.full :is(td,tbody th) {{padding:.25em .45em}}
.course-map tr:is(:hover,:focus-within) td:not(.best) > span {{opacity:1}}
.course-map .heard {{{HIDDEN}}}
.reveal .course-map:not(.full) {{font-size:16px;line-height:1.2}}
.reveal .course-map:not(.full) td > span {{font-size:1em}}
"""


def heat_map(
    matrix: Float[np.ndarray, "R C"] | Float[Tensor, "R C"],
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    label: str,
    high: float = 1.0,
    numbers: bool = False,
    marks: Collection[tuple[int, int]] = (),
    mark: str = "gold",
    hidden: Bool[np.ndarray, "R C"] | None = None,
) -> str:
    """A table of numbers from 0 to `high` as coloured squares.

    Pointing at a row lights up the words across the top, each as much as its number, and shows the row's numbers; with
    `numbers` all are there from the start, otherwise the largest of each row. `marks` are squares (row, column) with a
    ring; `mark` is what a ring means, in a word. `hidden` squares have a cross. Raises ValueError if the words do not
    fit the matrix.
    """
    matrix = np.asarray(matrix, dtype=float)
    if matrix.shape != (len(rows), len(columns)):
        raise ValueError(
            f"The matrix has shape {matrix.shape}, but there are {len(rows)} rows and {len(columns)} columns."
        )

    def square(i: int, j: int) -> str:
        if hidden is not None and hidden[i, j]:
            said = f"“{rows[i]}”, “{columns[j]}”: hidden"
            return f'<td class="best" title="{html.escape(said)}" style="border:1px dotted"><span>×</span></td>'
        share, ringed = matrix[i, j] / high, (i, j) in marks
        ring = f";border:2px solid {PALETTE['vermilion']};border-radius:50%" if ringed else ""
        said = f"“{rows[i]}”, “{columns[j]}”: {matrix[i, j]:.2f}{f' ({mark})' if ringed else ''}"
        best = ' class="best"' if j == matrix[i].argmax() and share > 0.05 else ""
        heard = f'<span class="heard"> {mark}</span>' if ringed else ""
        number = f"{matrix[i, j]:.2f}".removeprefix("0").replace("1.00", "1.0") if high <= 1 else f"{matrix[i, j]:.0f}"
        return f'<td{best} title="{html.escape(said)}" style="{_paint(share)}{ring}"><span>{number}</span>{heard}</td>'

    head = "".join(f'<th scope="col" class="column-{j}">{html.escape(word)}</th>' for j, word in enumerate(columns))
    body = "".join(
        f'<tr class="row-{i}"><th scope="row" tabindex="0">{html.escape(word)}</th>'
        f"{''.join(square(i, j) for j in range(len(columns)))}</tr>"
        for i, word in enumerate(rows)
    )
    table = f"<caption>{html.escape(label)}</caption><thead><tr><td></td>{head}</tr></thead><tbody>{body}</tbody>"
    return linked(
        f'<style>{_MAP_CSS}</style><div class="course-map{" full" if numbers else ""}"><table>{table}</table></div>',
        matrix / high,
    )


def linked(body: str, weights: Float[np.ndarray, "R C"] | Float[Tensor, "R C"]) -> str:
    """HTML in which pointing at, or moving the focus to, what has the class `row-i` lights up what has `column-j`.

    It lights up by `weights[i, j]`, from 0 to 1.
    """
    weights = np.asarray(weights, dtype=float)
    name = f"linked-{hashlib.sha1(weights.round(2).tobytes()).hexdigest()[:8]}"
    rules = [
        f".{name} .column-{j}{{background:rgb(230 159 0/calc(.6*var(--light-{j},0)));border-radius:3px}}"
        for j in range(weights.shape[1])
    ]
    rules += [
        f".{name}:has(.row-{i}:is(:hover,:focus,:focus-within)){{{';'.join(_lights(row))}}}"
        for i, row in enumerate(weights)
    ]
    return f'<div class="{name}"><style>{"".join(rules)}</style>{body}</div>'


def token_bars(chances: Sequence[tuple[str, float]], *, label: str) -> str:
    """Next tokens with their probabilities as bars; a blank shows as ␣ and a line's end as ⏎."""
    plain = "border:0;padding:0 .5em;font-weight:400;text-align:right;white-space:nowrap"
    lines = "".join(
        f'<tr style="background:none"><th scope="row" style="{plain}"><code>{_visible(token)}</code></th>'
        f'<td style="border:0;width:14em;padding:0"><div style="width:{100 * chance:.1f}%;height:1em;'
        f'background-color:{PALETTE["blue"]}"></div></td><td style="{plain}">{chance:.1%}</td></tr>'
        for token, chance in chances
    )
    caption = f'<caption style="text-align:left;color:inherit">{html.escape(label)}</caption>'
    style = "border-collapse:collapse;margin:0;width:max-content;font-size:inherit"
    return f'<table style="{style}">{caption}<tbody>{lines}</tbody></table>'


def _visible(token: str) -> str:
    return html.escape(token.replace(" ", "␣").replace("\n", "⏎"))


def _paint(share: float) -> str:
    dark = share < DARK
    return f"background-color:{to_hex(mpl.colormaps[SEQUENTIAL](share))};color:{'#ffffff' if dark else '#000000'}"


def _lights(row: Float[np.ndarray, " C"]) -> list[str]:
    return [f"--light-{j}:{share:.2f}" for j, share in enumerate(row) if share >= 0.005]
