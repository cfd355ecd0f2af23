"""Lesson 13, Masked autoencoders: what its exercises are tried with; their text and their mistakes are in tasks.md."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn

from course_lib.functional.positions import sinusoidal_positions_2d
from course_lib.layers.patches import patchify
from course_lib.lessons.lesson_11.tasks import TASKS as TASKS_11
from course_lib.tasks import Case, Check, Draw, Finding, TaskInput
from course_lib.tasks.core import Probe
from course_lib.tasks.findings import CheckFailed
from course_lib.tasks.markdown import read_tasks

BOOLEAN = "the mask is Boolean"
STEP, START = "noise and weights of a step", "a trainable copy, and a head of zeros"
REACHED = "gradients reach the encoder and the mask token"

# What a learner's classes take if she has no function or class of her own ------------------------------------------


def positions_2d(side: int, dim: int) -> Tensor:
    """The fixed positions of a square grid of patches."""
    return sinusoidal_positions_2d(side, side, dim)


def function(name: str) -> Callable:
    """The function of a solution."""
    return lambda *given: TASKS[name].reference(*given)


def part(name: str) -> Callable[..., nn.Module]:
    """The class of a solution."""
    return lambda *sizes: TASKS[name].module(*sizes)


PARTS = {
    "copy": copy,
    "positions_2d": positions_2d,
    "Block": lambda *sizes: TASKS_11["block"].module(*sizes),
    "Encoder": part("encoder"),
} | {name: function(name) for name in ("random_mask", "visible", "restore_order", "hidden_loss")}

# Inputs -------------------------------------------------------------------------------------------------------------


def noise_and_ratio(draw: Draw) -> tuple[Tensor, float]:
    """A number for each patch, and a ratio that leaves no whole number of them."""
    B, rows, columns = draw.sizes(3, 3, 5)
    keep = draw.integers(2, rows * columns // 2 - 1, 1).item()
    return draw(B, rows * columns), 1 - (keep + 0.6) / (rows * columns)


def tokens_and_indices(draw: Draw) -> tuple[Tensor, Tensor]:
    """Tokens, and some indices of them, in each image others."""
    B, K, D, more = draw.sizes(4, 2, 6)
    return draw(B, K + more, D), draw(B, K + more).argsort(dim=1)[:, :K]


def features_and_order(draw: Draw, *, hidden: int | None = None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Features of visible patches, the mask token, a permutation for each image, and positions."""
    B, K, D, more = draw.sizes(4, 2, 6)
    N = K + (more if hidden is None else hidden)
    return draw(B, K, D), draw(1, 1, D), draw(B, N).argsort(dim=1), draw(1, N, D)


def prediction(draw: Draw, *, wild: float = 1.0) -> tuple[Tensor, Tensor, Tensor]:
    """Predicted patches, their target, and which were hidden; `wild` makes the visible ones' prediction large."""
    B, N, P = draw.sizes(3, 3, 7)
    masked = ~draw.mask(B, N)
    predicted = draw(B, N, P)
    return torch.where(masked[..., None], predicted, wild * predicted), draw(B, N, P), masked


