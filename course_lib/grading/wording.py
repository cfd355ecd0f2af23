"""Words and numbers of reports: points without noise, and text that others wrote made harmless to show."""

import math
import re

# Controls, marks that turn the direction of writing, characters of no width, halves of surrogate pairs. The joiners
# U+200C and U+200D stay: Persian, Hindi and emoji need them.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff"
    "\ufeff\ufff9-\ufffb\ufffe\uffff\U000e0000-\U000e007f]"
)


def visible(text: str) -> str:
    """The text with each character that hides, reorders or steers replaced by its number, such as ⟨U+202E⟩.

    Newlines and tabs stay; all kinds of line ends become newlines.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _UNSEEN.sub(lambda match: f"⟨U+{ord(match[0]):04X}⟩", text)


def one_line(text: str, limit: int = 200) -> str:
    """The text made `visible`, on one line, and cut off with an ellipsis after `limit` characters."""
    line = " ".join(visible(text[: 10 * limit]).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def points(number: float) -> str:
    """A number of points with at most two decimals and no trailing zeros: "0.3", "12", "2.68".

    Halves are rounded up, as by hand. Raises ValueError for NaN and infinity.
    """
    if not math.isfinite(number):
        raise ValueError(f"{number} is no number of points")
    hundredths = math.floor(round(100 * number, 7) + 0.5)  # 7 digits: what is left of 0.1 + 0.2 goes, 0.125 stays
    return f"{hundredths / 100:.2f}".rstrip("0").rstrip(".")


def counted(number: int, noun: str) -> str:
    """A number with its noun: "1 check", "2 checks"."""
    return f"{number} {noun if number == 1 else noun + 's'}"
