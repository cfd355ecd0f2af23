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

import matplotlib as mpl
from IPython import get_ipython
from IPython.display import display
from matplotlib.figure import Figure
from PIL import Image

from course_lib.classroom.markup import to_html, to_plain

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"

SMALL = 60_000  # bytes of an SVG, above which a smaller PNG is taken
MIN_WIDTH = 560  # pixels: below it the words of a figure cannot be read
THEMES = (  # a drawing on a dark page: its ink turns light, its colours keep their hues
    '<style>[data-jp-theme-light="false"] img.course-drawing{background:none!important;'
    "filter:invert(1) hue-rotate(180deg)}</style>"
)

PIXELS = re.compile(r"data:image/(?:png|svg\+xml);base64,[A-Za-z0-9+/=]+")
PIXELS_CUT = "data:image/png;base64,PIXELS"
VARYING = re.compile(r"\u2060[^\u2060]*\u2060")  # between word joiners, which nobody sees
VARYING_CUT = "VARIES"
"""What of an output may differ from machine to machine: pixels, and what `varies` marks.

`nbval_sanitize.cfg` beside this file gives nbval the same rules (`--nbval-sanitize-with`).
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


def picture_html(fig: Figure, *, alt: str, scale: int = 2, min_width: int = MIN_WIDTH) -> str:
    """Return a figure as an HTML image with its text alternate: an SVG, or a PNG of `scale` times its size.

    Images are PNGs; a drawing with many points is whichever has fewer bytes. The ground is white; where the page is
    dark, `THEMES` inverts a drawing, and an image keeps its colours. On a narrow screen it shrinks to `min_width`
    pixels and scrolls. Raises ValueError if `alt` is empty.
    """
    alt = _sentence(alt)
    width, height = (round(fig.dpi * inches) for inches in fig.get_size_inches())
    drawing = not any(axes.images for axes in fig.axes)
    forms = {"svg+xml": _svg(fig)} if drawing else {}
    if not drawing or len(forms["svg+xml"]) >= SMALL:
        forms["png"] = _png(fig, scale)
    kind, data = min(forms.items(), key=lambda form: len(form[1]))
    return (
        f'<img alt="{html.escape(alt)}" width="{width}" height="{height}" decoding="sync" '
        f'class="course-{"drawing" if drawing else "image"}" style="box-sizing:content-box;max-width:max(calc(100% - '
        f'16px),{min(width, min_width)}px);height:auto;padding:8px;background:#fff;border-radius:8px" '
        f'src="data:image/{kind};base64,{base64.b64encode(data).decode()}">'
    )


def _svg(fig: Figure) -> bytes:
    buffer = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "course"}):
        fig.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None}, transparent=True)
    short = re.sub(rb"([1-9]\d*\.\d\d)\d+|<!--.*?-->", rb"\1", buffer.getvalue())  # points, to a hundredth
    return re.sub(rb"\n\s*", b"\n", short)


def _png(fig: Figure, scale: int) -> bytes:
    buffer = io.BytesIO()
    fig.savefig(buffer, format="png", dpi=scale * fig.dpi, metadata={"Software": None})
    with Image.open(buffer) as picture:
        few_colours = picture.convert("RGB").quantize(256, dither=Image.Dither.NONE)  # a third of the bytes
    buffer = io.BytesIO()
    few_colours.save(buffer, format="png", optimize=True)
    return buffer.getvalue()


def panel(body: str, *, colour: str = BLUE, attributes: str = "") -> str:
    """Return HTML with a coloured rule on its left; the rule only repeats what the words already say."""
    return (
        f'<div {attributes} style="border-left:4px solid {colour};padding:0.1em 0 0.1em 0.9em;'
        f'margin:0.3em 0;max-width:52em;line-height:1.45">{body}</div>'
    ).replace("<div  ", "<div ")


def say(text: str, colour: str = BLUE) -> None:
    """Show a text of the little markup."""
    present(to_plain(text), panel(to_html(text), colour=colour))


def varies(text: str) -> str:
    """Mark what a training on this page has made, so that it is not compared with the stored output.

    Processors round sums in different orders. After some hundred steps the last digits differ, and so may the words
    that a model samples.
    """
    return f"\u2060{text}\u2060"


def _sentence(alt: str) -> str:
    text = " ".join(alt.split())
    if not text:
        raise ValueError("A figure needs alt text: one or two sentences that say what there is to see.")
    return text
