"""What one plays with in lesson 14: a drawing of one's own, and a scene to arrange, a label for every pixel."""

from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int, UInt8
from matplotlib.colors import to_rgb
from torch import Tensor

from course_lib.classroom.widgets import Choice, Explorer, Goal, Pad, Slider, as_digit, in_rows, pixel_image
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
        return "Nothing is marked."
    things = ", ".join(f"a {thing.digit} ({thing.score:.0%})" for thing in marked.things)
    count = len(marked.things)
    return f"{count} thing{'s' if count > 1 else ''}: {things}. {int((marked.classes > 0).sum())} pixels are marked."


def panels(marked: Marked, width: int, first: str, words: str) -> str:
    """The picture with boxes, the mask and the uncertainty, side by side."""
    parts = [
        in_rows([[pixel_image(boxed(marked, 4), width, "the picture, with a box around each thing")]], first),
        in_rows([[pixel_image(mask_pixels(marked.classes), width, f"the mask: {said(marked)}")]], "Its mask"),
        in_rows([[pixel_image(coloured(marked.uncertainty, MOST), width, "the uncertainty")]], "How unsure (bright)"),
    ]
    return f'<div>{"".join(parts)}{legend()}<p style="margin:0">{words}</p></div>'


# ----------------------------------------------------------------------------------------------- draw something

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
    paper = torch.full((SIDE, SIDE), 0.35) if ground == "plain" else coins(SIDE)
    return torch.lerp(paper, torch.tensor(0.95), digit)


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
        return said(marked(state)) if state["pad"].any() else f"Draw a digit, or anything. {said(marked(state))}"

    drawings = {name: on_the_pad(number) for name, number in EXAMPLES.items()}
    return Explorer(
        name="drawing",
        title="Draw, and every pixel gets a label",
        controls=[
            Pad(name="pad", label="Your drawing", size=PAD, brush=5.0, drawings=drawings),
            Choice(name="ground", label="Ground", options=GROUNDS),
        ],
        draw=lambda state: panels(marked(state), 160, "What it gets", words(state)),
        alt=words,
        beside=True,
        speaks=True,
        goals=(
            Goal(
                "one drawing, and pixels of two digits in it, 30 or more of each",
                lambda state: (marked(state).classes[marked(state).classes > 0].bincount() >= 30).sum() >= 2,
            ),
            Goal(
                "something drawn of which nothing is marked",
                lambda state: state["pad"].any() and not marked(state).things,
            ),
        ),
        steps={"pad": tuple(drawings.values()), "ground": ("plain", "raw")},
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


class Arranged(NamedTuple):
    """A scene, and where its digits are."""

    pixels: Float[Tensor, "S S"]
    digit: Bool[Tensor, "S S"]


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
    texture = photograph(name, grey=True, size=192)[0, 40 : 40 + SCENE, 60 : 60 + SCENE]
    ground = torch.lerp(texture.mean(), texture, clutter)
    x, y, side = (float(state[name]) for name in ("across", "down", "side"))
    ink = ink_of(state["first"], x, y, side)
    if state["second"] >= 0:
        ink = torch.maximum(ink, ink_of(state["second"], x + state["apart"], y, side))
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

    def overlap(state) -> float:
        found, true = marked(state).classes > 0, arranged(state).digit
        return float((found & true).sum() / (found | true).sum().clamp_min(1))

    def words(state) -> str:
        return f"{said(marked(state))} Overlap of digit or not with the truth: {overlap(state):.2f}."

    def wrong_class(state) -> bool:
        things = marked(state).things
        return state["second"] < 0 and overlap(state) >= 0.8 and len(things) == 1 and things[0].digit != state["first"]

    return Explorer(
        name="scene",
        title="Arrange a scene",
        controls=[
            Choice(name="ground", label="Ground", options={name: name for name in TEXTURES}),
            Choice(name="first", label="Digit", options=DIGITS, value=3),
            Slider(name="across", label="Across", low=8, high=56, step=1, value=20),
            Slider(name="down", label="Down", low=8, high=56, step=1, value=32),
            Slider(name="side", label="Size", low=6, high=44, step=1, value=26),
            Choice(name="second", label="A second one", options={"none": -1} | DIGITS, value=7),
            Slider(name="apart", label="So far to the right", low=4, high=40, step=1, value=28),
            Slider(name="threshold", label="A digit from", low=0.05, high=0.95, step=0.05, value=0.5),
            Choice(name="skips", label="U-Net", options=NETS),
        ],
        draw=lambda state: panels(marked(state), 192, "The scene, boxes found", words(state)),
        alt=words,
        beside=True,
        speaks=True,
        goals=(
            Goal(
                "two digits that come out as one thing",
                lambda state: state["second"] >= 0 and state["apart"] >= 8 and len(marked(state).things) == 1,
            ),
            Goal("one digit: the mask right (0.80 and more), and the class wrong", wrong_class),
            Goal("a digit that is not found at all", lambda state: state["second"] < 0 and not marked(state).things),
        ),
        steps={"ground": ("plain grey", "coins"), "skips": (True, False), "apart": (28, 16)},
    )


PLAYGROUNDS = {"drawing": drawing, "scene": scene}
