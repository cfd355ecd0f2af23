"""Lesson 06: the tree of beams as a table whose columns are steps and whose rows are ranks, with lines between."""

import html
from typing import Any

from course_lib.lessons.lesson_06.beams import END, Hypothesis, Search, Words
from course_lib.viz.style import PALETTE

TYPE = 13  # pixels: all lengths here are for this size of type, and grow with it
HIGH, HEAD, FIRST, GAP = 35, 22, 36, 16  # a row, the head, the first column, between two columns
LETTER, LEAST = 7.7, 45  # a wide guess at a letter, the narrowest box


def em(pixels: float) -> str:
    """A length as CSS has it."""
    return f"{pixels / TYPE:.3f}em"


_CSS = f"""
.course-tree {{display:grid;grid-template-columns:minmax(0,1fr);margin:.3em 0 .2em}}
.course-steps {{overflow-x:auto}}
.course-beams {{position:relative;font-size:{TYPE}px;line-height:1.1}}
.course-beams svg {{position:absolute;left:0;top:0;pointer-events:none}}
.course-beams table {{border-collapse:collapse;table-layout:fixed;margin:0;font-size:inherit}}
.course-beams tr {{background:none;height:{em(HIGH)}}}
.course-beams thead tr {{height:{em(HEAD)}}}
.course-beams :is(td,th) {{padding:0 {em(GAP / 2)};border:0;font-weight:400;text-align:center;vertical-align:middle;
  font-size:inherit;line-height:inherit;max-width:none;white-space:nowrap;box-sizing:content-box}}
.course-beams :is(tbody th,thead td) {{padding:0;text-align:left}}
.course-beams th span {{display:block;border-radius:4px}}
.course-beams .beam {{display:block;border:1px solid #888;border-radius:7px;box-sizing:border-box;position:relative}}
.course-beams small {{font-size:.85em}}
.course-beams .lost {{border-style:dashed}}
.course-beams i {{position:absolute;right:-.5em;top:-.5em;font-style:normal;font-size:.85em}}
.course-beams [aria-current] {{outline:3px solid {PALETTE["vermilion"]};outline-offset:2px}}
.reveal :is(.course-beams,.course-beams small,.course-beams i) {{font-size:16px}}
"""
WINS = f"background-color:{PALETTE['blue']};color:#ffffff;border-color:{PALETTE['blue']}"
LED = f"background-color:{PALETTE['orange']};color:#000000;border-color:{PALETTE['orange']}"


def columns_of(search: Search) -> list[tuple[Hypothesis, ...]]:
    """What is drawn of each step: who goes on, and who ended; once somebody has, only who still will, or who leads."""
    ended = [h.words for level in search.levels for h in level.ended]
    first, led = min(map(len, ended)), search.led_and_lost()
    columns = []
    for step, (running, ends) in enumerate(search.levels, start=1):
        drawn = [
            h
            for row, h in enumerate(running)
            if step < first or any(words[:step] == h.words for words in ended) or (row == 0 and step in led)
        ]
        columns.append((*drawn, *ends) if step < len(search.winner.words) else (*ends, *drawn))
    while not columns[-1]:
        columns.pop()
    return columns


