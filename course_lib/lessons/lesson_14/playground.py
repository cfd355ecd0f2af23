"""What one plays with in lesson 14: a drawing of one's own, and a scene to arrange, a label for every pixel."""

import math
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Float32, Int, UInt8
from matplotlib.colors import to_rgb
from torch import Tensor

from course_lib.classroom.widgets import Choice, Explorer, Goal, Pad, Slider, as_digit, in_base64, in_rows, pixel_image
from course_lib.classroom.widgets.pixels import coloured, grey
from course_lib.data.digits import CleanDigits, digit_shapes, draw_digits
from course_lib.data.photographs import photograph
from course_lib.functional.images import standardise
from course_lib.functional.segmentation import connected_components, instances_of, mask_boxes
from course_lib.lessons.lesson_14.figures import CLASSES
from course_lib.lessons.lesson_14.results import entropy
from course_lib.models.unet import UNet

COLOURS = np.array([to_rgb(colour) for colour in CLASSES])
MOST = 2.4  # nats: the uncertainty of eleven equally likely classes


class Thing(NamedTuple):
    """A connected area of the mask: its digit, how sure, and the corners of its box."""

    digit: int
    score: float
    box: list[int]  # x0, y0, x1, y1


class Marked(NamedTuple):
    """A picture, and what the network says of each pixel."""

    pixels: Float[Tensor, "H W"]
    classes: Int[Tensor, "H W"]
    uncertainty: Float[Tensor, "H W"]
    things: list[Thing]


@torch.no_grad()
def mark(model: UNet, pixels: Float[Tensor, "H W"], *, threshold: float = 0.5, smallest: int = 12) -> Marked:
    """A class for each pixel whose probability of a digit is above the threshold, background elsewhere."""
    logits = model.eval()(standardise(pixels[None, None]))
    probs = logits.softmax(dim=1)
    digit = probs[:, 0] < 1 - threshold
    classes = torch.where(digit, probs[:, 1:].argmax(dim=1) + 1, 0)
    found = instances_of(connected_components(digit.long()), probs, smallest=smallest)[0]
    boxes = mask_boxes(found.masks).tolist()
    things = [
        Thing(int(number) - 1, float(score), box)
        for number, score, box in zip(found.classes, found.scores, boxes, strict=True)
    ]
    return Marked(pixels, classes[0], entropy(logits)[0], things)


@torch.no_grad()
def logits_of(models: Sequence[UNet], pixels: Sequence[float], side: int) -> Float32[np.ndarray, " n"]:
    """What a page asks for: the logits of each network, pixel by pixel."""
    image = standardise(torch.tensor(pixels, dtype=torch.float32).view(1, 1, side, side))
    return torch.cat([model.eval()(image) for model in models]).movedim(1, -1).flatten().float().numpy()


# -------------------------------------------------------------------------------------------------- the drawing


def mask_pixels(classes: Int[Tensor, "H W"]) -> UInt8[np.ndarray, "H W 3"]:
    return (255 * COLOURS[classes.numpy()]).round().astype(np.uint8)


def boxed(marked: Marked, factor: int) -> UInt8[np.ndarray, "h w 3"]:
    """The picture, so many times as large, with a box around each thing."""
    pixels = np.stack([np.kron(grey(marked.pixels), np.ones((factor, factor), np.uint8))] * 3, axis=-1)
    for thing in marked.things:
        x0, y0, x1, y1 = (factor * corner for corner in thing.box)
        frame = np.zeros(pixels.shape[:2], bool)
        frame[y0:y1, x0:x1] = True
        frame[y0 + 2 : y1 - 2, x0 + 2 : x1 - 2] = False
        pixels[frame] = (230, 159, 0)
    return pixels


def legend() -> str:
    """Which colour stands for which digit."""
    squares = []
    for digit, colour in enumerate(CLASSES[1:]):
        ink = "#000" if np.dot(to_rgb(colour), (0.299, 0.587, 0.114)) > 0.45 else "#fff"
        style = f"background:{colour};color:{ink};padding:0 .45em;border:1px solid #888"
        squares.append(f'<span style="{style}">{digit}</span>')
    return f'<div style="margin:.2em 0">Digits: {" ".join(squares)}</div>'


def said(marked: Marked) -> str:
    """The things that were found, in words."""
    if not marked.things:
        return "No digit is found."
    found = ", ".join(f"a {thing.digit} ({thing.score:.0%})" for thing in marked.things)
    count = len(marked.things)
    pixels = int((marked.classes > 0).sum())
    return f"{count} object{'s' if count > 1 else ''}: {found}. {pixels} pixels are labelled as digits."


def panels(marked: Marked, width: int, first: str, words: str) -> str:
    """The picture with boxes, the mask and the uncertainty, side by side."""
    parts = [
        in_rows([[pixel_image(boxed(marked, 4), width, "the image, with a box around each object")]], first),
        in_rows(
            [[pixel_image(mask_pixels(marked.classes), width, f"the segmentation: {said(marked)}")]], "Segmentation"
        ),
        in_rows(
            [[pixel_image(coloured(marked.uncertainty, MOST), width, "the uncertainty")]], "Uncertainty (bright: much)"
        ),
    ]
    return f'<div>{"".join(parts)}{legend()}<p style="margin:0">{words}</p></div>'


