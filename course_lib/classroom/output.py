"""How the classroom puts something on the page: HTML for a notebook, plain text everywhere else.

A display carries all its forms at once. JupyterLab takes the live widget while there is a kernel; a stored notebook, a
hand-out or a slide shows the HTML; a terminal prints the plain text. Neither text holds ids or anything random.
"""

import base64
import html
import io
import re
import sys
from typing import Any

from IPython import get_ipython
from IPython.display import display
from matplotlib.figure import Figure
from PIL import Image

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"

PIXELS = re.compile(r"data:image/png;base64,[A-Za-z0-9+/=]+")
"""The pixels of a picture inside HTML, the one part of a text output that differs from machine to machine.

`nbval_sanitize.cfg` beside this file gives nbval the same rule (`--nbval-sanitize-with`).
"""

BLUE, GREEN, RED, GREY = "#0072B2", "#009E73", "#D55E00", "#767676"


def in_notebook() -> bool:
    """Whether a Jupyter kernel is running this code."""
    return hasattr(get_ipython(), "kernel")


def present(plain: str, html_text: str, *, widget: Any = None) -> None:
    """Show a text in the form that the reader's front end can take; `widget` is preferred where one can live."""
    if not in_notebook():
        print(plain)
        return
    data = {"text/plain": plain, "text/html": html_text}
    if widget is not None:
        data[WIDGET_VIEW] = {"version_major": 2, "version_minor": 0, "model_id": widget.model_id}
    display(data, raw=True)


def show(fig: Figure, *, alt: str) -> None:
    """Show a figure with its text alternate, then close it.

    The picture goes into the page as an HTML image, because JupyterLab gives an image/png output no alt text.
    Raises ValueError if `alt` is empty.
    """
    present(f"Figure: {_sentence(alt)}", picture_html(fig, alt=alt))
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close(fig)


def picture_html(fig: Figure, *, alt: str) -> str:
    """Return a figure as an HTML image with its text alternate, on white ground also where the page is dark.

    Raises ValueError if `alt` is empty.
    """
    alt = _sentence(alt)
    buffer = io.BytesIO()
    fig.savefig(buffer, format="png", metadata={"Software": None})
    with Image.open(buffer) as picture:
        width, height = picture.size
        few_colours = picture.convert("RGB").quantize(256, dither=Image.Dither.NONE)  # a third of the bytes
    buffer = io.BytesIO()
    few_colours.save(buffer, format="png", optimize=True)
    data = buffer.getvalue()
    return (
        f'<img alt="{html.escape(alt)}" width="{width}" height="{height}" decoding="sync" '
        f'style="box-sizing:content-box;max-width:calc(100% - 16px);height:auto;padding:8px;background:#fff;'
        f'border-radius:8px" src="data:image/png;base64,{base64.b64encode(data).decode()}">'
    )


def panel(body: str, *, colour: str = BLUE, attributes: str = "") -> str:
    """Return HTML with a coloured rule on its left; the rule only repeats what the words already say."""
    return (
        f'<div {attributes} style="border-left:4px solid {colour};padding:0.1em 0 0.1em 0.9em;'
        f'margin:0.3em 0;max-width:52em;line-height:1.45">{body}</div>'
    ).replace("<div  ", "<div ")


def _sentence(alt: str) -> str:
    text = " ".join(alt.split())
    if not text:
        raise ValueError("A figure needs alt text: one or two sentences that say what there is to see.")
    return text
