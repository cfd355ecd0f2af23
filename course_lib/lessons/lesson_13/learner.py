"""Lesson 13: the learner's functions inside an MAE, its pre-training, and pictures for the page."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import torch
from jaxtyping import Float
from matplotlib.figure import Figure
from torch import Tensor

from course_lib.functional.images import restore, standardise
from course_lib.layers.patches import RandomMask, patchify, take_patches
from course_lib.lessons.lesson_13 import figures, recipes
from course_lib.models.mae import MAE, VisibleFeatures
from course_lib.training.loop import FitConfig, fit
from course_lib.training.progress import Progress
from course_lib.training.recipe import common

STEPS = 600  # before the learner's eyes


def with_learner_parts(model: MAE, masking: Callable[..., tuple], restoring: Callable[..., Tensor]) -> MAE:
    """The same model, whose patches are hidden by `masking(noise, ratio)` and put back by `restoring`.

    `restoring(visible, mask_token, restore)` gets the order that `masking` returned. Only for a model without a class
    token.
    """
    encoder, decoder = model.encoder, model.decoder

    def see(image: Tensor, noise: Tensor) -> VisibleFeatures:
        mask = RandomMask(*masking(noise, encoder.mask_ratio))
        return VisibleFeatures(encoder.encode(take_patches(encoder.embed(image), mask.keep)), mask)

    def paint(visible: VisibleFeatures, grid: tuple[int, int]) -> Tensor:
        known = decoder.embed(visible.features)
        x = restoring(known, decoder.mask_token, visible.mask.restore) + decoder.pos_embed
        for block in decoder.blocks:
            x = block(x)
        return decoder.pred(decoder.norm(x))

    encoder.see, decoder.forward = see, paint
    return model


def fresh(masking: Callable[..., tuple], restoring: Callable[..., Tensor], normalised: bool = False) -> MAE:
    """A model like `mae` that has learned nothing, on the learner's functions."""
    return with_learner_parts(recipes.build(replace(recipes.SETTINGS, normalised=normalised)), masking, restoring)


def painting_loss(loss: Callable[..., Tensor], model: MAE, batch: recipes.HiddenBatch) -> Float[Tensor, ""]:
    """`loss(painted, target, masked)` of a batch."""
    image = standardise(batch.pixels)
    painted, masked = model(image, batch.noise)
    return loss(painted, model.target(image), masked)


def learn(model: MAE, loss: Callable[..., Tensor], display: Progress | None = None) -> MAE:
    """Trains as the recipe of `mae` does, for fewer steps and without validation."""
    settings = replace(recipes.SETTINGS, steps=STEPS)
    config = FitConfig(**common(settings, FitConfig), warmup=settings.steps // 10, betas=(0.9, 0.95), weight_decay=0.05)
    fit(
        model,
        lambda step: recipes.hidden_batch(settings, "train", settings.batch_size, seed=step + 1),
        partial(painting_loss, loss),
        config=config,
        progress=display,
    )
    return model


def held_out(count: int = 600) -> recipes.HiddenBatch:
    """Digits that no network has seen, and which of their patches are hidden."""
    return recipes.hidden_batch(recipes.SETTINGS, "test", count, seed=0)


@torch.no_grad()
def error(model: MAE, batch: recipes.HiddenBatch) -> float:
    """Mean squared error of the hidden patches."""
    return float(model.eval().loss(standardise(batch.pixels), batch.noise))


def seen_and_painted(
    model: MAE, pixels: Float[Tensor, "B 1 H W"], noise: Float[Tensor, "B N"]
) -> tuple[Float[Tensor, "B H W"], Float[Tensor, "B H W"]]:
    """What the encoder sees, hidden patches in middle grey, and the picture with its hidden patches painted."""
    size, image = model.config.encoder.patch_size, standardise(pixels)
    masked = model.eval()(image, noise).masked
    hole = masked.unflatten(1, (pixels.shape[2] // size, -1)).repeat_interleave(size, 1).repeat_interleave(size, 2)
    painted = restore(model.reconstruct(image, noise))[:, 0].clamp(0, 1)
    return torch.where(hole, 0.5, pixels[:, 0]), painted


def showing(batch: recipes.HiddenBatch, count: int = 5) -> Callable[[MAE], Figure]:
    """An example for `page.watch`: the first pictures, what is seen of them, and what the model paints."""
    pixels, noise = batch.pixels[:count], batch.noise[:count]

    def example(model: MAE) -> Figure:
        with torch.no_grad():
            seen, painted = seen_and_painted(model, pixels, noise)
        return figures.repairs(pixels[:, 0], seen, painted, ("the picture", "what it sees", "what it paints"))

    return example


def patches_of(pixels: Float[Tensor, "B 1 H W"], size: int) -> Float[Tensor, "B N P"]:
    """Standardised patches."""
    return patchify(standardise(pixels), size)
