"""What one plays with in lesson 13: holes of one's own in a drawing or a photograph, and what is painted there."""

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, UInt8
from torch import Tensor

from course_lib.classroom.widgets import Explorer, Goal, Pad, Pictures, Squares, as_digit, in_rows, pixel_image
from course_lib.classroom.widgets.pixels import grey
from course_lib.data.checkpoints import load_trained
from course_lib.data.digits import CleanDigits
from course_lib.data.photographs import photograph
from course_lib.data.scenes import DigitScenes
from course_lib.functional.images import standardise
from course_lib.layers.patches import random_mask
from course_lib.lessons.lesson_13.learner import seen_and_painted
from course_lib.lessons.lesson_13.looking import coin_noise, hiding
from course_lib.lessons.picture import NAME
from course_lib.models.mae import MAE
from course_lib.models.vit import ViT

Hidden = frozenset[int]
NOTHING: Hidden = frozenset()
BLUE = (86, 100, 150)


class Repair(NamedTuple):
    """A picture, what is painted, how far off that is, and the digit that a reader finds in it."""

    picture: Float[Tensor, "H W"]
    painted: Float[Tensor, "H W"]
    error: float | None  # of the hidden patches, as a share of painting them in plain grey; None without any
    digit: int
    sure: float


@torch.no_grad()
def repair(model: MAE, reader: ViT, pixels: Float[Tensor, "H W"], hidden: Hidden) -> Repair:
    """Paints the hidden patches, numbered from 1. Raises ValueError if no patch is left to go by."""
    size = model.config.encoder.patch_size
    rows, columns = (side // size for side in pixels.shape)
    count = rows * columns
    if len(hidden) == count:
        raise ValueError("All patches are hidden: leave the network one to go by.")
    painted, error = pixels, None
    if hidden:
        holes = torch.tensor([float(number in hidden) for number in range(1, count + 1)])
        with hiding(model, (len(hidden) - 0.5) / count):
            painted = seen_and_painted(model, pixels[None, None], holes[None])[1][0]
        hole = holes.view(rows, columns).repeat_interleave(size, 0).repeat_interleave(size, 1).bool()
        plain = (pixels[hole] - pixels[~hole].mean()).square().mean()
        error = float((painted[hole] - pixels[hole]).square().mean() / plain.clamp_min(1e-3))
    probs = reader.eval()(standardise(painted[None, None]))[0].softmax(dim=-1)
    return Repair(pixels, painted, error, int(probs.argmax()), float(probs.max()))


def said(its: Repair, hidden: Hidden, count: int) -> str:
    """The repair in words."""
    reads = f"Lesson 11's ViT reads {its.digit} ({its.sure:.0%}) in what came out."
    if its.error is None:
        return f"Nothing is hidden, so nothing is painted. {reads}"
    return f"{count - len(hidden)} of {count} patches are seen. Error: {its.error:.0%} of plain grey's. {reads}"


def panels(its: Repair, hidden: Hidden, size: int, words: str) -> str:
    """The patches, each to be clicked; what is painted; the picture as it is."""
    rows, columns = (side // size for side in its.picture.shape)

    def patch(row: int, column: int) -> str:
        number = row * columns + column + 1
        pixels = grey(its.picture[row * size : (row + 1) * size, column * size : (column + 1) * size])
        if number in hidden:
            pixels = np.full((size, size, 3), BLUE, np.uint8)
        name = f"patch {number}{', hidden' if number in hidden else ''}"
        return f'<span data-step="{number}" style="display:block">{pixel_image(pixels, 224 // columns, name)}</span>'

    grid = [[patch(row, column) for column in range(columns)] for row in range(rows)]
    parts = [
        in_rows(grid, "What it sees (blue: hidden)"),
        in_rows([[pixel_image(grey(its.painted), 224, f"what it paints, read as {its.digit}")]], "What it paints"),
        in_rows([[pixel_image(grey(its.picture), 112, "the picture")]], "As it is"),
    ]
    live = "<span hidden data-live>Click a patch: it is hidden, or seen again.</span>"
    return f'<div>{"".join(parts)}<p style="margin:0">{words} {live}</p></div>'


def at_random(count: int, hidden: int) -> Hidden:
    """So many patches, always the same."""
    order = torch.randperm(count, generator=torch.Generator().manual_seed(0))
    return frozenset((order[:hidden] + 1).tolist())


def torn(
    name: str,
    title: str,
    control: Pad | Pictures,
    steps: tuple,
    picture_of: Callable[..., Float[Tensor, "H W"]],
    model: MAE,
    reader: ViT,
    well: float,
    at_first: Hidden = NOTHING,
) -> Explorer:
    """A picture that `control` chooses, holes to click into it, and three goals; `well` is the error of the last."""
    rows, columns = model.config.encoder.grid
    count = rows * columns
    few = count // 6

    @lru_cache(maxsize=8)
    def repaired(key: bytes | str, hidden: Hidden) -> Repair:
        return repair(model, reader, picture_of(key), hidden)

    def of(state, hidden: Hidden) -> Repair:
        value = state[control.name]
        return repaired(value if isinstance(value, str) else value.tobytes(), hidden)

    def words(state) -> str:
        return said(of(state, state["hidden"]), state["hidden"], count)

    def picture(state) -> str:
        hidden = state["hidden"]
        return panels(of(state, hidden), hidden, model.config.encoder.patch_size, words(state))

    def goal(text: str, fits: Callable[[Repair, Repair, int], bool]) -> Goal:
        def reached(state) -> bool:
            hidden = state["hidden"]
            return 0 < len(hidden) < count and fits(of(state, hidden), of(state, NOTHING), len(hidden))

        return Goal(text, reached)

    return Explorer(
        name=name,
        title=title,
        controls=[control, Squares(name="hidden", label="Hidden patches", count=count, at_first=at_first)],
        draw=picture,
        alt=words,
        beside=True,
        speaks=True,
        goals=(
            goal(
                f"only {few} patches seen, and the same digit comes out",
                lambda its, first, hidden: count - hidden <= few and its.digit == first.digit and its.sure > 0.5,
            ),
            goal(
                "another digit comes out, and the reader is sure (98 %)",
                lambda its, first, hidden: its.digit != first.digit and its.sure >= 0.98,
            ),
            goal(
                f"ten patches or more hidden, and the error at most {well:.0%} of plain grey's",
                lambda its, first, hidden: hidden >= 10 and its.error <= well,
            ),
        ),
        steps={control.name: steps, "hidden": (NOTHING, at_first or at_random(count, count - count // 4))},
    )


# -------------------------------------------------------------------------------------------- a drawing of one's own

PAD = 56  # pixels
EXAMPLES = {"a five": 1, "a two": 7, "a three": 15}


def on_the_pad(number: int) -> UInt8[np.ndarray, "N N"]:
    """A digit that no network has seen, as large as the pad allows."""
    digit = CleanDigits(split="test").batch(number + 1, 0).pixels[number : number + 1]
    return grey(F.interpolate(digit, (PAD, PAD), mode="bilinear")[0, 0])


def as_trained(drawing: bytes) -> Float[Tensor, "28 28"]:
    """The drawing as the digits of the training are: in the middle, a little smaller than those of lesson 11."""
    pixels = torch.tensor(list(drawing), dtype=torch.uint8).view(PAD, PAD)
    return F.pad(F.interpolate(as_digit(pixels), (24, 24), mode="bilinear", antialias=True), (2, 2, 2, 2))[0, 0]


def mask(model: MAE) -> Explorer:
    """A digit of one's own, prepared like those of the training, with holes."""
    drawings = {name: on_the_pad(number) for name, number in EXAMPLES.items()}
    pad = Pad(name="pad", label="Your digit", size=PAD, brush=5.0, drawings=drawings)
    title, reader = "Draw a digit, and tear holes into it", load_trained("vit_digits").model
    return torn("mask", title, pad, tuple(drawings.values()), as_trained, model, reader, well=0.05)


# ------------------------------------------------------------------------------------------------------- photographs


def ruin(model: MAE, coin: Float[Tensor, "1 1 S S"]) -> Explorer:
    """The picture of these lessons and pieces of photographs, with holes."""
    pictures = {NAME: coin[0, 0], "another digit": DigitScenes(split="test").batch(12, 0).pixels[11, 0]}
    for name, source in {"a dahlia": "flower", "coins": "coins"}.items():
        pictures[name] = photograph(source, grey=True, size=192)[0, 40:72, 60:92]
    chooser = Pictures(name="picture", label="Picture", pictures={name: grey(p) for name, p in pictures.items()})
    reader = load_trained("vit").model
    hidden = random_mask(coin_noise(model), model.encoder.mask_ratio).masked[0].nonzero()[:, 0] + 1
    at_first = frozenset(hidden.tolist())
    return torn("ruin", "Holes in a photograph", chooser, tuple(pictures), pictures.get, model, reader, 0.2, at_first)


PLAYGROUNDS = {"mask": mask, "ruin": ruin}
