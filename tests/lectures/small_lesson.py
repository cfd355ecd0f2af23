"""A second lesson, as small as one can be: its metadata alone give it a lecture, with something of each kind."""

import html
import json
from functools import cache

from matplotlib.figure import Figure
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from course_lib.classroom.output import picture_html
from course_lib.lectures.story import fold

PROSE = """## 1 · The idea

A wave comes back:

$$f(t + T) = f(t),$$

where $T$ is its period.

| wave | period (s) |
|---|---|
| slow | 8 |
| fast | 2 |
"""


def small_lesson() -> NotebookNode:
    """The lesson, its slides folded into the cells that they show."""
    drawing = "t = linspace(0, 8, 200)\nshow(plot(t, sin(t)), alt=...)"
    quiz = '<p><strong>Question.</strong> Which is slower?</p><ol type="A"><li>8 s</li><li>2 s</li></ol>'
    answer = "<details><summary>Show the answer</summary><p>A: a longer period.</p></details>"
    cells = [
        slide("# 99 · Waves\n\nWhat comes back.", paths="30 60 90"),
        new_markdown_cell("# 99 · Waves"),
        slide("## It comes back\n\n- each **period** $T$", paths="30 90", show="math"),
        slide("## Slow and fast", paths="90", show="table"),
        new_markdown_cell(PROSE),
        slide("## How it is drawn", paths="60 90", show="code"),
        slide("## A wave", paths="30 60 90", show="figure"),
        new_code_cell(drawing, outputs=[shown("Figure: A wave that rises.", wave())]),
        slide("## Vote: which is slower?", paths="60 90", show="question answer"),
        new_code_cell('quiz("slower")', outputs=[shown("Question. Which?", quiz), shown("Answer: A", answer)]),
        slide("## Step by step\n\n- it counts\n- it prints", paths="90", show="code text", steps=True),
        new_code_cell("for t in range(2):\n    print(t)", outputs=[new_output("stream", name="stdout", text="0\n1\n")]),
        slide("## Play", paths="60 90", show="widget"),
        new_code_cell("explorer.live()", outputs=[shown("Periods", stepper())]),
    ]
    return new_notebook(cells=fold(cells))


def slide(text, *, paths, **metadata):
    """A slide as an author writes it, above the cell that it shows."""
    notes = f"**Say.** What stands under *{text.partition(chr(10))[0].lstrip('# ')}*. **Ask.** Where is $T$?"
    return new_markdown_cell(f"{text}\n\n**Notes**\n\n{notes}", metadata={"slide": paths, "minutes": 1.5, **metadata})


def shown(plain, as_html):
    return new_output("display_data", {"text/plain": plain, "text/html": as_html})


def stepper() -> str:
    """What `Explorer.stepper` writes, with two frames."""
    controls = html.escape(json.dumps([["Period", ["2 s", "8 s"]]]))
    frames = [
        f'<details data-at="{at}"{is_open}><summary>Period: {words}</summary>{wave()}</details>'
        for at, words, is_open in ((0, "2 s", " open"), (1, "8 s", ""))
    ]
    return f'<div class="course-stepper" data-controls="{controls}">{"".join(frames)}</div>'


@cache
def wave() -> str:
    figure = Figure(figsize=(8, 4), layout="constrained")
    figure.subplots().plot([0, 1, 2], [0, 1, 0])
    return picture_html(figure, alt="A wave that rises, then falls, over two seconds.")
