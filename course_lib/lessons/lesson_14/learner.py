"""Lesson 14: scenes, drawings and real slices for the learner's networks, and what is shown while they learn."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from matplotlib.figure import Figure
from torch import Tensor, nn

from course_lib.classroom.output import say
from course_lib.data.fetching import find_set, is_here
from course_lib.data.icons import CATEGORIES, Icons, icons
from course_lib.data.real import isbi2012
from course_lib.functional.images import standardise
from course_lib.functional.segmentation import mean_iou
from course_lib.lessons.lesson_14 import figures, icon_recipes
from course_lib.lessons.lesson_14.diffusion_recipes import SCHEDULE, condition, scaled

__all__ = ["SCHEDULE", "condition"]
TILE, HELD_OUT = 128, 5  # pixels a side of a slice's tiles; slices that nothing is learned from


def scenes(split: str, count: int, *, seed: int = 0) -> tuple[Float[Tensor, "B 3 H W"], Int[Tensor, "B H W"]]:
    """Icons in photographs, standardised, and the class of each pixel: 0 is background."""
    batch = icon_recipes.drawn(icon_recipes.scenes(split), count, seed)
    return standardise(batch.pixels), batch.semantic


def showing(count: int = 2) -> Callable[[nn.Module], Figure]:
    """An example for `page.watch`: new scenes, the predicted probability of an icon, and the label."""
    batch = icon_recipes.drawn(icon_recipes.scenes("validation"), count, 1)

    @torch.no_grad()
    def example(model: nn.Module) -> Figure:
        probs = model.eval()(standardise(batch.pixels)).softmax(dim=1)[:, 1]
        model.train()
        return figures.growing(batch.pixels, probs, batch.semantic > 0)

    return example


def new_drawings(count: int) -> Float[Tensor, "B 3 H W"]:
    """Drawings of the test, from -1 to 1."""
    return scaled(spread(icons("test"), count))


def known_drawings() -> Float[Tensor, "B 3 H W"]:
    """All training drawings, from -1 to 1."""
    return scaled(icons("train"))


def random_drawings(count: int) -> Float[Tensor, "B 3 H W"]:
    """Some training drawings, from -1 to 1."""
    drawings = icons("train")
    return scaled(drawings.take(torch.randint(len(drawings.names), (count,))))


def random_faces(count: int) -> tuple[Float[Tensor, "B 3 h w"], Int[Tensor, " B"]]:
    """Some training drawings of faces, from -1 to 1 and at half the resolution, and their category."""
    drawings = icons("train")
    faces = (drawings.categories == list(CATEGORIES).index("faces")).nonzero()[:, 0]
    some = drawings.take(faces[torch.randint(len(faces), (count,))])
    return F.avg_pool2d(scaled(some), 2), some.categories


def spread(drawings: Icons, count: int) -> Icons:
    """So many of the drawings, evenly spaced in their order."""
    return drawings.take(torch.arange(count) * len(drawings.names) // count)


def membranes(
    make: Callable[[], nn.Module],
    augment: Callable[..., tuple[Tensor, Tensor]],
    loss: Callable[..., Tensor],
    *,
    steps: int = 300,
) -> None:
    """Trains a network on the real slices of U-Net's paper, if they were fetched, and says how well it segments."""
    if not is_here("isbi2012"):
        title = find_set("isbi2012").title
        say(f"The set is not here: {title}. In a terminal, `course data fetch isbi2012` fetches it.")
        return
    slices = isbi2012()
    pixels, labels = standardise(slices.pixels), slices.membranes.long()
    torch.manual_seed(0)
    model = make()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    for _ in range(steps):
        some = torch.randint(len(pixels) - HELD_OUT, (4,))
        corners = torch.randint(pixels.shape[-1] - TILE + 1, (4, 2)).tolist()
        cut = [(..., slice(top, top + TILE), slice(left, left + TILE)) for top, left in corners]
        images = torch.stack([pixels[one][at] for one, at in zip(some, cut, strict=True)])
        wanted = torch.stack([labels[one][at] for one, at in zip(some, cut, strict=True)])
        images, wanted = augment(images, wanted, torch.rand(4) < 0.5, torch.randint(-16, 17, (4, 2)), 255)
        error = loss(model(images), wanted, 255)
        optimizer.zero_grad()
        error.backward()
        optimizer.step()
    with torch.no_grad():
        predicted = torch.cat([model.eval()(one[None]).argmax(dim=1) for one in pixels[-HELD_OUT:]])
    reached = mean_iou(predicted, labels[-HELD_OUT:], 2)
    say(f"Mean IoU of cells and membranes on {HELD_OUT} slices that were held out: {reached:.2f}.")
