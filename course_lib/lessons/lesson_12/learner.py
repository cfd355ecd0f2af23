"""Lesson 12: the learner's functions inside a Swin Transformer, its training, and what it makes of a few digits."""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial

from matplotlib.figure import Figure
from torch import Tensor

from course_lib.data.digits import CleanDigits, LabelledImages
from course_lib.layers.transformer import MultiHeadAttention
from course_lib.layers.windows import PatchMerging, WindowAttention, cyclic_shift
from course_lib.lessons.lesson_12 import figures, recipes
from course_lib.models.swin import Swin
from course_lib.training.loop import FitConfig, fit
from course_lib.training.progress import Progress
from course_lib.training.recipe import common
from course_lib.training.vision import classification_loss, predictions, seed_of_step

Function = Callable[..., Tensor]


def with_yours(model: Swin, in_windows: Function, mask: Function, index: Function, merging: Function) -> Swin:
    """The same model, whose windows are cut, masked, told their offsets and merged by these functions."""
    mask, index = lru_cache(mask), lru_cache(index)  # a learner's loops run once for each size, not in each step
    for module in model.modules():
        if isinstance(module, WindowAttention):
            module.forward = partial(_attend, module, in_windows, mask, index)
        if isinstance(module, PatchMerging):
            module.forward = partial(_merge, module, merging)
    return model


def _attend(attn: WindowAttention, in_windows: Function, mask: Function, index: Function, x: Tensor) -> Tensor:
    height, width = x.shape[1:3]
    size = min(height, width, attn.window_size)
    shift = attn.shift if min(height, width) > size else 0
    bias = attn.position_bias(size)
    if size == attn.window_size:
        bias = attn.bias_table[index(size)].permute(2, 0, 1)[None]
    if shift:
        hidden = ~mask(height, width, size, shift)[:, None]
        bias = bias.masked_fill(hidden, -math.inf).repeat(len(x), 1, 1, 1)
    work = partial(MultiHeadAttention.forward, attn, score_bias=bias)
    return cyclic_shift(in_windows(cyclic_shift(x, shift), size, work), -shift)


def _merge(module: PatchMerging, merging: Function, x: Tensor) -> Tensor:
    return module.proj(module.norm(merging(x)))


def settings(steps: int) -> recipes.SwinSettings:
    """Those of the checkpoint `swin`, but for few steps: without stochastic depth, which needs many, and faster."""
    return replace(recipes.SETTINGS, steps=steps, drop_path=0.0, learning_rate=3e-3, ema=0.98)


def fresh(steps: int, **parts: Function) -> Swin:
    """An untrained Swin on the learner's functions."""
    return with_yours(recipes.build(settings(steps)), **parts)


def learn(model: Swin, steps: int, display: Progress | None = None) -> Swin:
    """Trains on digits that are drawn afresh in each step."""
    chosen, source = settings(steps), CleanDigits(split="train", size=recipes.SETTINGS.size)
    fit(
        model,
        lambda step: source.batch(chosen.batch_size, seed_of_step(chosen.seed, step)),
        classification_loss,
        config=FitConfig(**common(chosen, FitConfig), warmup=min(100, steps // 10)),
        progress=display,
    )
    return model.eval()


def test_digits(count: int = 1000) -> LabelledImages:
    """Clean digits that no network has seen."""
    return CleanDigits(split="test", size=recipes.SETTINGS.size).batch(count, 0)


def showing(pictures: LabelledImages, *, count: int = 6) -> Callable[[Swin], Figure]:
    """An example for `page.watch`: what a network takes the first of these pictures for, and how sure it is."""
    few = LabelledImages(pictures.pixels[:count], pictures.labels[:count])

    def example(model: Swin) -> Figure:
        probs = predictions(model, few.pixels).softmax(dim=-1)
        return figures.guesses(few.pixels[:, 0], probs, few.labels)

    return example
