"""What one plays with in lesson 11: patches to hide, of a digit drawn by oneself or of a picture."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import matplotlib as mpl
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
    token_bars,
)
from course_lib.classroom.widgets.pixels import grey
from course_lib.data.digits import CleanDigits
from course_lib.functional.attention_maps import attention_rollout
from course_lib.functional.images import standardise
from course_lib.layers.recording import record_attention
from course_lib.lessons.lesson_11.looking import held_out
from course_lib.lessons.picture import NAME
from course_lib.models.vit import ViT
from course_lib.viz.style import SEQUENTIAL

Hidden = frozenset[int]
NOTHING: Hidden = frozenset()

# ------------------------------------------------------------------------------------------ what the network sees


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What a ViT says of the patches that it may read, and what its class token looks at; 0 for hidden patches."""

    pixels: Float[Tensor, "S S"]
    hidden: Hidden
    grid: tuple[int, int]
    probs: Float[Tensor, " classes"]
    rollout: Float[Tensor, " N"]
    heads: Float[Tensor, "L H N"]

    @property
    def digit(self) -> int:
        """What it takes the picture for."""
        return int(self.probs.argmax())

    @property
    def sure(self) -> float:
        """The share of that class."""
        return float(self.probs.max())

    def brightest(self, count: int) -> Hidden:
        """The patches, from 1, of which most reached the class token."""
        return frozenset((self.rollout.argsort(descending=True)[:count] + 1).tolist())


@torch.no_grad()
def look(model: ViT, pixels: Float[Tensor, "S S"], hidden: Hidden = NOTHING) -> Seen:
    """Only the class token and the patches that are not `hidden` go through the encoder; pixels from 0 to 1."""
    with record_attention(model.eval()) as record:
        tokens = model.embed(standardise(pixels[None, None]))
        seen = torch.tensor([number not in hidden for number in range(1, tokens.shape[1] + 1)])
        logits = model.head(model.pool(model.encode(tokens[:, seen])))
    maps = record.maps()
    rollout, heads = torch.zeros(len(seen)), torch.zeros(*maps.shape[1:3], len(seen))
    rollout[seen], heads[..., seen] = attention_rollout(maps)[0, 0, 1:], maps[0, :, :, 0, 1:]
    probs = logits[0].softmax(dim=-1)
    return Seen(pixels=pixels, hidden=hidden, grid=model.config.grid, probs=probs, rollout=rollout, heads=heads)


# -------------------------------------------------------------------------------------------------- the drawing


def patches_html(seen: Seen, caption: str) -> str:
    """The picture in its patches, each to be clicked; of what is hidden a shadow is left, and a cross."""
    rows, columns = seen.grid
    side = seen.pixels.shape[0] // rows
    cross = np.eye(side, dtype=bool) | np.eye(side, dtype=bool)[::-1]

    def patch(row: int, column: int) -> str:
        number = row * columns + column + 1
        pixels = grey(seen.pixels)[row * side : (row + 1) * side, column * side : (column + 1) * side]
        if number in seen.hidden:
            pixels = np.where(cross, 200, 95 + pixels / 8).astype(np.uint8)
        words = f"patch {number}{', hidden' if number in seen.hidden else ''}"
        return f'<span data-step="{number}" style="display:block">{pixel_image(pixels, 48, words)}</span>'

    return in_rows([[patch(row, column) for column in range(columns)] for row in range(rows)], caption)


def map_image(probs: Float[Tensor, " N"], seen: Seen, width: int, what: str) -> str:
    """One number for each patch: the largest is brightest, what is hidden is white."""
    colours = mpl.colormaps[SEQUENTIAL]((probs / probs.max().clamp_min(1e-9)).numpy(), bytes=True)[:, :3]
    colours[[number - 1 for number in seen.hidden]] = 255
    most = f"most at patch {int(probs.argmax()) + 1}" if probs.any() else "no patch is left"
    return pixel_image(colours.reshape(*seen.grid, 3), width, f"{what}: {most}")


def heads_html(seen: Seen) -> str:
    """What the class token looks at, by block (row) and head (column)."""
    maps = [
        [map_image(probs, seen, 44, f"block {block}, head {head}") for head, probs in enumerate(row, start=1)]
        for block, row in enumerate(seen.heads, start=1)
    ]
    return in_rows(maps, f"What each head looks at,<br>block 1 (above) to {len(maps)}")


def bars_html(seen: Seen) -> str:
    """A bar for each class."""
    bars = [(str(digit), float(share)) for digit, share in enumerate(seen.probs)]
    narrow = token_bars(bars, label="It says").replace("width:14em", "width:7em")
    return f'<div style="display:inline-block;vertical-align:top;margin:0 1.2em .8em 0">{narrow}</div>'


def page_html(parts: list[str], note: str) -> str:
    return f'<div>{"".join(parts)}<p style="margin:0">{note} In the maps bright is much, white is hidden.</p></div>'


