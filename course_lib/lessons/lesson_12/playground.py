"""What one plays with in lesson 12: a digit of one's own through both stages, and the receptive field of a patch."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, UInt8
from torch import Tensor

from course_lib.classroom.widgets import Choice, Explorer, Goal, Pad, Pick, as_digit, token_bars
from course_lib.classroom.widgets.pixels import coloured, grey, in_base64, in_rows, pixel_image
from course_lib.data.digits import CleanDigits
from course_lib.functional.images import standardise
from course_lib.lessons.lesson_12.looking import stirred
from course_lib.lessons.picture import the_picture
from course_lib.models.swin import Swin

# ------------------------------------------------------------------------------------------------- draw a digit

SIDE, PAD, BRUSH = 32, 56, 5.0  # pixels of the network's images, of the pad and of its brush
EXAMPLES = {"a three": 24, "a seven": 18, "a four": 13}
EMPTY = "Draw a digit. It cannot say “nothing”: it must choose."


class Reading(NamedTuple):
    """A drawing as it is and as it is prepared, what the network says of either, and its maps of the latter."""

    raw: Float[Tensor, "1 1 S S"]
    digit: Float[Tensor, "1 1 S S"]
    raw_probs: Float[Tensor, " classes"]
    probs: Float[Tensor, " classes"]
    stages: list[Float[Tensor, "h w"]]


def prepared(drawing: UInt8[np.ndarray, "N N"]) -> Float[Tensor, "1 1 S S"]:
    """The drawing as the network's clean digits are: in the middle, as tall and as bold, 32 pixels a side."""
    return F.interpolate(as_digit(torch.from_numpy(drawing.copy())), (SIDE, SIDE), mode="bilinear")


def on_the_pad(number: int) -> UInt8[np.ndarray, "N N"]:
    """A digit that no network has seen, in a corner of the pad and smaller than those of the training."""
    paper = np.zeros((PAD, PAD), np.uint8)
    digit = CleanDigits(split="test").batch(number + 1, 0).pixels[number : number + 1]
    paper[4:40, 16:52] = grey(F.interpolate(digit, (36, 36), mode="bilinear", antialias=True)[0, 0])
    return paper


def reader(model: Swin) -> Explorer:
    """A drawing of one's own: as drawn, as the network sees it, the feature maps of both stages, and what it says."""

    @lru_cache(maxsize=1)  # to draw, to say and to judge
    def reading_of(pixels: bytes) -> Reading:
        drawing = np.frombuffer(pixels, np.uint8).reshape(PAD, PAD)
        raw = F.interpolate(torch.from_numpy(drawing.copy()).float()[None, None] / 255, (SIDE, SIDE), mode="area")
        digit = prepared(drawing)
        with torch.no_grad():
            raw_probs, probs = (model.eval()(standardise(image))[0].softmax(dim=-1) for image in (raw, digit))
        return Reading(raw, digit, raw_probs, probs, stirred(model, digit))

    def read(state) -> Reading:
        return reading_of(state["pad"].tobytes())

    def answer(drawing) -> Float[np.ndarray, " n"]:
        """What the page asks for: probabilities as drawn and prepared, the prepared image, and both stages' maps."""
        its = reading_of(bytes(drawing))
        parts = [its.raw_probs, its.probs, its.digit.flatten(), *(stage.flatten() for stage in its.stages)]
        return torch.cat(parts).float().numpy()

    def words(state) -> str:
        if not state["pad"].any():
            return EMPTY
        its = read(state)
        first, second = its.probs.topk(2).indices.tolist()
        other = f", or {second} ({its.probs[second]:.0%})" if its.probs[second] >= 0.005 else ""
        prepared_says = f"Prepared, it says {first} ({its.probs[first]:.0%}){other}."
        return f"As drawn it would say {int(its.raw_probs.argmax())}. {prepared_says}"

    def picture(state) -> str:
        its = read(state)
        fine, coarse = its.stages
        bars = [(str(digit), float(share)) for digit, share in enumerate(its.probs)]
        parts = [
            in_rows([[pixel_image(grey(its.raw[0, 0]), 128, "the drawing")]], "As drawn"),
            in_rows([[pixel_image(grey(its.digit[0, 0]), 128, "the drawing, prepared")]], "As the network sees it"),
            in_rows([[pixel_image(coloured(fine), 128, "the feature map of stage 1")]], "Stage 1: 8 x 8"),
            in_rows([[pixel_image(coloured(coarse), 128, "the feature map of stage 2")]], "Stage 2: 4 x 4"),
        ]
        note = f'<p style="margin:0">{words(state)} Bright: far from the feature map of a black image.</p>'
        bars_html = token_bars(bars, label="It says").replace("width:14em", "width:7em")
        return f'<div>{"".join(parts)}<div style="display:inline-block">{bars_html}</div>{note}</div>'

    def goal(text: str, fits) -> Goal:
        return Goal(text, lambda state: state["pad"].any() and fits(read(state)))

    drawings = {name: on_the_pad(number) for name, number in EXAMPLES.items()}
    return Explorer(
        name="reader",
        title="A digit through both stages of a Swin Transformer",
        controls=[Pad(name="pad", label="Your digit", size=PAD, brush=BRUSH, drawings=drawings)],
        draw=picture,
        alt=words,
        beside=True,
        speaks=True,
        goals=(
            goal(
                "a digit that is read as another one without its preparation",
                lambda its: its.probs.max() >= 0.9 and its.raw_probs.argmax() != its.probs.argmax(),
            ),
            goal("one that is read as two digits, 30 % or more each", lambda its: its.probs.topk(2).values[1] >= 0.3),
        ),
        steps={"pad": tuple(drawings.values())},
        script="hierarchy",
        config={
            "side": SIDE,
            "maps": list(STAGES.values()),
            "pad": {"size": PAD, "brush": BRUSH},
            "sources": {name: in_base64(pixels) for name, pixels in drawings.items()},
            "empty": EMPTY,
        },
        answers={"read": answer},
    )


