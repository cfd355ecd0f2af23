"""The playgrounds of all lessons, each made once, with the words at which its live form has computed what it shows."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import torch

from course_lib.classroom.widgets import Explorer
from course_lib.data.checkpoints import load_trained
from course_lib.lessons.lesson_00 import letters
from course_lib.lessons.lesson_00 import playground as lesson_00
from course_lib.lessons.lesson_01 import playground as lesson_01
from course_lib.lessons.lesson_02 import playground as lesson_02
from course_lib.lessons.lesson_02.tasks import TASKS as TASKS_02
from course_lib.lessons.lesson_03 import playground as lesson_03
from course_lib.lessons.lesson_04 import playground as lesson_04
from course_lib.lessons.lesson_05 import playground as lesson_05
from course_lib.lessons.lesson_06 import playground as lesson_06
from course_lib.lessons.lesson_07 import playground as lesson_07
from course_lib.lessons.lesson_07.search import QUESTIONS
from course_lib.lessons.lesson_07.sentences import ours, passages
from course_lib.lessons.lesson_08 import playground as lesson_08
from course_lib.lessons.lesson_09 import laws
from course_lib.lessons.lesson_09 import playground as lesson_09
from course_lib.lessons.lesson_10 import learner as aligning
from course_lib.lessons.lesson_10 import playground as lesson_10
from course_lib.lessons.lesson_10.tasks import TASKS as TASKS_10
from course_lib.lessons.lesson_11 import playground as lesson_11
from course_lib.lessons.lesson_12 import playground as lesson_12
from course_lib.lessons.lesson_13 import playground as lesson_13
from course_lib.lessons.lesson_14 import playground as lesson_14
from course_lib.lessons.lesson_15 import playground as lesson_15
from course_lib.lessons.lesson_16 import control_playground, words_playground
from course_lib.lessons.lesson_17 import playground as lesson_17
from course_lib.lessons.picture import the_picture
from course_lib.text.tokenizer import Tokenizer
from course_lib.training.translation import splits

LETTERS = "ehiostuw"


@cache
def trained(name: str) -> torch.nn.Module:
    return load_trained(name).model


@cache
def gpt() -> tuple[torch.nn.Module, Tokenizer]:
    made = load_trained("dictionary")
    return made.model, Tokenizer.from_state_dict(made.extra["tokenizer"])


def shares(words, chosen):
    text = "".join(words)
    return [10 * text.count(letter) / len(text) for letter in chosen]


def belief() -> Explorer:
    data = splits(4_000)
    network = letters.train(shares, LETTERS, data.train[:200], data.test[:10]).network
    return lesson_00.language(network, shares, LETTERS)


def icons() -> Explorer:
    """The map of an untrained network: what is on the page does not depend on what it has learned."""
    torch.manual_seed(0)
    return lesson_02.icon_map(TASKS_02["simclr"].module(3, (8, 8, 8, 8), 16))


def paid() -> Explorer:
    tuned, reward, policy = map(trained, ("demonstrated", "kindness", "aligned"))
    parts = aligning.Parts(*(TASKS_10[name].reference for name in ("token_rewards", "gae")))
    points = [aligning.measure(one, tuned, reward) for one in (tuned, policy)]
    short = {"weights": policy.state_dict(), "critic": reward.state_dict(), "points": points}
    far = short | {"points": [*points, points[-1] | {"KL": 20.0, "reward": 5.0}]}
    return lesson_10.paid(tuned, reward, short, far, parts)


@dataclass(frozen=True)
class Playground:
    """How it is made; `asks` for what a kernel alone computes; `steps` of a learner that show more of it."""

    make: Callable[[], Explorer]
    ready: str
    asks: bool = False
    steps: tuple[tuple[str, ...], ...] = ()
    tall: bool = False  # higher than the screen of a laptop


PLAYGROUNDS = {
    "letters": Playground(lambda: lesson_00.choose(shares, LETTERS), "By e, h, i, o, s, t, u, w: over 96 % right."),
    "belief": Playground(belief, "the network says English"),
    "six": Playground(lambda: lesson_01.six(trained("transfer")), "It knows 0 to 5", asks=True),
    "stages": Playground(lambda: lesson_01.stages(trained("resnet")), "A probe at each depth", asks=True),
    "alike": Playground(lambda: lesson_02.neighbours(trained("simclr")), "Nearest by SimCLR", asks=True),
    "embedding": Playground(lambda: lesson_02.embedding_map(trained("simclr")), "changed views land", asks=True),
    "iconmap": Playground(icons, "thinking face"),
    "eigenvalues": Playground(lesson_03.eigenvalues, "absolute value 0.90"),
    "origin": Playground(lesson_03.reader, "“brazília”"),
    "machine": Playground(lesson_04.machine, "f = 0.70"),
    "cells": Playground(lambda: lesson_04.reader(trained("lstm_characters")), "largest absolute value"),
    "softmax": Playground(lesson_05.softmax_explorer, "key 1 has the largest"),
    "mask": Playground(lesson_05.mask_painter, "attends most to"),
    "translator": Playground(
        lambda: lesson_05.talk(trained("attention")), "zone", steps=(("hover", "[lang=fr].large span"),)
    ),
    "beams": Playground(
        lambda: lesson_06.explorer(trained("translator")), "le ministre ne voit pas", asks=True, tall=True
    ),
    "bpe": Playground(lesson_06.bpe, "79 letters are 70 tokens"),
    "blank": Playground(lambda: lesson_07.blank(trained("bert")), "stood there", steps=(("press", "Hide “law”"),)),
    "search": Playground(
        lambda: lesson_07.search(ours(trained("bert")), passages(["05", "06"])),
        "lesson 0",
        asks=True,
        steps=(("press", QUESTIONS[2]),),
        tall=True,
    ),
    "dictionary": Playground(lambda: lesson_08.lookup(*gpt()), "florpness (noun)"),
    "writer": Playground(lambda: lesson_08.writer(*gpt()), "tokens written"),
    "guess": Playground(lesson_08.guess, "to go", steps=(("write", "Next character", "e"),)),
    "compute": Playground(
        lambda: lesson_09.compute(laws.shipped()["grid"] + laws.shipped()["isoflop"]), "1.0e10 operations"
    ),
    "powerlaw": Playground(lambda: lesson_09.by_hand(laws.shipped()["grid"]), "floor 0.00"),
    "labeller": Playground(lambda: lesson_10.labeller(aligning.before().model), "Pair 1 of 80"),
    "paid": Playground(paid, "Score of the reward model"),
    "digit": Playground(lambda: lesson_11.draw(trained("vit_digits")), "It says 5; as drawn, not prepared: 5"),
    "hide": Playground(lambda: lesson_11.hide(trained("vit"), the_picture().pixels), "It says 3 (100%); dashed"),
    "receptive": Playground(lesson_12.reached_by, "receptive field"),
    "hierarchy": Playground(lambda: lesson_12.reader(trained("swin")), "It says 3", asks=True),
    "masking": Playground(lambda: lesson_13.mask(trained("mae")), "the ViT classifies it as"),
    "ruin": Playground(lambda: lesson_13.ruin(trained("mae_scenes"), the_picture().pixels), "the ViT classifies it as"),
    "scene": Playground(lambda: lesson_14.scene(trained("unet"), trained("unet_no_skips")), "2 objects"),
    "drawing": Playground(lambda: lesson_14.drawing(trained("unet")), "1 object"),
    "transcribe": Playground(lambda: lesson_15.transcribe(trained("tones")), "Collapsed"),
    "spans": Playground(lambda: lesson_15.spans(trained("gaps")), "removed tokens", asks=True, tall=True),
    "agent": Playground(lambda: control_playground.agent(trained("mazes")), "Asked for -10"),
    "iconsearch": Playground(
        lambda: words_playground.search(trained("icon_clip")), "highest cosine for “sunflower”", asks=True, tall=True
    ),
    "costs": Playground(lesson_17.scores, "softmax attention needs 1 times"),
    "dreams": Playground(lambda: lesson_17.dream(trained("boltzmann")), "The label 3 is clamped"),
}


@cache
def explorer(name: str) -> Explorer:
    return PLAYGROUNDS[name].make()
