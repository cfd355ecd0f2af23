"""What one plays with in lesson 12: a digit of one's own through both stages, and what can reach a patch."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, UInt8
from torch import Tensor

from course_lib.classroom.widgets import Choice, Explorer, Goal, Pad, Slider, Steps, as_digit, token_bars
from course_lib.classroom.widgets.pixels import coloured, grey, in_rows, pixel_image
from course_lib.data.digits import CleanDigits
from course_lib.functional.images import standardise
from course_lib.lessons.lesson_12.looking import stirred
from course_lib.lessons.picture import the_picture
from course_lib.models.swin import Swin

# ------------------------------------------------------------------------------------------------- draw a digit

SIDE, PAD = 32, 56  # pixels of the network's pictures, and of the pad
EXAMPLES = {"a three": 24, "a seven": 18, "a four": 13}


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
    """A drawing of one's own: as drawn, as the network gets it, the maps of both stages, and what it says."""

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

    def words(state) -> str:
        if not state["pad"].any():
            return "Draw a digit. It cannot say “nothing”: it must choose."
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
            in_rows([[pixel_image(grey(its.digit[0, 0]), 128, "the drawing, prepared")]], "As it gets it"),
            in_rows([[pixel_image(coloured(fine), 128, "the map of stage 1")]], "Stage 1: 8 x 8"),
            in_rows([[pixel_image(coloured(coarse), 128, "the map of stage 2")]], "Stage 2: 4 x 4"),
        ]
        note = f'<p style="margin:0">{words(state)} Bright: what differs from an empty picture.</p>'
        bars_html = token_bars(bars, label="It says").replace("width:14em", "width:7em")
        return f'<div>{"".join(parts)}<div style="display:inline-block">{bars_html}</div>{note}</div>'

    def goal(text: str, fits) -> Goal:
        return Goal(text, lambda state: state["pad"].any() and fits(read(state)))

    drawings = {name: on_the_pad(number) for name, number in EXAMPLES.items()}
    return Explorer(
        name="reader",
        title="Draw a digit",
        controls=[Pad(name="pad", label="Your digit", size=PAD, brush=5.0, drawings=drawings)],
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
    )


# ---------------------------------------------------------------------------------------- what can reach a patch

WINDOW, MOST = 2, 4  # places of a window, blocks
MOVES = {"move their windows": True, "move nothing": False}
STAGES = {"1: 8 x 8 places": 8, "2: 4 x 4 places, after merging": 4}


def pieces(side: int, shift: int) -> Bool[Tensor, "N N"]:
    """Which pairs of a map's places share a window that was cut `shift` further on."""
    cut = (torch.arange(side) - shift).div(WINDOW, rounding_mode="floor")
    number = (cut[:, None] * side + cut).flatten()
    return number[:, None] == number


def reach(position: int, blocks: int, *, side: int, shifted: bool) -> Bool[Tensor, "H W"]:
    """Which places of a map can change this one after so many blocks, every second of which is shifted."""
    reached = torch.arange(side * side) == position
    for block in reversed(range(blocks)):
        reached = pieces(side, WINDOW // 2 if shifted and block % 2 else 0)[reached].any(dim=0)
    return reached.view(side, side)


def reached_by() -> Explorer:
    """Click a patch of the coin: which patches can reach it, by block and stage, with the shift and without."""
    coin = the_picture().pixels[0, 0]

    def found(state) -> tuple[int, Bool[Tensor, "H W"]]:
        side = state["stage"]
        position = min(state["patch"][0], side * side) - 1
        return position, reach(position, int(state["blocks"]), side=side, shifted=state["shift"])

    def words(state) -> str:
        position, reached = found(state)
        row, column = divmod(position, state["stage"])
        blocks = int(state["blocks"])
        name = "1 block" if blocks == 1 else f"{blocks} blocks"
        moved = "moves" if state["shift"] else "never moves"
        return (
            f"Place {position + 1} (row {row + 1}, column {column + 1}) of stage "
            f"{1 if state['stage'] == 8 else 2}, the window {moved}: "
            f"after {name} {int(reached.sum())} of {reached.numel()} places can reach it."
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
            seen = "reaches it" if reached[row, column] else "cannot reach it"
            alt = f"place {number + 1}, {'the one asked for' if number == position else seen}"
            image = pixel_image(pixels, 320 // side, alt)
            return f'<span data-step="{number + 1}" style="display:block">{image}</span>'

        grid = [[square(row, column) for column in range(side)] for row in range(side)]
        live = "<span hidden data-live>Click a place.</span>"
        note = "Seen: what can reach the place with the orange edge. Blue: what cannot."
        return f'<div>{in_rows(grid, words(state))}<p style="margin:0">{note} {live}</p></div>'

    def goal(text: str, fits) -> Goal:
        def reached(state) -> bool:
            _, positions = found(state)
            return fits(state, int(positions.sum()))

        return Goal(text, reached)

    return Explorer(
        name="reach",
        title="What can reach a patch?",
        controls=[
            Steps(name="patch", label="Place", value=28, most=64),
            Slider(name="blocks", label="Blocks", low=1, high=MOST, step=1, value=1),
            Choice(name="shift", label="Blocks 2 and 4", options=MOVES),
            Choice(name="stage", label="Stage", options=STAGES),
        ],
        draw=picture,
        alt=words,
        beside=True,
        speaks=True,
        goals=(
            goal("all 64 places of stage 1 reach one", lambda state, count: count == 64),
            goal(
                "a place that sees only four after two blocks, though windows move",
                lambda state, count: state["shift"] and state["blocks"] == 2 and count == 4,
            ),
            goal(
                "stage 2: everything, after two blocks",
                lambda state, count: state["stage"] == 4 and state["blocks"] == 2 and count == 16,
            ),
        ),
        steps={"shift": (True, False), "blocks": (1, 2, 3, 4)},
    )


PLAYGROUNDS = {"reader": reader, "reach": reached_by}
