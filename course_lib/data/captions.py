"""A sentence about a digit scene: its size, whether its ink is darker than the ground, which digit, and where.

Everything that a caption says is measured on the scene itself (`course_lib.data.scenes`), so a right one exists.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from course_lib.data.scenes import Scenes
from course_lib.text.words import WordTokenizer

DIGIT_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
SIZES, INKS, PLACES = ("small", "large"), ("dark", "bright"), ("left", "centre", "right")
LARGE = 0.71  # of the image's side: from this height on a digit is large
THIRDS = (0.47, 0.54)  # of the image's width: where the middle of a digit lies from which on it is central, or right
ASPECTS = {"size": 1, "ink": 2, "digit": 3, "place": 6}  # at which word of a caption each is told


def measures(scenes: Scenes) -> Float[Tensor, "B 3"]:
    """Height and middle of the digit, as shares of the image, and how much brighter than the rest its ink is."""
    side, ink = scenes.pixels.shape[-1], scenes.instances == 1
    x0, y0, x1, y1 = scenes.boxes[:, 0].unbind(dim=1)
    grey = scenes.pixels.mean(dim=1)
    brighter = _mean(grey, ink) - _mean(grey, ~ink)
    return torch.stack([(y1 - y0) / side, (x0 + x1) / 2 / side, brighter], dim=1)


def captions(scenes: Scenes) -> list[str]:
    """One for each scene, of its first digit, such as "a small bright seven at the left"."""
    height, middle, brighter = measures(scenes).unbind(dim=1)
    position = (middle[:, None] >= torch.tensor(THIRDS)).sum(dim=1)
    parts = torch.stack([(height >= LARGE).long(), (brighter >= 0).long(), scenes.labels[:, 0], position], dim=1)
    return [caption(*row) for row in parts.tolist()]


def caption(size: int, ink: int, digit: int, position: int) -> str:
    """The sentence that says these four things."""
    return f"a {SIZES[size]} {INKS[ink]} {DIGIT_WORDS[digit]} at the {PLACES[position]}"


def caption_tokenizer() -> WordTokenizer:
    """The words of all captions."""
    words = ["a", *SIZES, *INKS, *DIGIT_WORDS, "at", "the", *PLACES]
    return WordTokenizer.train([" ".join(words)])


def right_words(written: Sequence[str], wanted: Sequence[str]) -> dict[str, float]:
    """The share of captions that are right as a whole ("exact"), and in each aspect."""
    pairs = [(one.split(), other.split()) for one, other in zip(written, wanted, strict=True)]
    right = {name: [a[at : at + 1] == b[at : at + 1] for a, b in pairs] for name, at in ASPECTS.items()}
    return {name: sum(each) / len(pairs) for name, each in ({"exact": [a == b for a, b in pairs]} | right).items()}


def _mean(values: Float[Tensor, "B H W"], where: Tensor) -> Float[Tensor, " B"]:
    return (values * where).sum(dim=(1, 2)) / where.sum(dim=(1, 2)).clamp(min=1)
