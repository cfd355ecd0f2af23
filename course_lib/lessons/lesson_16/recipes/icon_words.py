"""Images and names of icons in one space: a text encoder trained with CLIP's loss beside a frozen image encoder.

Radford et al., "Learning transferable visual models from natural language supervision", ICML 2021, arXiv 2103.00020;
the frozen image encoder is locked-image tuning: Zhai et al., CVPR 2022, arXiv 2111.07991.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from course_lib.data.checkpoints import load_trained
from course_lib.data.icons import icon_names, icons
from course_lib.lessons.lesson_01.recipes.icon_names import random_views
from course_lib.models.clip import CLIP, CLIPConfig
from course_lib.models.gpt import GPTConfig
from course_lib.text.wordpiece import WordPiece
from course_lib.training.recipe import Recipe, Scores, Trained, each, fit_by, rounded
from course_lib.training.seeding import seeded
from course_lib.training.vision import normalised, seed_of_step

PIECES = 600  # tokens of the vocabulary
VIEWS = 4  # random views of each training drawing, beside the drawing itself
RANKS = (1, 5)
SPLITS = ("new designer", "new names")  # beside the split itself


@dataclass(frozen=True, kw_only=True)
class ContrastiveSettings:
    """A text encoder and two projections, and their training."""

    dim: int = 64
    depth: int = 2
    num_heads: int = 4
    joint_dim: int = 64
    dropout: float = 0.1
    steps: int = 500
    batch_size: int = 128  # pairs, of which no two have the same name
    learning_rate: float = 3e-3
    weight_decay: float = 0.1
    seed: int = 0


class Texts(NamedTuple):
    """Texts as tokens, each with an end token, then padding."""

    tokens: Int[Tensor, "N T"]
    lengths: Int[Tensor, " N"]

    def take(self, rows: Int[Tensor, " K"]) -> "Texts":
        return Texts(*(each[rows] for each in self))


@cache
def known_names() -> Int[Tensor, " K"]:
    """The numbers of the names that training drawings have, in rising order."""
    return icons("train").names.unique()


@cache
def tokenizer() -> WordPiece:
    """Word pieces of the known names."""
    return WordPiece.train([icon_names()[number] for number in known_names().tolist()], PIECES)


def encoded(texts: Sequence[str]) -> Texts:
    """Texts as pieces of words, and an end token."""
    tokens, valid = tokenizer().encode_batch(texts, start=False, end=True)
    return Texts(tokens, valid.sum(dim=1))


@cache
def names() -> Texts:
    """All names of icons, in the order of their numbers."""
    return encoded(icon_names())


@torch.no_grad()
def image_features(pixels: Float[Tensor, "B 3 H W"]) -> Float[Tensor, "B C"]:
    """What the frozen ResNet of lesson 01 makes of images from 0 to 1: the mean of its last feature map."""
    encoder = load_trained("icon_names").model
    features = torch.cat([encoder.features(normalised(encoder, part)) for part in pixels.split(250)])
    return F.layer_norm(features, features.shape[1:])


@cache
def drawings(split: str) -> tuple[Float[Tensor, "N C"], Int[Tensor, " N"]]:
    """The features of a split's drawings on white, and the numbers of their names."""
    some = icons(split)
    return image_features(some.on(1.0)), some.names


@cache
def training_views() -> Float[Tensor, "V N C"]:
    """The features of the training drawings, first on white, then of random views of them."""
    some, random = icons("train"), torch.Generator().manual_seed(0)
    views = [image_features(random_views(some, random)) for _ in range(VIEWS)]
    return torch.stack([drawings("train")[0], *views])


def build(settings: ContrastiveSettings) -> CLIP:
    """A fresh model; its first weights depend on the seed alone."""
    text = GPTConfig(
        vocab_size=len(tokenizer()),
        context_length=names().tokens.shape[1],
        head=None,
        **{name: getattr(settings, name) for name in ("dim", "depth", "num_heads", "dropout")},
    )
    dim = drawings("validation")[0].shape[1]
    with seeded(settings.seed):
        return CLIP(CLIPConfig(text=text, image_dim=dim, joint_dim=settings.joint_dim))


