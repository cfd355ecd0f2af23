"""What one plays with in lesson 13: patches to hide of a drawing or a photograph, and their reconstruction."""

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, UInt8
from torch import Tensor

from course_lib.classroom.widgets import (
    Explorer,
    Goal,
    Pad,
    Pictures,
    Squares,
    as_digit,
    in_base64,
    in_rows,
    pixel_image,
)
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
    """An image, its reconstruction and the error of it, and the probabilities of the digits in the reconstruction."""

    picture: Float[Tensor, "H W"]
    painted: Float[Tensor, "H W"]
    error: float | None  # MSE of the hidden patches, as a fraction of plain grey's; None without any
    probs: Float[Tensor, " classes"]

    @property
    def digit(self) -> int:
        """The class of the largest probability."""
        return int(self.probs.argmax())

    @property
    def sure(self) -> float:
        """The largest probability."""
        return float(self.probs.max())


@torch.no_grad()
def repair(model: MAE, reader: ViT, pixels: Float[Tensor, "H W"], hidden: Hidden) -> Repair:
    """Reconstructs the hidden patches, numbered from 1. Raises ValueError if no patch is visible."""
    size = model.config.encoder.patch_size
    rows, columns = (side // size for side in pixels.shape)
    count = rows * columns
    if len(hidden) == count:
        raise ValueError("All patches are hidden: leave the encoder one at least.")
    painted, error = pixels, None
    if hidden:
        holes = torch.tensor([float(number in hidden) for number in range(1, count + 1)])
        with hiding(model, (len(hidden) - 0.5) / count):
            painted = seen_and_painted(model, pixels[None, None], holes[None])[1][0]
        hole = holes.view(rows, columns).repeat_interleave(size, 0).repeat_interleave(size, 1).bool()
        plain = (pixels[hole] - pixels[~hole].mean()).square().mean()
        error = float((painted[hole] - pixels[hole]).square().mean() / plain.clamp_min(1e-3))
    probs = reader.eval()(standardise(painted[None, None]))[0].softmax(dim=-1)
    return Repair(pixels, painted, error, probs)


def said(its: Repair, hidden: Hidden, count: int) -> str:
    """The reconstruction in words."""
    reads = f"as {its.digit} ({its.sure:.0%})."
    if its.error is None:
        return f"No patch is hidden, so there is nothing to reconstruct. Lesson 11's ViT classifies the image {reads}"
    return (
        f"{count - len(hidden)} of {count} patches are visible. Error (MSE) of the hidden patches: "
        f"{its.error:.0%} of plain grey's. Lesson 11's ViT classifies the reconstruction {reads}"
    )


def panels(its: Repair, hidden: Hidden, size: int, words: str) -> str:
    """The visible patches, the reconstruction and the original."""
    visible = np.repeat(grey(its.picture)[..., None], 3, axis=-1)
    columns = its.picture.shape[1] // size
    for number in hidden:
        row, column = divmod(number - 1, columns)
        visible[row * size : (row + 1) * size, column * size : (column + 1) * size] = BLUE
    parts = [
        in_rows([[pixel_image(visible, 224, "the visible patches")]], "Visible patches (blue: hidden)"),
        in_rows([[pixel_image(grey(its.painted), 224, f"classified as {its.digit}")]], "Reconstruction"),
        in_rows([[pixel_image(grey(its.picture), 112, "the original")]], "Original"),
    ]
    return f'<div>{"".join(parts)}<p style="margin:0">{words}</p></div>'


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
    trained: tuple[str, str],
    well: float,
    at_first: Hidden = NOTHING,
) -> Explorer:
    """An image that `control` chooses, patches to hide, and three goals; `well` is the error of the last.

    `trained` are the checkpoints of the MAE and the reader that the site computes with; a kernel asks `model`.
    """
    rows, columns = model.config.encoder.grid
    count = rows * columns
    few = count // 6
    sources = control.drawings if isinstance(control, Pad) else control.pictures

    @lru_cache(maxsize=8)
    def repaired(key: bytes | str, hidden: Hidden) -> Repair:
        return repair(model, reader, picture_of(key), hidden)

    def of(state, hidden: Hidden) -> Repair:
        value = state[control.name]
        return repaired(value if isinstance(value, str) else value.tobytes(), hidden)

    def words(state) -> str:
        return said(of(state, state["hidden"]), state["hidden"], count)

    def reconstruct(asked) -> Float[np.ndarray, " n"]:
        """What the page asks for: the reconstruction, then the probabilities of the digits in it and in the image."""
        pixels, side = torch.tensor(asked["pixels"], dtype=torch.float32), model.config.encoder.image_size
        its, first = (repair(model, reader, pixels.view(side, side), h) for h in (frozenset(asked["hidden"]), NOTHING))
        return torch.cat([its.painted.flatten(), its.probs, first.probs]).float().numpy()

    def picture(state) -> str:
        hidden = state["hidden"]
        return panels(of(state, hidden), hidden, model.config.encoder.patch_size, words(state))

    def goal(text: str, fits: Callable[[Repair, Repair, int], bool]) -> Goal:
        def reached(state) -> bool:
            hidden = state["hidden"]
            if not 0 < len(hidden) < count or not of(state, NOTHING).picture.any():
                return False
            return fits(of(state, hidden), of(state, NOTHING), len(hidden))

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
                f"at most {few} patches visible, and the same digit in the reconstruction",
                lambda its, first, hidden: count - hidden <= few and its.digit == first.digit and its.sure > 0.5,
            ),
            goal(
                "another digit in the reconstruction, with a probability of at least 98 %",
                lambda its, first, hidden: its.digit != first.digit and its.sure >= 0.98,
            ),
            goal(
                f"ten patches or more hidden, and the error at most {well:.0%} of plain grey's",
                lambda its, first, hidden: hidden >= 10 and its.error <= well,
            ),
        ),
        steps={control.name: steps, "hidden": (NOTHING, at_first or at_random(count, count - count // 4))},
        script="masking",
        config={
            "models": trained,
            "side": model.config.encoder.image_size,
            "grid": rows,
            "pad": {"size": control.size, "brush": control.brush} if isinstance(control, Pad) else None,
            "sources": {name: in_base64(pixels) for name, pixels in sources.items()},
            "hidden": sorted(at_first),
            "few": few,
            "well": well,
        },
        answers={"reconstruct": reconstruct},
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
    """A digit of one's own, prepared like those of the training, with hidden patches."""
    drawings = {name: on_the_pad(number) for name, number in EXAMPLES.items()}
    pad = Pad(name="pad", label="Your digit", size=PAD, brush=5.0, drawings=drawings)
    title, reader, trained = (
        "Draw a digit and hide its patches",
        load_trained("vit_digits").model,
        ("mae", "vit_digits"),
    )
    return torn("mask", title, pad, tuple(drawings.values()), as_trained, model, reader, trained, well=0.05)


# ------------------------------------------------------------------------------------------------------- photographs


def ruin(model: MAE, coin: Float[Tensor, "1 1 S S"]) -> Explorer:
    """The image of these lessons and pieces of photographs, with hidden patches."""
    pictures = {NAME: coin[0, 0], "another digit": DigitScenes(split="test").batch(12, 0).pixels[11, 0]}
    for name, source in {"a dahlia": "flower", "coins": "coins"}.items():
        pictures[name] = photograph(source, grey=True, size=192)[0, 40:72, 60:92]
    in_bytes = {name: grey(pixels) for name, pixels in pictures.items()}  # the page computes with these
    pictures = {name: torch.from_numpy(pixels).float() / 255 for name, pixels in in_bytes.items()}
    chooser = Pictures(name="picture", label="Image", pictures=in_bytes)
    reader = load_trained("vit").model
    hidden = random_mask(coin_noise(model), model.encoder.mask_ratio).masked[0].nonzero()[:, 0] + 1
    at_first = frozenset(hidden.tolist())
    title, trained = "Hide patches of a photograph", ("mae_scenes", "vit")
    return torn("ruin", title, chooser, tuple(pictures), pictures.get, model, reader, trained, 0.2, at_first)


PLAYGROUNDS = {"mask": mask, "ruin": ruin}
