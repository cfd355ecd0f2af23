"""Lesson 03: five arrangements of inputs and outputs in time, each with a small trained model run on one example."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from course_lib.data.captions import captions
from course_lib.data.checkpoints import load_trained
from course_lib.data.scenes import DigitScenes
from course_lib.functional.images import standardise
from course_lib.lessons.lesson_03 import learner
from course_lib.lessons.lesson_03.recipes import captions as captioning
from course_lib.text.tokenizer import Tokenizer
from course_lib.training.translation import vocabularies


class Shape(NamedTuple):
    """An arrangement in time: the inputs, the outputs, and at which steps they come."""

    name: str
    task: str
    given: list[str]  # a text for each input; "" for the image
    said: list[str]  # a text for each output
    waits: int = 0  # steps before the first output
    picture: Float[Tensor, "S S"] | None = None
    feeds_back: bool = False  # each output is the next input
    taught: tuple[str, ...] = ()  # the inputs at training time, where they are others: teacher forcing


def run_all(name: str, english: str, french: str, scene: int = 10) -> list[Shape]:
    """All five, run now: a digit, a caption, the language of a name, a translation, the tags of a sentence."""
    return [
        *look_at_scene(scene),
        read_name(name),
        translate(english),
        tag(french),
    ]


@torch.no_grad()
def look_at_scene(number: int) -> list[Shape]:
    """One to one, without any time: which digit? One to many: a caption of the same scene."""
    scenes = DigitScenes(split="test", clutter=captioning.CLUTTER).batch(40, seed=11)
    scene, true = scenes.pixels[number : number + 1], captions(scenes)[number].split()
    digit = load_trained("resnet").model(standardise(scene)).argmax().item()
    words = captioning.write(load_trained("captions").model, captioning.look(scene))[0].split()
    return [
        Shape("one to one", "which digit?", [""], [str(digit)], picture=scene[0, 0]),
        Shape(
            "one to many",
            "image captioning",
            [""],
            words,
            picture=scene[0, 0],
            feeds_back=True,
            taught=("start", *true[:-1]),
        ),
    ]


def read_name(name: str) -> Shape:
    """Many to one: the language of a name."""
    trained = load_trained("names")
    tokenizer = Tokenizer.from_state_dict(trained.extra["tokenizer"])
    language, _ = learner.most_probable(learner.beliefs(trained.model, tokenizer, name)[-1])[0]
    return Shape("many to one", "which language?", list(name), [language], waits=len(name) - 1)


def translate(english: str) -> Shape:
    """Many to many, delayed: all is read before the first word is written (lesson 05 improves on it)."""
    source, target = vocabularies()
    ids, valid = source.encode_batch([english])
    written, _ = load_trained("fixed_vector").model.greedy_decode(ids, valid)
    words = english.split()
    french = target.sentence(written[0])
    return Shape("many to many, delayed", "translate", words, french, waits=len(words), feeds_back=True)


@torch.no_grad()
def tag(french: str) -> Shape:
    """Many to many, aligned: a tag for each word, at once."""
    trained = load_trained("tags")
    tokenizer = Tokenizer.from_state_dict(trained.extra["tokenizer"])
    best = trained.model(torch.tensor([tokenizer.encode(french)])).argmax(dim=-1)[0]
    return Shape("many to many, aligned", "tag each word", french.split(), [trained.extra["tags"][i] for i in best])