# ------------------------------------------------------------------------------------ the receptive field of a patch

WINDOW, MOST = 2, 4  # positions of a window, blocks
SHIFTS = {"shift their windows": True, "do not": False}
STAGES = {"1: 8 x 8": 8, "2: 4 x 4, after merging": 4}


def pieces(side: int, shift: int) -> Bool[Tensor, "N N"]:
    """Which pairs of a feature map's positions share a window, if windows are shifted so far."""
    cut = (torch.arange(side) - shift).div(WINDOW, rounding_mode="floor")
    number = (cut[:, None] * side + cut).flatten()
    return number[:, None] == number


def reach(position: int, blocks: int, *, side: int, shifted: bool) -> Bool[Tensor, "H W"]:
    """The receptive field of a position after so many blocks, every second of which is shifted."""
    reached = torch.arange(side * side) == position
    for block in reversed(range(blocks)):
        reached = pieces(side, WINDOW // 2 if shifted and block % 2 else 0)[reached].any(dim=0)
    return reached.view(side, side)


def reached_by() -> Explorer:
    """Drag over the coin: the receptive field of a position, by block and stage, with the shift and without."""
    coin = the_picture().pixels[0, 0]

    def found(state) -> tuple[int, Bool[Tensor, "H W"]]:
        side = state["stage"]
        position = min(state["patch"], side * side) - 1
        return position, reach(position, state["blocks"], side=side, shifted=state["shift"])

    def words(state) -> str:
        position, reached = found(state)
        row, column = divmod(position, state["stage"])
        blocks = f"{state['blocks']} block{'s' if state['blocks'] > 1 else ''}"
        shift = "shifted in every second block" if state["shift"] else "never shifted"
        return (
            f"Position {position + 1} (row {row + 1}, column {column + 1}) of stage "
            f"{1 if state['stage'] == 8 else 2}, windows {shift}: "
            f"after {blocks} its receptive field has {int(reached.sum())} of {reached.numel()} positions."
        )

    def picture(state) -> str:
        position, reached = found(state)
        side = state["stage"]
        size = SIDE // side

        def square(row: int, column: int) -> str:
            number = row * side + column
            pixels = np.stack([grey(coin[row * size : (row + 1) * size, column * size : (column + 1) * size])] * 3, -1)
            if not reached[row, column]:
                pixels = (pixels // 4 + np.array([40, 80, 150])).astype(np.uint8)  # as seen through blue glass
            if number == position:
                pixels = np.where(np.pad(np.zeros((size - 2, size - 2, 1), bool), ((1, 1), (1, 1), (0, 0)),
                                         constant_values=True), np.array([213, 94, 0], np.uint8), pixels)  # fmt: skip
            seen = "in the receptive field" if reached[row, column] else "not in the receptive field"
            alt = f"position {number + 1}, {'the chosen one' if number == position else seen}"
            return pixel_image(pixels, 320 // side, alt)

        grid = [[square(row, column) for column in range(side)] for row in range(side)]
        note = "Clear: the receptive field of the position with the orange edge. Blue: what lies outside."
        return f'<div>{in_rows(grid, words(state))}<p style="margin:0">{note}</p></div>'

    def goal(text: str, fits) -> Goal:
        return Goal(text, lambda state: fits(state, int(found(state)[1].sum())))

    return Explorer(
        name="reach",
        title="The receptive field of a patch",
        controls=[
            Pick(name="patch", label="Position", count=64, value=28),
            Choice(name="blocks", label="Blocks", options={str(count): count for count in range(1, MOST + 1)}),
            Choice(name="shift", label="Blocks 2 and 4", options=SHIFTS),
            Choice(name="stage", label="Stage", options=STAGES),
        ],
        draw=picture,
        alt=words,
        beside=True,
        speaks=True,
        goals=(
            goal("a receptive field of all 64 positions of stage 1", lambda state, count: count == 64),
            goal(
                "only four positions after two blocks, although windows are shifted",
                lambda state, count: state["shift"] and state["blocks"] == 2 and count == 4,
            ),
            goal(
                "stage 2: the whole feature map, after two blocks",
                lambda state, count: state["stage"] == 4 and state["blocks"] == 2 and count == 16,
            ),
        ),
        steps={"shift": (True, False), "blocks": (1, 2, 3, 4)},
        script="receptive",
        config={
            "image": in_base64(grey(coin)),
            "size": SIDE,
            "window": WINDOW,
            "most": MOST,
            "shifts": list(SHIFTS.items()),
            "stages": list(STAGES.items()),
            "start": {"row": 3, "column": 3, "blocks": 1, "shifted": True, "side": 8},
        },
    )


PLAYGROUNDS = {"reader": reader, "reach": reached_by}
