"""Lesson 13: icons for the learner's MAE, what it makes of them, and a trained one in her class."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from matplotlib.figure import Figure
from torch import Tensor, nn

from course_lib.classroom.opening import copy_weights
from course_lib.data.icons import Icons, icons
from course_lib.functional.images import restore, standardise
from course_lib.lessons.lesson_11.icon_recipes import new_drawings
from course_lib.lessons.lesson_13 import looking
from course_lib.lessons.lesson_13.icon_recipes import few_labels, random_views
from course_lib.lessons.lesson_13.models import MODELS
from course_lib.models.mae import MAE
from course_lib.viz.marks import image
from course_lib.viz.style import figure

__all__ = ["icons", "new_drawings", "random_views"]
GREY = 0.75  # of what is hidden


def labelled(per_category: int, draw: int = 0) -> Icons:
    """So many labelled training drawings of each category."""
    return few_labels(per_category, draw, "validation").given


def percent(logits: Float[Tensor, "B classes"], drawings: Icons) -> float:
    """The accuracy of these predictions, in percent."""
    return 100 * (logits.argmax(dim=1) == drawings.categories).float().mean().item()


def noise_for(drawings: Icons) -> Float[Tensor, "B N"]:
    """Noise for the patches of the drawings, the same each time."""
    count = (drawings.on(1.0).shape[-1] // looking.PATCH) ** 2
    return torch.rand(len(drawings.names), count, generator=torch.Generator().manual_seed(0))


def errors(model: nn.Module, drawings: Icons) -> dict[str, float]:
    """The error of the baselines and of a model (MSE of standardised pixels), on the same hidden patches."""
    return looking.errors({"your MAE": model.eval()}, drawings.on(1.0), noise_for(drawings))


def showing(count: int = 6) -> Callable[[nn.Module], Figure]:
    """An example for `page.watch`: some new drawings, their visible patches, and their reconstruction."""
    drawings = icons("validation").take(torch.arange(0, 40 * count, 40))
    pixels, noise = drawings.on(1.0), noise_for(drawings)

    def example(model: nn.Module) -> Figure:
        filled, masked = looking.reconstructions(model.eval(), pixels, noise)
        rows = pixels, torch.where(masked, GREY, pixels), filled.clamp(0, 1)
        fig, panels = figure(1.2 * count, 3.7, rows=3, columns=count, layout=None)
        fig.subplots_adjust(0.01, 0.01, 0.99, 0.99, wspace=0.08, hspace=0.08)
        for axes_of, images in zip(panels, rows, strict=True):
            for axes, one in zip(axes_of, images, strict=True):
                image(axes, one.permute(1, 2, 0))
        return fig

    return example


def trained(make: Callable[..., nn.Module], model: MAE) -> nn.Module:
    """The learner's class with the weights of a trained model."""
    shipped = MODELS["mae"]
    mine = make(**shipped.sizes(model)).eval()
    copy_weights(model, mine, shipped.names)
    return mine


def seen_and_painted(
    model: MAE, pixels: Float[Tensor, "B 1 H W"], noise: Float[Tensor, "B N"]
) -> tuple[Float[Tensor, "B H W"], Float[Tensor, "B H W"]]:
    """What the encoder sees of grey images, hidden patches in middle grey, and their reconstruction."""
    size, standardised = model.config.encoder.patch_size, standardise(pixels)
    masked = model.eval()(standardised, noise).masked
    hole = masked.unflatten(1, (pixels.shape[2] // size, -1)).repeat_interleave(size, 1).repeat_interleave(size, 2)
    filled = restore(model.reconstruct(standardised, noise))[:, 0].clamp(0, 1)
    return torch.where(hole, 0.5, pixels[:, 0]), filled