def said(seen: Seen) -> str:
    """What the network takes the picture for, and what is hidden from it."""
    first, second = seen.probs.topk(2).indices.tolist()
    other = f", or {second} ({seen.probs[second]:.0%})" if seen.probs[second] >= 0.005 else ""
    numbers, count = ", ".join(map(str, sorted(seen.hidden))), len(seen.rollout)
    hidden = f"{len(seen.hidden)} of {count} patches are hidden: {numbers}." if numbers else "No patch is hidden."
    if len(seen.hidden) == count:
        hidden = "All patches are hidden: this is what it says of nothing."
    return f"It says {first} ({seen.sure:.0%}){other}. {hidden}"


# ------------------------------------------------------------------------------------------------ draw a digit

PAD = 56  # pixels
EMPTY = "Draw a digit. It cannot say “nothing”: it must choose."
EXAMPLES = {"a five": (1, 44, 6, 6), "a small two, off the middle": (7, 24, 4, 27), "a wide three": (24, 54, 1, 1)}
MANY = 40  # digits to take an example from
INK = 0.4  # a patch has ink where a pixel is as bright as this


def placed(number: int, side: int, top: int, left: int) -> UInt8[np.ndarray, "N N"]:
    """A digit that no network has seen, of this size and in this place on the pad."""
    paper = np.zeros((PAD, PAD), np.uint8)
    digit = CleanDigits(split="test").batch(MANY, 0).pixels[number][None]
    digit = F.interpolate(digit, (side, side), mode="bilinear", antialias=True)[0, 0]
    paper[top : top + side, left : left + side] = grey(digit)
    return paper


def any_digit() -> UInt8[np.ndarray, "N N"]:
    """Any digit, of any size, anywhere."""
    rng = np.random.default_rng()
    side = int(rng.integers(26, PAD))
    return placed(int(rng.integers(MANY)), side, *rng.integers(0, PAD - side, size=2).tolist())


class Reading(NamedTuple):
    """A drawing as it is drawn, as it is prepared, and prepared with patches hidden."""

    raw: Seen
    whole: Seen
    now: Seen


def draw(model: ViT) -> Explorer:
    """A digit of one's own, as drawn and as a network of clean digits sees it; its patches can be hidden."""

    @lru_cache(maxsize=1)  # to draw, to say and to judge
    def reading_of(pixels: bytes, hidden: Hidden) -> Reading:
        drawing = torch.tensor(list(pixels), dtype=torch.uint8).view(PAD, PAD)
        raw = F.interpolate(drawing.float()[None, None] / 255, (28, 28), mode="area")[0, 0]
        digit = as_digit(drawing)[0, 0]
        return Reading(look(model, raw), look(model, digit), look(model, digit, hidden))

    def answer(asked) -> Float[np.ndarray, " n"]:
        """What the page asks for: the probabilities as drawn, prepared and with patches hidden; rollout and heads."""
        raw, whole = (torch.tensor(asked[name], dtype=torch.float32).view(28, 28) for name in ("raw", "whole"))
        now = look(model, whole, frozenset(asked["hidden"]))
        parts = [look(model, raw).probs, look(model, whole).probs, now.probs, now.rollout, now.heads.flatten()]
        return torch.cat(parts).float().numpy()

    def read(state) -> Reading:
        return reading_of(state["pad"].tobytes(), state["hidden"])

    def picture(state) -> str:
        reading, now = read(state), read(state).now
        raw = f"As drawn<br>it would say {reading.raw.digit} ({reading.raw.sure:.0%})"
        drawing = pixel_image(grey(reading.raw.pixels), 112, "the drawing in 28 x 28 pixels")
        rollout = map_image(now.rollout, now, 112, "rollout")
        parts = [
            in_rows([[drawing], ['<div style="line-height:1.4">Rollout</div>'], [rollout]], raw),
            patches_html(now, "As the network sees it:<br>centred, as tall and bold as in training"),
            bars_html(now),
            heads_html(now),
        ]
        return page_html(parts, said(now) if state["pad"].any() else EMPTY)

    def words(state) -> str:
        drawn = f"As drawn it would say {read(state).raw.digit}." if state["pad"].any() else EMPTY
        return f"{drawn} Prepared: {said(read(state).now)}"

    def goal(text: str, reached: Callable[[Reading], bool]) -> Goal:
        def fits(state) -> bool:
            return bool(state["pad"].any()) and len(state["hidden"]) < rows * columns and reached(read(state))

        return Goal(text, fits)

    drawings = {name: placed(*where) for name, where in EXAMPLES.items()}
    rows, columns = model.config.grid
    return Explorer(
        name="draw",
        title="Draw a digit and hide its patches",
        controls=[
            Pad(name="pad", label="Your digit", size=PAD, brush=5.0, example=any_digit, drawings=drawings),
            Squares(name="hidden", label="Hidden patches", count=rows * columns),
        ],
        draw=picture,
        alt=words,
        beside=True,
        speaks=True,
        goals=(
            goal(
                "a digit that is read as another one without its preparation",
                lambda its: its.whole.sure >= 0.9 and its.raw.digit != its.whole.digit,
            ),
            goal("one that is read as two digits, with at most 20 points between them", is_ambiguous),
            goal("still the same digit, with three quarters of its inked patches hidden", survives),
        ),
        steps={"pad": tuple(drawings.values()), "hidden": (NOTHING, frozenset({6, 7, 10, 11}))},
        script="digit",
        config={
            "models": ["vit_digits"],
            "grid": rows,
            "pad": {"size": PAD, "brush": 5.0},
            "sources": {name: in_base64(pixels) for name, pixels in drawings.items()},
            "empty": EMPTY,
        },
        answers={"look": answer},
    )


