"""Lesson 11: the learner's functions inside a ViT, its training, and what it makes of a few pictures."""

from collections.abc import Callable
from dataclasses import replace

import torch
import torch.nn.functional as F
from jaxtyping import Float
from matplotlib.figure import Figure
from torch import Tensor, nn

from course_lib.data.digits import CleanDigits, LabelledImages
from course_lib.lessons.lesson_11 import figures, recipes
from course_lib.models.mixer import Mixer
from course_lib.models.vit import ViT
from course_lib.training.loop import FitConfig, fit
from course_lib.training.progress import Progress
from course_lib.training.recipe import common
from course_lib.training.vision import accuracy, classification_loss, predictions

STEPS = 300  # before the learner's eyes


def with_learner_block(model: ViT, cut: Callable[..., Tensor], join: Callable[..., Tensor]) -> ViT:
    """The same model, whose tokens come from `cut(image, patch_size)` and `join(patches, cls_token, pos_embed)`."""
    proj = model.patch_embed.proj

    def features(image: Tensor) -> Tensor:
        matrix = proj.weight.permute(0, 2, 3, 1).flatten(1)  # a patch counts row, column, channel
        patches = F.linear(cut(image, model.config.patch_size), matrix, proj.bias)
        x = join(patches, model.cls_token, model.pos_embed)
        for block in model.blocks:
            x = block(x)
        return model.norm(x)

    model.features = features
    return model


def mixed(model: Mixer, mix: Callable[..., Tensor]) -> Mixer:
    """The same model, each of whose blocks goes `mix(x, norm1, token_mlp, norm2, channel_mlp)`."""
    for block in model.blocks:
        block.forward = lambda x, b=block: mix(x, b.norm1, b.token_mlp, b.norm2, b.channel_mlp)
    return model


def settings(name: str) -> recipes.ImageSettings:
    """Of the ViT or the Mixer, as the checkpoint `vit_digits` has them, for fewer steps."""
    return replace(recipes.DIGITS[name], steps=STEPS)


def fresh(name: str, cut: Callable[..., Tensor], join: Callable[..., Tensor]) -> nn.Module:
    """A network that has learned nothing; a ViT goes `through` the learner's functions."""
    model = recipes.build(settings(name))
    return with_learner_block(model, cut, join) if name == "ViT" else model


def learn(model: nn.Module, name: str, display: Progress | None = None) -> nn.Module:
    """Trains as the recipe does, without validation; the model keeps its last weights, averaged."""
    chosen = settings(name)
    config = FitConfig(**common(chosen, FitConfig), warmup=chosen.steps // 10, weight_decay=0.05, ema=0.995)
    fit(model, recipes.batches(chosen), classification_loss, config=config, progress=display)
    return model


def test_digits(count: int = 1000, size: int = 28) -> LabelledImages:
    """Clean digits that no network has seen."""
    return CleanDigits(split="test", size=size).batch(count, 0)


def showing(pictures: LabelledImages, count: int = 8) -> Callable[[nn.Module], Figure]:
    """An example for `page.watch`: what a network takes the first pictures for, and how sure it is."""
    pixels, labels = (part[:count] for part in pictures)

    def example(model: nn.Module) -> Figure:
        return figures.guesses(pixels[:, 0], predictions(model, pixels).softmax(dim=-1), labels)

    return example


def at_size(model: ViT, size: int, fit: Callable[..., Tensor], *, count: int = 500) -> float:
    """Share of digits of this size named right by the same weights, with the positions `fit(table, grid, new_grid)`."""
    other = ViT(replace(model.config, image_size=size))
    positions = fit(model.pos_embed.detach(), model.config.grid, other.config.grid)
    other.load_state_dict(model.state_dict() | {"pos_embed": positions})
    return accuracy(other, *test_digits(count, size))


def drawn_anew(
    table: Float[Tensor, "1 T D"], grid: tuple[int, int], new_grid: tuple[int, int]
) -> Float[Tensor, "1 T_new D"]:
    """Positions that know nothing, as large as the learned ones; what stands before them stays."""
    first = table[:, : table.shape[1] - grid[0] * grid[1]]
    shape = 1, new_grid[0] * new_grid[1], table.shape[2]
    return torch.cat([first, torch.randn(shape, generator=torch.Generator().manual_seed(0)) * table.std()], dim=1)
