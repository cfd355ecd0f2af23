"""Lesson 16: icons and their names as tensors for the learner's CLIP, and Flamingos whose gates are set by hand."""

from collections.abc import Callable
from copy import deepcopy
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from matplotlib.figure import Figure
from torch import Tensor, nn

from course_lib.data.icons import icon_names, icons
from course_lib.lessons.lesson_16 import words_figures as figures
from course_lib.lessons.lesson_16.recipes import icon_words
from course_lib.lessons.lesson_16.recipes import pictures_and_words as captioning
from course_lib.models.clip import CLIP
from course_lib.models.flamingo import Flamingo

tokenizer, sentences = captioning.tokenizer, captioning.sentences  # of the captions
PIECES = icon_words.PIECES  # tokens of the vocabulary; 0 is padding
MATRIX = ("banana", "cat face", "rocket", "snowman", "umbrella", "pizza", "octopus", "sunflower")
Towers = Callable[[Float[Tensor, "B C"], Int[Tensor, "B T"]], tuple[Float[Tensor, "B J"], Float[Tensor, "B J"]]]


class Pairs(NamedTuple):
    """Drawings as features of the frozen image encoder, and what they are called."""

    images: Float[Tensor, "N C"]
    tokens: Int[Tensor, "N T"]  # word pieces of the names, 0 behind them
    numbers: Int[Tensor, " N"]  # of the names


def pairs(split: str = "new designer") -> Pairs:
    """All drawings of a split."""
    images, numbers = icon_words.drawings(split)
    return Pairs(images, icon_words.names().tokens[numbers], numbers)


def random_pairs(count: int) -> tuple[Float[Tensor, "B C"], Int[Tensor, "B T"]]:
    """Random views of training drawings, no two of which have the same name, and these names."""
    views, numbers = icon_words.training_views(), icon_words.drawings("train")[1]
    rows = icon_words.one_of_each(numbers)[:count]
    return views[torch.randint(len(views), (len(rows),)), rows], icon_words.names().tokens[numbers[rows]]


@torch.no_grad()
def recall(model: Towers, split: str = "new designer") -> dict[int, float]:
    """For k of 1 and 5, how often the correct name is among the k with the highest cosine, of all names of the split.

    `model(images, tokens)` gives both embeddings, as the learner's does.
    """
    images, _, numbers = pairs(split)
    among = numbers.unique() if split == "new names" else icon_words.known_names()
    embedded = model(images, icon_words.names().tokens[among])
    cosines = F.normalize(embedded[0], dim=-1) @ F.normalize(embedded[1], dim=-1).T
    return icon_words.recalls(cosines, torch.searchsorted(among, numbers))


def towers_of(model: CLIP) -> Towers:
    """The shipped model, called as the learner's is."""

    def embed(images: Float[Tensor, "B C"], tokens: Int[Tensor, "M T"]) -> tuple[Tensor, Tensor]:
        return model.embed_images(images), model.embed_texts(tokens, (tokens != 0).sum(dim=1))

    return embed


def matrix_rows() -> tuple[Float[Tensor, "N 3 H W"], Pairs]:
    """Eight drawings of a designer that training lacks, as pixels and as the model gets them."""
    drawings, all_pairs = icons("new designer"), pairs()
    names = icon_names()
    rows = torch.tensor([all_pairs.numbers.tolist().index(names.index(name)) for name in MATRIX])
    return drawings.on(1.0)[rows], Pairs(*(each[rows] for each in all_pairs))


def showing() -> Callable[[nn.Module], Figure]:
    """An example for `page.watch`: the cosines of eight unseen drawings with their names."""
    pixels, some = matrix_rows()

    @torch.no_grad()
    def example(model: Towers) -> Figure:
        return figures.matrices(pixels, MATRIX, {"cosine": cosines_of(model, some)})

    return example


@torch.no_grad()
def cosines_of(model: Towers, some: Pairs) -> Float[Tensor, "N N"]:
    """The cosine of each drawing with each name."""
    images, texts = model(some.images, some.tokens)
    return F.normalize(images, dim=-1) @ F.normalize(texts, dim=-1).T


def scenes_to_caption(count: int) -> tuple[Float[Tensor, "B 1 N C"], list[str]]:
    """Features of unseen scenes, one image for each text, and their captions."""
    some = captioning.examples("test").take(torch.arange(count))
    return captioning.with_boxes(some.fields)[:, None], captioning.sentences(some.words)


@torch.no_grad()
def opened(flamingo: Flamingo, factor: float) -> Flamingo:
    """The same model with all alphas times a factor; at 0 its gates are closed."""
    other = deepcopy(flamingo)
    for layer in other.gated:
        layer.alpha_attn.mul_(factor)
        layer.alpha_ffn.mul_(factor)
    return other