# ----------------------------------------------------------------------------------------------- draw something

EMPTY = "Draw a digit, or anything."
MUCH_INK = 100  # pixels of the pad
PAD, SIDE = 56, 32  # pixels of the pad, and of what the network gets
EXAMPLES = {"a five": 1, "a two": 7, "a four": 13}
GROUNDS = {"plain grey": "plain", "coins": "coins", "as drawn, unprepared": "raw"}


@cache
def coins(side: int) -> Float[Tensor, "S S"]:
    """A piece of the photograph that the picture of these lessons was drawn on."""
    return photograph("coins", grey=True, size=192)[0, 40 : 40 + side, 60 : 60 + side]


def on_ground(drawing: UInt8[np.ndarray, "N N"], ground: str) -> Float[Tensor, "S S"]:
    """What the network gets: the drawing as a digit of its size on a ground of its kind, or as it was drawn."""
    ink = torch.from_numpy(drawing.copy())
    if ground == "raw":
        return F.interpolate(ink.float()[None, None] / 255, (SIDE, SIDE), mode="area")[0, 0]
    digit = F.pad(as_digit(ink)[0, 0], (2, 2, 2, 2))
    return torch.lerp(paper_of(ground), torch.tensor(0.95), digit)


def paper_of(ground: str) -> Float[Tensor, "S S"]:
    return torch.full((SIDE, SIDE), 90 / 255) if ground == "plain" else coins(SIDE)


def on_the_pad(number: int) -> UInt8[np.ndarray, "N N"]:
    """A digit that no network has seen, small and in a corner."""
    paper = np.zeros((PAD, PAD), np.uint8)
    digit = CleanDigits(split="test").batch(number + 1, 0).pixels[number : number + 1]
    paper[4:36, 20:52] = grey(F.interpolate(digit, (32, 32), mode="bilinear", antialias=True)[0, 0])
    return paper


def drawing(model: UNet) -> Explorer:
    """A drawing of one's own, marked pixel by pixel."""
    marked_of = lru_cache(maxsize=1)(
        lambda pixels, ground: mark(model, on_ground(np.frombuffer(pixels, np.uint8).reshape(PAD, PAD), ground))
    )

    def marked(state) -> Marked:
        return marked_of(state["pad"].tobytes(), state["ground"])

    def words(state) -> str:
        return said(marked(state)) if state["pad"].any() else f"{EMPTY} {said(marked(state))}"

    drawings = {name: on_the_pad(number) for name, number in EXAMPLES.items()}
    return Explorer(
        name="drawing",
        title="Draw, and every pixel gets a label",
        controls=[
            Pad(name="pad", label="Your drawing", size=PAD, brush=5.0, drawings=drawings),
            Choice(name="ground", label="Background", options=GROUNDS),
        ],
        draw=lambda state: panels(marked(state), 160, "Input of the U-Net", words(state)),
        alt=words,
        beside=True,
        speaks=True,
        goals=(
            Goal(
                "one drawing with pixels of two digits in it, 30 or more of each",
                lambda state: (marked(state).classes[marked(state).classes > 0].bincount() >= 30).sum() >= 2,
            ),
            Goal(
                f"something drawn, with {MUCH_INK} pixels of ink or more, in which no digit is found",
                lambda state: (state["pad"] > 127).sum() >= MUCH_INK and not marked(state).things,
            ),
        ),
        steps={"pad": tuple(drawings.values()), "ground": ("plain", "raw")},
        script="drawing",
        config={
            "models": ["unet"],
            "side": SIDE,
            "colours": CLASSES,
            "pad": {"size": PAD, "brush": 5.0},
            "sources": {name: in_base64(pixels) for name, pixels in drawings.items()},
            "grounds": GROUNDS,
            "papers": {ground: in_base64(grey(paper_of(ground))) for ground in ("plain", "coins")},
            "empty": EMPTY,
        },
        answers={"logits": lambda asked: logits_of([model], asked["pixels"], SIDE)},
    )


# ----------------------------------------------------------------------------------------------- arrange a scene

SCENE = 64  # pixels: twice those of the training; a U-Net takes any size
EXEMPLARS = (11, 3, 10, 9, 9, 1, 5, 8, 4, 1)  # of each digit's test shapes the one that is drawn
TEXTURES = {
    "plain grey": ("coins", 0.0),
    "coins, faint": ("coins", 0.4),
    "coins": ("coins", 1.0),
    "a dahlia": ("flower", 1.0),
}  # the photograph, and how strong
DIGITS = {str(digit): digit for digit in range(10)}
NETS = {"with skips": True, "without skips": False}
POSITION = {"low": 8, "high": 56, "step": 1}  # pixels
OFFSET = {"low": -48, "high": 48, "step": 1}
SIZE = {"low": 6, "high": 44, "step": 1}
THRESHOLD = {"low": 0.05, "high": 0.95, "step": 0.05}


