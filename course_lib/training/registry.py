"""The trainings that `course train` knows by name: what a lesson shows, from its data to a checkpoint with its card."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any

from torch import nn

from course_lib.training.history import History
from course_lib.training.progress import Progress

RECIPES: dict[str, str] = {  # name -> module and attribute that hold its Recipe
    "resnet": "course_lib.lessons.lesson_01.resnet:RECIPE",
    "depth": "course_lib.lessons.lesson_01.depth:RECIPE",
    "transfer": "course_lib.lessons.lesson_01.transfer:RECIPE",
    "simclr": "course_lib.lessons.lesson_02.simclr:RECIPE",
    "rnn_characters": "course_lib.training.language_models:RNN_CHARACTERS",
    "lstm_characters": "course_lib.training.language_models:LSTM_CHARACTERS",
    "translator": "course_lib.lessons.lesson_06.transformer:RECIPE",
    "bert": "course_lib.lessons.lesson_07.bert:RECIPE",
    "gpt": "course_lib.training.language_models:GPT_BPE",
    "gpt_characters": "course_lib.training.language_models:GPT_CHARACTERS",
    "vit": "course_lib.lessons.lesson_11.vit:VIT",
    "vit_digits": "course_lib.lessons.lesson_11.vit:VIT_DIGITS",
    "vit_data": "course_lib.lessons.lesson_11.vit:VIT_DATA",
    "swin": "course_lib.lessons.lesson_12.swin:RECIPE",
    "shifted_windows": "course_lib.lessons.lesson_12.swin:SHIFTED_WINDOWS",
    "mae": "course_lib.lessons.lesson_13.mae:RECIPE",
    "unet": "course_lib.lessons.lesson_14.unet:RECIPE",
}


@dataclass(frozen=True, kw_only=True)
class Trained:
    """What a recipe's training returns."""

    model: nn.Module
    history: History
    validation: Mapping[str, float]  # scores by which the recipe was tuned and a seed is chosen
    test: Mapping[str, float]  # scores to be reported, on data that nothing was chosen by
    extra: Mapping[str, Any] = field(default_factory=dict)  # plain values kept beside the weights: a vocabulary


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How a lesson's checkpoint is made.

    `train(seed, checkpoint, progress)` trains with the folder `checkpoint` for `fit`, so that an interrupted training
    goes on. Of several seeds, the one is shipped that is best by `chosen_by`, one of the names in `validation`.
    """

    title: str
    lesson: str  # its number
    data: str  # what it is trained on, and where that comes from
    licence: str  # of the checkpoint
    minutes: float  # about, for one seed on two cores
    settings: Mapping[str, Any]  # plain values; with the seed they fix the training
    train: Callable[[int, Path, Progress | None], Trained]
    chosen_by: str
    best: Callable = min  # min if low values of `chosen_by` are good, max if high ones are
    notes: str = ""  # what a reader of the card should know beside the scores


def find_recipe(name: str) -> Recipe:
    """The recipe of this name. Raises ValueError, with the nearest names, for another."""
    if name not in RECIPES:
        near = get_close_matches(name, RECIPES, n=2, cutoff=0.4)
        hint = f" Did you mean {' or '.join(near)}?" if near else ""
        raise ValueError(f"There is no training {name!r}.{hint} There are: {', '.join(RECIPES)}.")
    module, attribute = RECIPES[name].split(":")
    return getattr(import_module(module), attribute)