def is_ambiguous(reading: Reading) -> bool:
    """Whether two classes have at least 30 of 100 each, and at most 20 lie between them; nothing is hidden."""
    first, second = reading.now.probs.topk(2).values.tolist()
    return not reading.now.hidden and second >= 0.3 and first - second <= 0.2


def inked(seen: Seen) -> Hidden:
    """The patches that hold a part of a digit."""
    rows, columns = seen.grid
    side = seen.pixels.shape[0] // rows
    most = F.max_pool2d(seen.pixels[None], side)[0].flatten()
    return frozenset(((most > INK).nonzero()[:, 0] + 1).tolist())


def survives(reading: Reading) -> bool:
    """Whether three quarters of the inked patches are hidden, not all, and the same digit still gets more than half."""
    ink, now = inked(reading.whole), reading.now
    enough = 3 * len(ink) <= 4 * len(ink & now.hidden) < 4 * len(ink)
    return enough and now.digit == reading.whole.digit and now.sure > 0.5


# --------------------------------------------------------------------------------------------- hide the patches


def sees(seen: Seen) -> bool:
    """Whether a patch is left: what the network says of nothing at all reaches no goal."""
    return len(seen.hidden) < len(seen.rollout)


SCENES = {"a white nine": 0, "a dark eight": 11, "a small seven": 9}  # of `held_out`
FEW = 4  # patches


def hide(model: ViT, coin: Float[Tensor, "1 1 S S"]) -> Explorer:
    """A picture whose patches can be hidden: class bars, rollout and the map of each head follow."""
    scenes = held_out(max(SCENES.values()) + 1).pixels
    drawn = {NAME: coin[0, 0]} | {name: scenes[number, 0] for name, number in SCENES.items()}
    in_bytes = {name: grey(pixels) for name, pixels in drawn.items()}  # the page computes with these
    pictures = {name: torch.from_numpy(pixels).float() / 255 for name, pixels in in_bytes.items()}
    whole = {name: look(model, pixels) for name, pixels in pictures.items()}

    look_at = lru_cache(maxsize=1)(lambda name, hidden: look(model, pictures[name], hidden))

    def now(state) -> Seen:
        return look_at(state["picture"], state["hidden"])

    def answer(asked) -> Float[np.ndarray, " n"]:
        """What the page asks for: the probabilities with patches hidden, rollout and heads."""
        pixels = torch.tensor(asked["pixels"], dtype=torch.float32).view(coin.shape[2:])
        seen = look(model, pixels, frozenset(asked["hidden"]))
        return torch.cat([seen.probs, seen.rollout, seen.heads.flatten()]).float().numpy()

    def picture(state) -> str:
        seen = now(state)
        rollouts = [[map_image(each.rollout, each, 112, "rollout") for each in (whole[state["picture"]], seen)]]
        parts = [
            patches_html(seen, f"What it sees, in {rows * columns} patches"),
            bars_html(seen),
            in_rows(rollouts, "Rollout: nothing hidden, and now"),
            heads_html(seen),
        ]
        return page_html(parts, said(seen))

    def goal(text: str, reached: Callable[[Seen, Seen], bool]) -> Goal:
        return Goal(text, lambda state: sees(now(state)) and reached(now(state), whole[state["picture"]]))

    rows, columns = model.config.grid
    brightest = whole[NAME].brightest(FEW)
    return Explorer(
        name="hide",
        title="Hide patches and see the class change",
        controls=[
            Pictures(name="picture", label="Image", pictures=in_bytes),
            Squares(name="hidden", label="Hidden patches", count=rows * columns),
        ],
        draw=picture,
        alt=lambda state: said(now(state)),
        beside=True,
        speaks=True,
        goals=(
            goal(
                "another digit, with one or two patches hidden",
                lambda now, first: len(now.hidden) <= 2 and now.digit != first.digit,
            ),
            goal(
                f"only {FEW} patches visible, and the same digit with more than 95 %",
                lambda now, first: (
                    len(now.hidden) >= rows * columns - FEW and now.digit == first.digit and now.sure > 0.95
                ),
            ),
            goal(
                f"the {FEW} brightest patches of the whole image's rollout hidden, and the same digit",
                lambda now, first: first.brightest(FEW) <= now.hidden and now.digit == first.digit,
            ),
        ),
        steps={"picture": tuple(pictures), "hidden": (NOTHING, brightest)},
        script="hide",
        config={
            "models": ["vit"],
            "side": coin.shape[-1],
            "grid": rows,
            "few": FEW,
            "sources": {name: in_base64(pixels) for name, pixels in in_bytes.items()},
        },
        answers={"look": answer},
    )


PLAYGROUNDS = {"draw": draw, "hide": hide}