def tree_html(search: Search, chosen: Words) -> str:
    """The tree; `chosen` are the words whose box has a ring."""
    columns = list(enumerate(columns_of(search), start=1))
    wide = [round(max(LEAST, LETTER * max(len(_label(search, h)[0]) for h in column) + 8)) for _, column in columns]
    left = [FIRST + sum(wide[:i]) + GAP * i + GAP // 2 for i in range(len(wide))]  # of the boxes
    led = search.led_and_lost()
    boxes = [["" for _ in columns] for _ in range(max(len(column) for _, column in columns))]
    lines = []
    for step, column in columns:
        for row, hypothesis in enumerate(column):
            leads = step in led and hypothesis == search.levels[step - 1].running[0]
            boxes[row][step - 1] = _box(search, step, hypothesis, leads=leads, ringed=hypothesis.words == chosen)
            if step > 1:
                parent = [h.words for h in columns[step - 2][1]].index(hypothesis.words[:-1])
                ends = left[step - 2] + wide[step - 2], _middle(parent), left[step - 1], _middle(row)
                colour, width = _stroke(search, hypothesis, leads)
                lines.append((width, _line(*ends, colour, width)))
    heads = "".join(
        f'<th scope="col" style="width:{em(width)}"><span data-step="{step}" title="step {step}">{step}</span></th>'
        for (step, _), width in zip(columns, wide, strict=True)
    )
    ranks = max(len(level.running) for level in search.levels)
    names = [f"{row + 1}{_ORDINALS.get(row + 1, 'th')}" if row < ranks else "" for row in range(len(boxes))]
    body = "".join(
        f'<tr><th scope="row">{name}</th>{"".join(f"<td>{box}</td>" for box in row)}</tr>'
        for name, row in zip(names, boxes, strict=True)
    )
    total, high = FIRST + sum(wide) + GAP * len(wide), HEAD + HIGH * len(boxes)
    size = f"width:{em(total)};height:{em(high)}"
    paths = "".join(line for _, line in sorted(lines))  # the winner on top
    svg = f'<svg viewBox="0 0 {total} {high}" style="{size}" fill="none" aria-hidden="true">{paths}</svg>'
    table = (
        f'<table style="width:{em(total)}"><thead><tr><td style="width:{em(FIRST)}">step</td>{heads}</tr></thead>'
        f"<tbody>{body}</tbody></table>"
    )
    return (
        f'<style>{_CSS}</style><div class="course-tree"><div class="course-steps"><div class="course-beams" '
        f'style="width:{em(total)}">{svg}{table}</div></div></div>'
    )


def boxes_of(search: Search) -> list[dict[str, Any]]:
    """The same for the page, which draws it: a box for each hypothesis, with the index of its parent."""
    led, boxes, before = search.led_and_lost(), [], {(): None}
    for step, column in enumerate(columns_of(search), start=1):
        here = {}
        for row, hypothesis in enumerate(column):
            here[hypothesis.words] = len(boxes)
            label, value = _label(search, hypothesis)
            leads = step in led and hypothesis == search.levels[step - 1].running[0]
            boxes.append(
                {"step": step, "row": row, "words": hypothesis.words, "parent": before[hypothesis.words[:-1]]}
                | {"label": label, "value": value, "said": _said(search, step, hypothesis)}
                | {"kind": "wins" if search.wins(hypothesis.words) else "led" if leads else ""}
                | {"lost": hypothesis.words[-1] != END and not search.goes_on(step, hypothesis)}
            )
        before = here
    return boxes


def number(value: float) -> str:
    """Two places, with a real minus."""
    return f"{value:.2f}".replace("-", "−")


_ORDINALS = {1: "st", 2: "nd", 3: "rd"}
LEGEND = (
    "Row: rank. Number: sum of log-probabilities; at “end”, the score. "
    f'<span style="{WINS};border-radius:4px;padding:0 .4em">the winner</span> '
    f'<span style="{LED};border-radius:4px;padding:0 .4em">led, but did not win</span> ✕ died.'
)
"""What the signs in the tree mean."""


def _label(search: Search, hypothesis: Hypothesis) -> tuple[str, str]:
    if hypothesis.words[-1] == END:
        return "★ end" if hypothesis == search.winner else "end", number(search.score(hypothesis))
    return hypothesis.words[-1], number(hypothesis.log_p)


def _fate(search: Search, step: int, hypothesis: Hypothesis) -> str:
    if hypothesis.words[-1] == END:
        kept = [h.words for h in search.kept]
        if hypothesis.words not in kept:
            return "ended, and was pushed out by better ones"
        place = kept.index(hypothesis.words) + 1
        return "ended, and won" if place == 1 else f"ended, and came {place}{_ORDINALS.get(place, 'th')}"
    if search.goes_on(step, hypothesis):
        return "went on"
    if step == len(search.levels):
        return "was unfinished when the search stopped"
    return f"died: none of its continuations was good enough for step {step + 1}"


def _said(search: Search, step: int, hypothesis: Hypothesis) -> str:
    words = hypothesis.words[:-1] if hypothesis.words[-1] == END else hypothesis.words
    return f"{' '.join(words)}: log p {number(hypothesis.log_p)}, {_fate(search, step, hypothesis)}"


def _box(search: Search, step: int, hypothesis: Hypothesis, *, leads: bool, ringed: bool) -> str:
    word, value = _label(search, hypothesis)
    ended = hypothesis.words[-1] == END
    colours = WINS if search.wins(hypothesis.words) else LED if leads else ""
    lost = not ended and not search.goes_on(step, hypothesis)
    said = _said(search, step, hypothesis)
    return (
        f'<span class="beam{" lost" if lost else ""}" style="{colours}" data-step="{step}" '
        f'title="{html.escape(said)}"{_RING if ringed else ""}>'
        f"{html.escape(word)}{'<i> ✕</i>' if lost else ''}<br><small>{value}</small></span>"
    )


_RING = ' aria-current="true"'


def _stroke(search: Search, hypothesis: Hypothesis, leads: bool) -> tuple[str, float]:
    if search.wins(hypothesis.words):
        return PALETTE["blue"], 4
    return (PALETTE["orange"], 3) if leads else ("#888888", 1.4)


def _middle(row: int) -> float:
    return HEAD + HIGH * (row + 0.5)


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, width: float) -> str:
    middle = (x1 + x2) / 2
    curve = f"M{x1:g} {y1:g}C{middle:g} {y1:g} {middle:g} {y2:g} {x2:g} {y2:g}"
    return f'<path d="{curve}" stroke="{colour}" stroke-width="{width:g}"/>'
