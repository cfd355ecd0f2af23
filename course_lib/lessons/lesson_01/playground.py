"""What one plays with in lesson 01: a digit of one's own, and what a network makes of it, in the end and by depth."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, UInt8
from torch import Tensor

from course_lib.classroom.widgets import Explorer, Goal, Pad, as_digit, in_base64, in_rows, pixel_image, token_bars
from course_lib.classroom.widgets.pixels import coloured, grey
from course_lib.data.digits import CleanDigits
from course_lib.functional.images import standardise
from course_lib.lessons.lesson_01.looking import STAGES, maps_of, stage_probes
from course_lib.models.resnet import ResNet

PAD, BRUSH, SIDE = 56, 5.0, 32  # pixels of the pad, of its brush and of what a network sees
SHOWN = 5  # maps of each depth


class Belief(NamedTuple):
    """The most probable digit of a drawing, and its probability."""

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


def any_digit(_=None) -> UInt8[np.ndarray, " N*N"]:
    """A digit that no network has seen, another one each time."""
    pixels, _ = CleanDigits(split="test").batch(1, int(torch.randint(1_000, ())))
    return grey(F.interpolate(pixels, (PAD, PAD), mode="bilinear")[0, 0]).flatten()


def pad_of() -> Pad:
    return Pad(name="pad", label="Your digit", size=PAD, brush=BRUSH, drawings=examples())


def page_config() -> dict[str, Any]:
    """What both playgrounds need on the page."""
    sources = {name: in_base64(pixels) for name, pixels in examples().items()}
    return {"pad": {"size": PAD, "brush": BRUSH}, "sources": sources, "random": True}


def as_drawing(pixels: Sequence[int]) -> UInt8[np.ndarray, "N N"]:
    """What the page sends."""
    return np.array(pixels, np.uint8).reshape(PAD, PAD)


def six(model: ResNet) -> Explorer:
    """What a network that knows the digits 0 to 5 makes of any drawing."""

    @torch.no_grad()
    def probs(state) -> Tensor:
        return model.eval()(standardise(as_scene(state["pad"])))[0].softmax(dim=0)

    def answer(pixels) -> Float[np.ndarray, " n"]:
        """What the page asks for: the probabilities, and what the network sees."""
        drawing = as_drawing(pixels)
        return torch.cat([probs({"pad": drawing}), as_scene(drawing).flatten()]).float().numpy()

    def words(state) -> str:
        found = probs(state)
        return f"It knows 0 to 5, and says {int(found.argmax())} ({found.max():.0%})."

    def draw(state) -> str:
        chances = [(str(digit), float(share)) for digit, share in enumerate(probs(state))]
        bars = token_bars(chances, label="It says")
        picture = in_rows(
            [[pixel_image(grey(as_scene(state["pad"])[0, 0]), 160, "what it sees")]], "As the network sees it"
        )
        return f'<div style="display:flex;flex-wrap:wrap;gap:1.5em">{picture}{bars}</div><p>{words(state)}</p>'

    return Explorer(
        name="six",
        title="Six digits, and any drawing",
        controls=[pad_of()],
        draw=draw,
        alt=words,
        beside=True,
        speaks=True,
        steps={"pad": tuple(examples().values())},
        script="six",
        config=page_config() | {"side": SIDE},
        answers={"read": answer, "example": any_digit},
    )


def stages(model: ResNet) -> Explorer:
    """The maps of each depth, and which digit a probe there reads; three goals."""

    @lru_cache(maxsize=8)
    def seen(key: bytes) -> tuple[list[Tensor], list[Belief], list[Tensor]]:
        scene = as_scene(np.frombuffer(key, np.uint8).reshape(PAD, PAD))
        maps = [found[0] for found in maps_of(model, scene)]
        logits = [probe.logits(found.mean(dim=(1, 2))[None])[0]
                  for probe, found in zip(stage_probes(model), maps, strict=True)]  # fmt: skip
        probs = [values.softmax(dim=0) for values in logits]
        return maps, [Belief(int(share.argmax()), float(share.max())) for share in probs], probs

    def beliefs(state) -> list[Belief]:
        return seen(state["pad"].tobytes())[1]

    def words(state) -> str:
        read = (f"{name} {its.digit} ({its.sure:.0%})" for name, its in zip(STAGES, beliefs(state), strict=True))
        return f"A probe at each depth reads: {', '.join(read)}."

    def strongest(found: Float[Tensor, "C h w"]) -> list[int]:
        return found.mean(dim=(1, 2)).topk(SHOWN).indices.tolist()

    def answer(pixels) -> Float[np.ndarray, " n"]:
        """What the page asks for: of each depth the probabilities that its probe gives, and its strongest maps."""
        maps, _, probs = seen(as_drawing(pixels).tobytes())
        shown = [found[channel].flatten() for found in maps for channel in strongest(found)]
        return torch.cat([*probs, *shown]).float().numpy()

    def draw(state) -> str:
        maps, read, _ = seen(state["pad"].tobytes())
        rows = []
        for name, found, its in zip(STAGES, maps, read, strict=True):
            images = [pixel_image(coloured(found[c]), 96, f"{name}, channel {c}") for c in strongest(found)]
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
        script="stages",
        config=page_config() | {
            "depths": list(STAGES),
            "sides": [found.shape[-1] for found in maps_of(model, torch.zeros(1, 1, SIDE, SIDE))],
            "shown": SHOWN,
        },
        answers={"read": answer, "example": any_digit},
    )  # fmt: skip


PLAYGROUNDS = {"six": six, "stages": stages}