def square_images(draw: Draw, *, some: bool) -> TaskInput:
    """Images, the sizes of an encoder of two blocks, and perhaps which patches are visible."""
    B, side, p, channels = draw.sizes(4, 2, 5)
    heads = draw.integers(2, 4, 1).item()
    images = 2 * draw(B, channels, side * p, side * p)
    keep = draw(B, side**2).argsort(dim=1)[:, : max(1, side**2 // 2)]
    return TaskInput((images, keep) if some else (images,), build=(side * p, p, channels, 4 * heads, 2, heads))


def images_and_noise(draw: Draw, *, channels: int | None = None) -> TaskInput:
    """Images, noise, and the sizes of an MAE of two blocks each."""
    B, side, p, C = draw.sizes(4, 2, 5)
    heads, kept = draw.integers(2, 4, 1).item(), draw.integers(1, side**2 // 2 + 1, 1).item()
    C, ratio = channels or C, 1 - (kept + 0.5) / side**2
    build = (side * p, p, C, 4 * heads, 2, heads, 8 * heads, 2, 2, ratio)
    return TaskInput((2 * draw(B, C, side * p, side * p), draw(B, side**2)), build=build)


class Linear(nn.Module):
    """A model for `pretrain_step`: a matrix maps the patches, whatever is hidden; it remembers all noise."""

    def __init__(self, draw: Draw, masked: Tensor, patch_size: int, numbers: int):
        super().__init__()
        self.weight = nn.Parameter(3 * draw(numbers, numbers))
        self.masked, self.patch_size, self.noise = masked, patch_size, []

    def forward(self, images: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Raises ValueError unless there is a number for each patch of each image."""
        if noise.shape != self.masked.shape:
            raise ValueError(f"noise has the shape {tuple(self.masked.shape)}, (B, N), got {tuple(noise.shape)}")
        self.noise.append(noise.clone())
        return patchify(images, self.patch_size) @ self.weight, self.masked


def a_model(draw: Draw, *, lr: float = 0.0) -> tuple[nn.Module, torch.optim.Optimizer, Tensor, Tensor]:
    """A model and its optimizer, images and a target."""
    B, rows, columns, C = draw.sizes(4, 3, 6)
    model = Linear(draw, ~draw.mask(B, rows * columns), 2, 4 * C)
    target = draw(B, rows * columns, 4 * C)
    return model, torch.optim.SGD(model.parameters(), lr=lr), draw(B, C, 2 * rows, 2 * columns), target


class Tokens(nn.Module):
    """An encoder of two layers that makes tokens of patches."""

    def __init__(self, channels: int, dim: int, patch_size: int):
        super().__init__()
        self.patch_embed = nn.Conv2d(channels, dim, patch_size, patch_size)
        self.mlp = nn.Linear(dim, dim)

    def forward(self, images: Tensor, keep: Tensor | None = None) -> Tensor:
        return self.mlp(self.patch_embed(images).flatten(2).transpose(1, 2).tanh())


def an_encoder(draw: Draw, channels: int, dim: int) -> nn.Module:
    """With drawn weights."""
    made = Tokens(channels, dim, 2)
    for weight in made.parameters():
        weight.data = draw(*weight.shape) / weight.shape[-1] ** 0.5
    return made


def labelled_images(draw: Draw) -> tuple[nn.Module, Tensor, Tensor, Tensor, int, int, float]:
    """An encoder, labelled images and new ones, and how a probe is trained.

    There are so many labelled images that a standard deviation over n is within the tolerance of one over n - 1.
    """
    B, side, C, D, K = draw.sizes(5, 2, 6)
    B += 400
    images, new = 2 * draw(B, C, 2 * side, 2 * side), 2 * draw(K + 1, C, 2 * side, 2 * side)
    return an_encoder(draw, C, D), images, draw.integers(0, K + 1, B), new, K + 1, 12, 0.5


def encoder_and_images(draw: Draw) -> TaskInput:
    """Images, an encoder, and the sizes of a classifier."""
    B, side, C, D, K = draw.sizes(5, 2, 6)
    return TaskInput((2 * draw(B, C, 2 * side, 2 * side),), build=(an_encoder(draw, C, D), D, K + 1))


def uniform_patches(draw: Draw) -> tuple[Tensor]:
    """Patches of equal numbers, and others that are nearly so."""
    B, N, P = draw.sizes(3, 3, 7)
    patches = 1e-3 * draw(B, N, P)
    patches[:, ::2] = 0.5
    return (patches,)


def sizes_and_ratio(draw: Draw, *, ratio: float | None = None) -> tuple[int, float, int, int, int]:
    """The sizes of an encoder, and a fraction of hidden patches."""
    rows, columns, width, depth, wider = draw.sizes(5, 3, 9)
    N = rows * columns
    drawn = 1 - (draw.integers(2, N // 2, 1).item() + 0.5) / N
    return N, drawn if ratio is None else ratio, 4 * width, depth, 4 * (width + wider)


def rectangles(draw: Draw) -> tuple[Tensor, int, int, int]:
    """Rectangles that overlap, the size of the grid, and how many patches are to be hidden."""
    height, width = draw.sizes(2, 8, 10)
    rows, columns = draw.integers(2, 5, 30), draw.integers(2, 4, 30)
    top = (torch.rand(30, generator=draw.generator) * (height - rows + 1)).long()
    left = (torch.rand(30, generator=draw.generator) * (width - columns + 1)).long()
    blocks = torch.stack([top, left, rows, columns], dim=1)
    blocks[1] = blocks[0]  # the same twice: a patch counts once
    return blocks, height, width, height * width // 2


# Checks of their own ------------------------------------------------------------------------------------------------


def is_boolean(probe: Probe) -> list[Finding]:
    """Whether the mask can select patches: zeros and ones are equal to it, and cannot."""
    masked = probe.call(*noise_and_ratio(Draw(0)))[2]
    fine = isinstance(masked, Tensor) and masked.dtype == torch.bool
    return [] if fine else [TASKS["random_mask"].finding("mask of numbers")]


def reached(probe: Probe) -> list[Finding]:
    """Whether all parts learn."""
    given = images_and_noise(Draw(0))
    made = probe.call(*given.build)
    predicted, masked = made(*given.args)
    if predicted.requires_grad:
        predicted[masked].square().sum().backward()
    lost = [name for name, value in made.named_parameters() if value.grad is None]
    return [TASKS["mae"].finding("gradients cut off")] if lost else []


class Step(NamedTuple):
    """What a step leaves: the weights, and the noise that the model was given."""

    weights: Tensor
    noise: list[Tensor]


def step_of(step: Callable[..., float], seed: int) -> Step:
    """Two steps with a model that has gradients already."""
    model, optimizer, images, target = a_model(Draw(seed), lr=0.5)
    model.weight.grad = torch.ones_like(model.weight)
    for _ in range(2):
        step(model, optimizer, images, target)
    return Step(model.weight.detach().clone(), model.noise)


def steps(probe: Probe) -> list[Finding]:
    """Whether the noise is new each time, and the weights are those of the solution."""
    task = TASKS["pretrain_step"]
    hers, right = step_of(probe.call, 1), step_of(task.reference.changed(), 1)
    first, second = (hers.noise * 2)[:2] if len(hers.noise) < 2 else (hers.noise[0], hers.noise[-1])
    if torch.equal(first, second) or (first == first[:, :1]).all():
        return [task.finding("the same noise in each step")]
    if torch.equal(first, first[:1].expand_as(first)):
        return [task.finding("one noise for all images")]
    if torch.allclose(hers.weights, right.weights, atol=1e-5):
        return []
    for mistake in task.mistakes:
        for way in mistake.ways:
            if torch.allclose(step_of(task.reference.changed(way), 1).weights, hers.weights, atol=1e-5):
                return [mistake.finding]
    return [
        Finding("other weights", "After two steps the weights are not what they should be.", "Compare with the text.")
    ]


def starts(probe: Probe) -> list[Finding]:
    """Whether the encoder is a copy that learns, and the head starts at zero."""
    encoder, said = an_encoder(Draw(0), 3, 8), TASKS["fine_tune"].finding
    made = probe.call(encoder, 8, 5)
    if not isinstance(getattr(made, "head", None), nn.Module) or not hasattr(made, "encoder"):
        raise CheckFailed(Finding("part missing", "`encoder` or `head` is missing.", "The names are in the text."))
    found = []
    if any(bool(one.detach().any()) for one in made.head.parameters()):
        found.append(said("head does not start at zero"))
    if {id(one) for one in encoder.parameters()} & {id(one) for one in made.parameters()}:
        found.append(said("not a copy"))
    nn.init.ones_(made.head.weight)
    made.zero_grad()
    result = made(Draw(1)(2, 3, 4, 4))
    if result.requires_grad:
        result.square().sum().backward()
    if any(one.grad is None for one in made.encoder.parameters()):
        found.append(said("frozen encoder"))
    return found


CASES = {
    "random_mask": (
        Case("the patches with the smallest noise stay, and the order can be restored", noise_and_ratio),
        Case("three quarters hidden", lambda draw: (noise_and_ratio(draw)[0], 0.75)),
        Case("a ratio of 0 hides nothing", lambda draw: (noise_and_ratio(draw)[0], 0.0)),
    ),
    "visible": (Case("the tokens of the visible patches, of each image its own", tokens_and_indices),),
    "restore_order": (
        Case("each patch gets its features or the mask token, and its position", features_and_order),
        Case("without hidden patches only the order changes", lambda draw: features_and_order(draw, hidden=0)),
    ),
    "hidden_loss": (
        Case("the mean squared error over all hidden patches", prediction),
        Case("the prediction of visible patches does not matter", lambda draw: prediction(draw, wild=100.0)),
    ),
    "encoder": (
        Case("all patches", lambda draw: square_images(draw, some=False), tolerance=1e-3),
        Case("only the visible patches", lambda draw: square_images(draw, some=True), tolerance=1e-3),
    ),
    "mae": (
        Case("predicted patches and mask", images_and_noise, tolerance=1e-3),
        Case("of grey images", lambda draw: images_and_noise(draw, channels=1), tolerance=1e-3),
    ),
    "pretrain_step": (Case("the loss of the hidden patches", a_model),),
    "normalised_target": (
        Case(
            "a patch of different numbers gets mean 0 and standard deviation 1",
            lambda draw: (2 + 3 * draw(*draw.sizes(3, 3, 7)),),
        ),
        Case("a patch of equal numbers becomes zeros", uniform_patches),
    ),
    "linear_probe": (Case("the logits of new images", labelled_images, tolerance=1e-2),),
    "fine_tune": (Case("the logits of images", encoder_and_images),),
    "encoder_cost": (
        Case("matrix products of the visible patches, in all blocks", sizes_and_ratio),
        Case("with nothing hidden the cost of a ViT", lambda draw: sizes_and_ratio(draw, ratio=0.0)),
    ),
    "block_mask": (Case("rectangles until enough is hidden", rectangles),),
}
TASKS = read_tasks(
    Path(__file__).with_name("tasks.md"),
    CASES,
    PARTS,
    random_mask={"checks": (Check(name=BOOLEAN, detects=("mask of numbers",), run=is_boolean),)},
    mae={"checks": (Check(name=REACHED, detects=("gradients cut off",), run=reached),)},
    pretrain_step={
        "checks": (
            Check(
                name=STEP,
                detects=(
                    "the same noise in each step",
                    "one noise for all images",
                    "gradients of the step before",
                    "no step",
                    "not clipped",
                ),
                run=steps,
            ),
        )
    },
    fine_tune={
        "checks": (
            Check(name=START, detects=("not a copy", "frozen encoder", "head does not start at zero"), run=starts),
        )
    },
)
