"""What one plays with in lesson 17: the costs of four kinds of attention, and a Boltzmann machine that dreams."""

from collections import Counter
from copy import deepcopy
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib.classroom.widgets import Choice, Explorer, Goal, Slider, in_base64, in_rows, pixel_image
from course_lib.classroom.widgets.pixels import grey
from course_lib.lessons.lesson_17 import learner
from course_lib.lessons.lesson_17.recipes.boltzmann import CLASSES, PIXELS, recogniser

CHAINS, COLUMNS, WIDTH = 16, 8, 56  # chains, and how they are shown: pixels
SIDE, LEVELS = 8, 16  # pixels of a digit, and its levels of grey above 0
NONE, RANDOM = -1, -1
STEPS = {"1": 1, "3": 3, "10": 10, "30": 30, "100": 100, "300": 300}
DIGITS = {str(digit): digit for digit in range(CLASSES)}
MOST, FEW, KINDS = 14, 8, 5  # chains of the goals; kinds of digits


def starting(digit: int) -> Float[Tensor, "B 64"] | None:
    """Test digits of one class, one for each chain; None for random pixels."""
    if digit == RANDOM:
        return None
    pixels, labels = learner.digits("test")
    return pixels[labels == digit][:CHAINS]


def dream(model: nn.Module) -> Explorer:
    """Sixteen chains of an RBM with label units, the library's or the learner's."""

    @lru_cache(maxsize=32)
    def chains(label: int, start: int, steps: int, seed: int) -> tuple[Float[Tensor, "B 64"], Int[Tensor, " B"]]:
        labels = None if label == NONE else torch.full((CHAINS,), label)
        images = learner.dreams(model, labels, steps=steps, start=starting(start), count=CHAINS, seed=seed)
        return images, learner.recognised(images)

    def found(state) -> tuple[Float[Tensor, "B 64"], Int[Tensor, " B"]]:
        return chains(state["label"], state["start"], state["steps"], int(state["seed"]))

    def count(state, digit: int) -> int:
        return int((found(state)[1] == digit).sum())

    def words(state) -> str:
        classified = Counter(found(state)[1].tolist()).most_common()
        said = ", ".join(f"{number} as {digit}" for digit, number in classified)
        clamped = "No label is clamped" if state["label"] == NONE else f"The label {state['label']} is clamped"
        after = f"{state['steps']} Gibbs {'step' if state['steps'] == 1 else 'steps'}"
        return f"{clamped}. After {after} a classifier assigns the {CHAINS} chains as follows: {said}."

    def drawing(state) -> str:
        images, classes = found(state)
        pictures = [
            pixel_image(grey(one.view(8, 8)), WIDTH, f"a dream, classified as {digit}")
            for one, digit in zip(images, classes.tolist(), strict=True)
        ]
        rows = [pictures[first : first + COLUMNS] for first in range(0, CHAINS, COLUMNS)]
        return f'<div>{in_rows(rows, "Probability of ink in each pixel")}<p style="margin:0">{words(state)}</p></div>'

    def other(state) -> bool:
        return state["start"] != RANDOM and state["label"] not in (NONE, state["start"])

    return Explorer(
        name="dream",
        title="Let the machine dream",
        controls=[
            Choice(name="label", label="Clamped label", options={"none": NONE} | DIGITS, value=3),
            Choice(name="start", label="The chains begin at", options={"random pixels": RANDOM} | DIGITS),
            Choice(name="steps", label="Gibbs steps", options=STEPS, value=30),
            Slider(name="seed", label="Random numbers", low=0, high=20, step=1, value=0),
        ],
        draw=drawing,
        alt=words,
        beside=True,
        speaks=True,
        goals=(
            Goal(
                f"a clamped label of which {MOST} of {CHAINS} dreams or more are recognised, from random pixels",
                lambda state: (
                    state["start"] == RANDOM and state["label"] != NONE and count(state, state["label"]) >= MOST
                ),
            ),
            Goal(
                f"chains that begin at a real digit, with another label clamped, of which {FEW} or more have become "
                "that label",
                lambda state: other(state) and count(state, state["label"]) >= FEW,
            ),
            Goal(
                f"no label, and chains that all begin at one digit and end as {KINDS} different digits or more",
                lambda state: (
                    state["label"] == NONE and state["start"] != RANDOM and len(set(found(state)[1].tolist())) >= KINDS
                ),
            ),
        ),
        steps={"label": (3, 8, NONE), "steps": (30, 1)},
        script="dreams",
        config={
            **machine_on_page(model),
            "pixels": PIXELS,
            "side": SIDE,
            "classes": CLASSES,
            "chains": CHAINS,
            "digits": [in_base64((LEVELS * starting(digit)).round().byte().numpy()) for digit in range(CLASSES)],
            "levels": LEVELS,
            "longest": max(STEPS.values()),
            "most": MOST,
            "few": FEW,
            "kinds": KINDS,
            "start": {"label": 3, "start": RANDOM, "steps": 30, "seed": 0},
        },
    )