def pairs_at(settings: ContrastiveSettings) -> Callable[[int], tuple[Float[Tensor, "B C"], Texts]]:
    """`batch_at(step)`: features of drawings and their names; no name comes twice in a batch."""
    views, numbers = training_views(), drawings("train")[1]

    def batch_at(step: int) -> tuple[Float[Tensor, "B C"], Texts]:
        random = torch.Generator().manual_seed(seed_of_step(settings.seed, step))
        rows = one_of_each(numbers, random)[: settings.batch_size]
        view = torch.randint(len(views), (len(rows),), generator=random)
        return views[view, rows], names().take(numbers[rows])

    return batch_at


def one_of_each(numbers: Int[Tensor, " N"], random: torch.Generator | None = None) -> Int[Tensor, " K"]:
    """A random drawing of each name, in random order."""
    order = torch.randperm(len(numbers), generator=random)
    chosen = torch.full((int(numbers.max()) + 1,), -1)
    chosen[numbers[order]] = order
    chosen = chosen[chosen >= 0]
    return chosen[torch.randperm(len(chosen), generator=random)]


def contrastive_loss(model: CLIP, batch: tuple[Float[Tensor, "B C"], Texts]) -> Float[Tensor, ""]:
    """The mean cross-entropy of "which text?" and "which image?", in nats: figure 3 of Radford et al."""
    features, texts = batch
    logits = model(features, *texts)
    right = torch.arange(len(logits))
    return (F.cross_entropy(logits, right) + F.cross_entropy(logits.T, right)) / 2


def train(settings: ContrastiveSettings, *, checkpoint: Path | None = None) -> Trained:
    """Learns from drawings and their names; the weights are rounded to 16 bits."""
    trained = fit_by(
        settings,
        build(settings),
        pairs_at(settings),
        contrastive_loss,
        warmup=settings.steps // 10,
        checkpoint=checkpoint,
        extra={"tokenizer": tokenizer().state_dict()},
    )
    rounded(trained.model)
    return trained


def recalls(cosines: Float[Tensor, "N M"], right: Int[Tensor, " N"]) -> dict[int, float]:
    """For each of RANKS, the fraction of rows in which the right column is among so many with the highest cosine."""
    rank = (cosines > cosines.gather(1, right[:, None])).sum(dim=1)
    return {k: (rank < k).float().mean().item() for k in RANKS}


@torch.no_grad()
def scores_on(model: CLIP, split: str) -> Scores:
    """Names found for drawings, and drawings found for names: among all names of the split.

    A search for a name succeeds at k if one of the k drawings with the highest cosine has this name.
    """
    features, numbers = drawings(split)
    among = numbers.unique() if split == "new names" else known_names()
    cosines = model.embed_images(features) @ model.embed_texts(*names().take(among)).T
    found = {f"recall@{k} of names": value for k, value in recalls(cosines, torch.searchsorted(among, numbers)).items()}
    best = numbers[cosines.topk(max(RANKS), dim=0).indices]  # (k, names)
    drawn = torch.isin(among, numbers)
    for k in RANKS:
        hits = (best[:k] == among).any(dim=0)[drawn]
        found[f"recall@{k} of drawings"] = hits.float().mean().item()
    return found


def score(trained: Trained, split: str) -> Scores:
    """The recall on a split; on the test also for a designer and for names that training lacks."""
    found = scores_on(trained.model, split)
    if split == "test":
        for other in SPLITS:
            found |= {f"{name}, {other}": value for name, value in scores_on(trained.model, other).items()}
    return found


RECIPES = {
    "icon_clip": Recipe(
        title="CLIP of icons and their names, on a frozen image encoder",
        lesson="16",
        data="training drawings of course_lib.data.icons on white, and four random views of each, as features of the "
        "shipped `icon_names`, frozen; their names as pieces of words. Test: other drawings of known things, those of "
        "a designer of whom nothing is in the training, and 100 things with names that are not in the training",
        minutes=2,
        variants={"": ContrastiveSettings()},
        train=train,
        scores=each(score),
        chosen_by="recall@1 of names",
        mode="max",
    )
}