class Arranged(NamedTuple):
    """A scene, and where its digits are."""

    pixels: Float[Tensor, "S S"]
    digit: Bool[Tensor, "S S"]


@cache
def texture_of(photo: str) -> Float[Tensor, "S S"]:
    return photograph(photo, grey=True, size=192)[0, 40 : 40 + SCENE, 60 : 60 + SCENE]


@cache
def shape_of(digit: int) -> Float[Tensor, "1 1 h w"]:
    shapes, labels = digit_shapes("test", None)
    return shapes[labels == digit][EXEMPLARS[digit]][None]


def ink_of(digit: int, x: float, y: float, side: float) -> Float[Tensor, "S S"]:
    position = torch.tensor([[x, y]])
    return draw_digits(shape_of(digit), SCENE, centre=position, side=torch.tensor([side]), degrees=torch.zeros(1))[0, 0]


def arranged(state) -> Arranged:
    """The scene of these settings; its ink is bright where the ground is dark, and dark where it is bright."""
    name, clutter = TEXTURES[state["ground"]]
    texture = texture_of(name)
    ground = torch.lerp(texture.mean(), texture, clutter)
    x, y, side = (float(state[name]) for name in ("across", "down", "side"))
    ink = ink_of(state["first"], x, y, side)
    if state["second"] >= 0:
        ink = torch.maximum(ink, ink_of(state["second"], x + state["apart"], y + state["below"], side))
    colour = torch.tensor(0.95 if float(ground.mean()) < 0.55 else 0.05)
    return Arranged(torch.lerp(ground, colour, ink), ink > 0.5)


def scene(model: UNet, without: UNet) -> Explorer:
    """Digits to move and scale on a ground of one's choice: mask, uncertainty and boxes, with skips and without."""

    @lru_cache(maxsize=1)
    def marked_of(**state) -> Marked:
        net = model if state["skips"] else without
        return mark(net, arranged(state).pixels, threshold=state["threshold"])

    def marked(state) -> Marked:
        return marked_of(**state)

    def iou(state) -> float:
        found, true = marked(state).classes > 0, arranged(state).digit
        return float((found & true).sum() / (found | true).sum().clamp_min(1))

    def words(state) -> str:
        return f"{said(marked(state))} IoU of the digit pixels: {iou(state):.2f}."

    def wrong_class(state) -> bool:
        things = marked(state).things
        return state["second"] < 0 and iou(state) >= 0.8 and len(things) == 1 and things[0].digit != state["first"]

    return Explorer(
        name="scene",
        title="Arrange a scene",
        controls=[
            Choice(name="ground", label="Background", options={name: name for name in TEXTURES}),
            Choice(name="first", label="Digit", options=DIGITS, value=3),
            Slider(name="across", label="Across", **POSITION, value=20),
            Slider(name="down", label="Down", **POSITION, value=32),
            Slider(name="side", label="Size", **SIZE, value=26),
            Choice(name="second", label="Second digit", options={"none": -1} | DIGITS, value=7),
            Slider(name="apart", label="This far to the right of the first", **OFFSET, value=28),
            Slider(name="below", label="This far below the first", **OFFSET, value=0),
            Slider(name="threshold", label="Threshold", **THRESHOLD, value=0.5),
            Choice(name="skips", label="U-Net", options=NETS),
        ],
        draw=lambda state: panels(marked(state), 192, "Scene, with a box around each object", words(state)),
        alt=words,
        beside=True,
        speaks=True,
        goals=(
            Goal(
                "two digits that are found as one object",
                lambda state: (
                    state["second"] >= 0
                    and math.hypot(state["apart"], state["below"]) >= 8
                    and len(marked(state).things) == 1
                ),
            ),
            Goal("one digit with an IoU of 0.80 or more, and the wrong class", wrong_class),
            Goal("a single digit that is not found", lambda state: state["second"] < 0 and not marked(state).things),
        ),
        steps={"skips": (True, False), "apart": (28, 16)},
        script="scene",
        config={
            "models": ["unet", "unet_no_skips"],
            "side": SCENE,
            "colours": CLASSES,
            "grounds": TEXTURES,
            "textures": {
                name: in_base64(grey(texture_of(name))) for name in sorted({name for name, _ in TEXTURES.values()})
            },
            "shapes": in_base64(torch.cat([shape_of(digit)[0, 0] for digit in range(10)]).numpy().view(np.uint8)),
            "bounds": {"position": POSITION, "size": SIZE, "threshold": THRESHOLD},
            "start": {
                "ground": "plain grey",
                "digits": [{"digit": 3, "x": 20, "y": 32}, {"digit": 7, "x": 48, "y": 32}],
                "size": 26,
                "threshold": 0.5,
            },
        },
        answers={"logits": lambda asked: logits_of([model, without], asked["pixels"], SCENE)},
    )


PLAYGROUNDS = {"drawing": drawing, "scene": scene}