@torch.no_grad()
def machine_on_page(model: nn.Module) -> dict[str, Any]:
    """The weights of a machine and of the classifier, as `dreams.js` reads them.

    They are read off the probabilities of the units, so that a learner's class may call its weights as it likes.
    """
    model = deepcopy(model).double()
    hidden = model.hidden if hasattr(model, "hidden") else model.features
    count = PIXELS + CLASSES
    logits = hidden(torch.cat([torch.zeros(1, count), torch.eye(count)]).double()).logit()
    bias, weight = logits[0], (logits[1:] - logits[0]).T
    visible = model.visible(torch.zeros(1, len(bias)).double()).logit()[0]
    probe = recogniser()
    return {
        "sizes": list(weight.shape),
        **{
            name: in_base64(np.atleast_2d(values.float().contiguous().numpy()).view(np.uint8))
            for name, values in (("weight", weight), ("hidden", bias), ("visible", visible))
        },
        "probe": {
            "weight": [[round(x, 5) for x in row] for row in probe.weight.tolist()],
            "bias": [round(x, 5) for x in probe.bias.tolist()],
            "classes": probe.classes.tolist(),
        },
    }


# --------------------------------------------------------------------------------------------- costs of attention

POWERS = (4, 14)  # of two: the shortest and the longest text
LENGTHS = {f"{2**n:,}": 2**n for n in range(POWERS[0], POWERS[1] + 1)}
SIZES, WINDOWS = {"low": 8, "high": 128, "step": 8}, {"low": 4, "high": 256, "step": 4}
SOFTMAX, LOCAL, FLASH, LINEAR = "softmax", "local", "softmax in blocks", "linear"
SHOWN = (SOFTMAX, FLASH, LOCAL, LINEAR)
FLASH_BLOCK = 64  # keys


def attention_costs(kind: str, length: int, size: int, window: int) -> tuple[int, int, int]:
    """Of one causal head with keys and values of `size`: multiplications for a whole text, scores held, numbers kept.

    Multiplications are those of scores and weighted sums, or of the updates and reads of a state. Scores held are the
    largest tensor of them in training. Numbers kept are what generation needs of the past after `length` tokens.
    """
    pairs = length * (length + 1) // 2
    if kind == LINEAR:
        return length * 2 * size * (size + 1), 0, size * (size + 1)
    if kind == LOCAL:
        near = min(window + 1, length)
        pairs = near * (near + 1) // 2 + (length - near) * near
        return 2 * size * pairs, length * near, 2 * size * near
    return 2 * size * pairs, length * (min(FLASH_BLOCK, length) if kind == FLASH else length), 2 * size * length


def scores() -> Explorer:
    """Choose a kind of attention, a length and sizes, and compare with softmax attention."""
    start = {"kind": SOFTMAX, "length": 256, "size": 64, "window": 16}

    def costs(state, kind: str | None = None) -> tuple[int, int, int]:
        return attention_costs(kind or state["kind"], state["length"], int(state["size"]), int(state["window"]))

    def table(state) -> str:
        rows = "".join(
            f'<tr><th style="text-align:left">{f"<b>{kind}</b>" if kind == state["kind"] else kind}</th>'
            + "".join(f'<td style="text-align:right">{number:,}</td>' for number in costs(state, kind))
            + "</tr>"
            for kind in SHOWN
        )
        heads = ("attention", "multiplications", "scores held", "numbers kept")
        head = "".join(f"<th>{name}</th>" for name in heads)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table><p>{words(state)}</p>"

    def words(state) -> str:
        work, softmax = costs(state)[0], costs(state, SOFTMAX)[0]
        return (
            f"One head, {state['length']:,} tokens: {state['kind']} attention needs {work / softmax:.3g} times the "
            "multiplications of softmax attention."
        )

    return Explorer(
        name="scores",
        title="What does attention cost?",
        controls=[
            Choice(name="kind", label="attention", options={kind: kind for kind in SHOWN}),
            Choice(name="length", label="tokens", options=LENGTHS, value=start["length"]),
            Slider(name="size", label="size of a head", value=start["size"], **SIZES),
            Slider(name="window", label="window", value=start["window"], **WINDOWS),
        ],
        draw=table,
        alt=words,
        speaks=True,
        goals=(
            Goal(
                "linear attention that needs more multiplications than softmax attention",
                lambda state: state["kind"] == LINEAR and costs(state)[0] > costs(state, SOFTMAX)[0],
            ),
            Goal(
                "local attention that needs less than a hundredth of softmax attention's multiplications",
                lambda state: state["kind"] == LOCAL and 100 * costs(state)[0] < costs(state, SOFTMAX)[0],
            ),
            Goal(
                "linear attention that keeps less than a hundredth of what softmax attention keeps",
                lambda state: state["kind"] == LINEAR and 100 * costs(state)[2] < costs(state, SOFTMAX)[2],
            ),
        ),
        steps={"kind": (SOFTMAX, LOCAL, LINEAR), "length": (16, 256, 4096)},
        script="costs",
        config={
            "kinds": SHOWN,
            "block": FLASH_BLOCK,
            "lengths": POWERS,
            "sizes": SIZES,
            "windows": WINDOWS,
            "start": start,
        },
    )


PLAYGROUNDS = {"scores": scores, "dream": dream}
