"""What one plays with in lesson 01: a digit of one's own, and what a network makes of it, in the end and by depth."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, UInt8
from torch import Tensor

from course_lib.classroom.widgets import Explorer, Goal, Pad, as_digit, in_rows, pixel_image, token_bars
from course_lib.classroom.widgets.pixels import coloured, grey
from course_lib.data.digits import CleanDigits
from course_lib.functional.images import standardise
from course_lib.lessons.lesson_01.looking import STAGES, maps_of, stage_probes
from course_lib.models.resnet import ResNet

PAD = 56  # pixels
SHOWN = 5  # maps of each depth


class Belief(NamedTuple):
    """What is believed of a drawing: the likeliest digit, and its probability."""

    digit: int
    sure: float


def examples() -> dict[str, UInt8[np.ndarray, "N N"]]:
    """Digits that no network has seen, as large as the pad."""
    pixels, labels = CleanDigits(split="test").batch(60, 0)
    large = F.interpolate(pixels, (PAD, PAD), mode="bilinear")
    first = {int(label): number for number, label in reversed(list(enumerate(labels)))}
    names = {"a two": 2, "a zero": 0, "a seven": 7, "a nine": 9}
    return {name: grey(large[first[digit], 0]) for name, digit in names.items()}


def as_scene(drawing: UInt8[np.ndarray, "N N"]) -> Float[Tensor, "1 1 32 32"]:
    """The drawing in the middle of 32 x 32 pixels, bright on dark grey."""
    return 0.2 + 0.7 * F.pad(as_digit(torch.from_numpy(np.array(drawing))), (2, 2, 2, 2))


def at_odds(beliefs: list[Belief]) -> bool:
    """Whether an early probe is sure of another digit than the last one."""
    *early, last = beliefs
    return any(its.sure > 0.6 and its.digit != last.digit for its in early)


def any_digit() -> UInt8[np.ndarray, "N N"]:
    """A digit that no network has seen, another one each time."""
    pixels, _ = CleanDigits(split="test").batch(1, int(torch.randint(1_000, ())))
    return grey(F.interpolate(pixels, (PAD, PAD), mode="bilinear")[0, 0])


def pad_of() -> Pad:
    return Pad(name="pad", label="Your digit", size=PAD, brush=5.0, example=any_digit, drawings=examples())


def six(model: ResNet) -> Explorer:
    """What a network that knows the digits 0 to 5 makes of any drawing."""

    @torch.no_grad()
    def probs(state) -> Tensor:
        return model.eval()(standardise(as_scene(state["pad"])))[0].softmax(dim=0)

    def words(state) -> str:
        found = probs(state)
        return f"It knows 0 to 5, and says {int(found.argmax())} ({found.max():.0%})."

    def draw(state) -> str:
        chances = [(str(digit), float(share)) for digit, share in enumerate(probs(state))]
        bars = token_bars(chances, label="It believes")
        picture = in_rows([[pixel_image(grey(as_scene(state["pad"])[0, 0]), 160, "what it sees")]], "What it sees")
        return f'<div style="display:flex;flex-wrap:wrap;gap:1.5em">{picture}{bars}</div><p>{words(state)}</p>'

    pad = pad_of()
    return Explorer(name="six", title="Six digits, and any drawing", controls=[pad], draw=draw, alt=words, beside=True,
                    speaks=True, steps={"pad": tuple(examples().values())})  # fmt: skip


def stages(model: ResNet) -> Explorer:
    """The maps of each depth, and which digit a probe there reads; three goals."""

    @lru_cache(maxsize=8)
    def seen(key: bytes) -> tuple[list[Tensor], list[Belief]]:
        scene = as_scene(np.frombuffer(key, np.uint8).reshape(PAD, PAD))
        maps = [found[0] for found in maps_of(model, scene)]
        logits = [probe.logits(found.mean(dim=(1, 2))[None])[0]
                  for probe, found in zip(stage_probes(model), maps, strict=True)]  # fmt: skip
        probs = [values.softmax(dim=0) for values in logits]
        return maps, [Belief(int(share.argmax()), float(share.max())) for share in probs]

    def beliefs(state) -> list[Belief]:
        return seen(state["pad"].tobytes())[1]

    def words(state) -> str:
        read = (f"{name} {its.digit} ({its.sure:.0%})" for name, its in zip(STAGES, beliefs(state), strict=True))
        return f"A probe at each depth reads: {', '.join(read)}."

    def draw(state) -> str:
        maps, read = seen(state["pad"].tobytes())
        rows = []
        for name, found, its in zip(STAGES, maps, read, strict=True):
            strongest = found.mean(dim=(1, 2)).topk(SHOWN).indices.tolist()
            images = [pixel_image(coloured(found[channel]), 96, f"{name}, channel {channel}") for channel in strongest]
            rows.append(in_rows([images], f"{name}: its probe reads <b>{its.digit}</b> ({its.sure:.0%})"))
        return f"<div>{''.join(rows)}</div>"

    def drawn(state) -> bool:
        return bool(state["pad"].any())

    return Explorer(
        name="stages",
        title="A digit on its way through the network",
        controls=[pad_of()],
        draw=draw,
        alt=words,
        beside=True,
        speaks=True,
        goals=(
            Goal("the last probe is over 95 % sure", lambda state: drawn(state) and beliefs(state)[-1].sure > 0.95),
            Goal("stem and last stage read the same digit",
                 lambda state: drawn(state) and beliefs(state)[0].digit == beliefs(state)[-1].digit),
            Goal("an earlier probe is over 60 % sure of another digit than the last",
                 lambda state: drawn(state) and at_odds(beliefs(state))),
        ),
        steps={"pad": tuple(examples().values())},
    )  # fmt: skip


PLAYGROUNDS = {"six": six, "stages": stages}
