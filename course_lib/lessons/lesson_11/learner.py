"""Lesson 11: icons and digits for the learner's ViT, and what it makes of them."""

from collections.abc import Callable
from dataclasses import replace

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from matplotlib.figure import Figure
from torch import Tensor, nn

from course_lib.data.digits import CleanDigits, LabelledImages
from course_lib.data.icons import CATEGORIES, Icons, icon_names, icons
from course_lib.lessons.lesson_11 import figures
from course_lib.lessons.lesson_11.icon_recipes import IconSettings, build, new_drawings, random_views
from course_lib.models.mixer import Mixer
from course_lib.models.vit import ViT
from course_lib.training.vision import accuracy, predictions

__all__ = ["icons", "new_drawings", "random_views"]
CATEGORY_NAMES = tuple(CATEGORIES)


def percent(model: nn.Module, drawings: Icons) -> float:
    """The accuracy on drawings on white, in percent."""
    return 100 * accuracy(model, drawings.on(1.0), drawings.categories)


def majority(drawings: Icons) -> float:
    """The accuracy of the answer that is the most frequent category of the training drawings, in percent."""
    commonest = icons("train").categories.bincount().argmax()
    return 100 * (drawings.categories == commonest).float().mean().item()


def probabilities(model: nn.Module, drawings: Icons) -> Float[Tensor, "B classes"]:
    """Of the categories, for drawings on white."""
    return predictions(model, drawings.on(1.0)).softmax(dim=-1)


def rows_of(drawings: Icons, probs: Tensor, chosen: Int[Tensor, " K"]) -> tuple[Tensor, Tensor, list[int]]:
    """Some drawings as `figures.seen` takes them."""
    return drawings.on(1.0)[chosen].permute(0, 2, 3, 1), probs[chosen], drawings.categories[chosen].tolist()


def reads(model: nn.Module, count: int = 8) -> Figure:
    """An example for `page.watch`: what a network takes some new drawings for."""
    drawings = icons("validation").take(torch.arange(0, 40 * count, 40))
    probs = probabilities(model, drawings)
    return figures.guesses(*rows_of(drawings, probs, torch.arange(count)), CATEGORY_NAMES)


def sorts(model: nn.Module, drawings: Icons, count: int = 8) -> list[str]:
    """What some drawings show, and the category with the largest probability."""
    some = drawings.take(torch.arange(0, len(drawings.names), len(drawings.names) // count)[:count])
    probs, best = probabilities(model, some).max(dim=-1)
    return [
        f"{icon_names()[thing]}: {CATEGORY_NAMES[category]}, {100 * probability:.0f} %"
        for thing, category, probability in zip(some.names.tolist(), best.tolist(), probs.tolist(), strict=True)
    ]


def agrees(mix: Callable[..., Tensor]) -> bool:
    """Whether a fresh Mixer computes the same with these blocks."""
    torch.manual_seed(0)
    model, images = build(IconSettings(net="mixer")).eval(), torch.randn(2, 3, 32, 32)
    nn.init.normal_(model.head.weight)
    with torch.no_grad():
        ours = model(images)
        return torch.allclose(mixed(model, mix)(images), ours, atol=1e-4)


def mixed(model: Mixer, mix: Callable[..., Tensor]) -> Mixer:
    """The same model, each of whose blocks goes `mix(x, norm1, token_mlp, norm2, channel_mlp)`."""
    for block in model.blocks:
        block.forward = lambda x, b=block: mix(x, b.norm1, b.token_mlp, b.norm2, b.channel_mlp)
    return model


def test_digits(count: int = 1000, size: int = 28) -> LabelledImages:
    """Clean digits that no network has seen."""
    return CleanDigits(split="test", size=size).batch(count, 0)


def at_size(model: ViT, size: int, fit: Callable[..., Tensor], *, count: int = 500) -> float:
    """The accuracy on digits of this size with the same weights, and the positions `fit(table, grid, new_grid)`."""
    other = ViT(replace(model.config, image_size=size))
    positions = fit(model.pos_embed.detach(), model.config.grid, other.config.grid)
    other.load_state_dict(model.state_dict() | {"pos_embed": positions})
    return accuracy(other, *test_digits(count, size))


def drawn_anew(
    table: Float[Tensor, "1 T D"], grid: tuple[int, int], new_grid: tuple[int, int]
) -> Float[Tensor, "1 T_new D"]:
    """Random positions, as large as the learned ones; the class token's stays."""
    first = table[:, : table.shape[1] - grid[0] * grid[1]]
    shape = 1, new_grid[0] * new_grid[1], table.shape[2]
    return torch.cat([first, torch.randn(shape, generator=torch.Generator().manual_seed(0)) * table.std()], dim=1)


def as_a_list(
    table: Float[Tensor, "1 T D"], grid: tuple[int, int], new_grid: tuple[int, int]
) -> Float[Tensor, "1 T_new D"]:
    """Positions interpolated along the list of the patches, as if it had no rows; the class token's stays."""
    first, rest = table[:, : table.shape[1] - grid[0] * grid[1]], table[:, -grid[0] * grid[1] :]
    new = F.interpolate(rest.mT, size=new_grid[0] * new_grid[1], mode="linear", align_corners=False)
    return torch.cat([first, new.mT], dim=1)
