"""The typefaces of a deck, inside its style sheet: Source Sans Pro for text, DejaVu for code and signs."""

import base64
import io
from functools import cache
from pathlib import Path

import matplotlib
from fontTools import subset
from fontTools.ttLib import TTFont

from course_lib.lectures.assets import FONTS, REVEAL, asset

FACES = (  # of Source Sans Pro
    ("regular", 400, "normal"),
    ("italic", 400, "italic"),
    ("semibold", 600, "normal"),
)
CODE = [*range(0x20, 0x7F), *range(0xA0, 0x180), *range(0x370, 0x400), *range(0x2010, 0x2040)]
SIGNS = [*range(0x2070, 0x2100), *range(0x2190, 0x2200), *range(0x2200, 0x2300), *range(0x2500, 0x2600)]
SIGNS += [*range(0x2600, 0x2800)]  # arrows, mathematics, boxes, check marks


@cache
def font_css() -> str:
    """The @font-face rules, with the fonts as data addresses. Raises CannotStart if a font cannot be had."""
    rules = []
    for name, weight, style in FACES:
        data = asset(REVEAL, f"{FONTS}/source-sans-pro-{name}.woff")
        rules.append(_rule("Source Sans Pro", data, weight, style))
    rules.append(_rule("Course Mono", _subset("DejaVuSansMono.ttf", CODE + SIGNS), 400, "normal"))
    rules.append(_rule("Course Symbols", _subset("DejaVuSans.ttf", SIGNS), 400, "normal"))
    return "\n".join(rules)


def _rule(family: str, woff: bytes, weight: int, style: str) -> str:
    data = base64.b64encode(woff).decode()
    return (
        f'@font-face{{font-family:"{family}";font-weight:{weight};font-style:{style};'
        f"src:url(data:font/woff;base64,{data}) format('woff')}}"
    )


def _subset(name: str, characters: list[int]) -> bytes:
    """A font that comes with matplotlib, cut down to some characters, as WOFF."""
    font = TTFont(Path(matplotlib.get_data_path()) / "fonts" / "ttf" / name)
    options = subset.Options(hinting=False, layout_features=[], notdef_outline=True, drop_tables=["FFTM"])
    cutter = subset.Subsetter(options)
    cutter.populate(unicodes=characters)
    cutter.subset(font)
    font.flavor = "woff"
    buffer = io.BytesIO()
    font.save(buffer)
    return buffer.getvalue()
