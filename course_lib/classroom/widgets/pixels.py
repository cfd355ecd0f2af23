"""Small pictures in HTML, pixel for pixel, side by side or in a grid whose squares can be clicked."""

import base64
import html
import io
from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
from jaxtyping import Float, UInt8
from PIL import Image
from torch import Tensor

from course_lib.viz.style import SEQUENTIAL

Pixels = UInt8[np.ndarray, "h w *C"]
CELL = "border:0;padding:1px 2px 1px 0;background:none;line-height:0;text-align:center"


def grey(pixels: Float[Tensor, "h w"]) -> Pixels:
    """Pixels from 0 to 1 as bytes."""
    return (pixels.clamp(0, 1) * 255).round().byte().numpy()


def coloured(values: Float[Tensor, "h w"], most: float | None = None, colours: str = SEQUENTIAL) -> Pixels:
    """Numbers from 0 to `most`, or to their maximum, in a colour map."""
    highest = float(values.max()) if most is None else most
    return mpl.colormaps[colours]((values / max(highest, 1e-9)).clamp(0, 1).numpy(), bytes=True)[..., :3]


def in_base64(pixels: Pixels) -> str:
    """The bytes of an image, row by row, as `bytesOf` of `browser/images.js` reads them."""
    return base64.b64encode(pixels.tobytes()).decode()


def pixel_image(pixels: Pixels, width: int, alt: str, *, colours: int | None = None) -> str:
    """An image of this width without interpolation, also where a page takes styles away.

    With at most so many `colours` a drawing takes a third of the bytes.
    """
    words, height = html.escape(alt, quote=True), round(width * pixels.shape[0] / pixels.shape[1])
    buffer = io.BytesIO()
    image = Image.fromarray(pixels).resize((width, height), Image.Resampling.NEAREST)
    (image.quantize(colours, dither=Image.Dither.NONE) if colours else image).save(
        buffer, "png", optimize=bool(colours)
    )
    return (
        f'<img alt="{words}" title="{words}" width="{width}" height="{height}" draggable="false" '
        f'style="width:{width}px;height:{height}px;max-width:none;margin:0;outline:0" '
        f'src="data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}">'
    )


def in_rows(rows: Sequence[Sequence[str]], caption: str) -> str:
    """Images in rows, below a line of words; tables stand side by side where there is room."""
    cell = f'<td style="{CELL}">'
    lines = "".join(f"<tr>{cell}{f'</td>{cell}'.join(row)}</td></tr>" for row in rows)
    return (
        '<div style="display:inline-block;vertical-align:top;margin:0 1.2em .8em 0">'
        f'<div style="line-height:1.35;margin-bottom:.2em">{caption}</div>'
        f'<table style="border-collapse:collapse;margin:0;width:max-content"><tbody>{lines}</tbody></table></div>'
    )
