"""Lesson 17: the learner's functions and classes inside small models, and what is shown while these learn."""

from collections.abc import Callable
from copy import deepcopy

import torch
from jaxtyping import Float, Int
from matplotlib.figure import Figure
from torch import Tensor, nn

from course_lib.functional.boltzmann import clamped_chain
from course_lib.functional.experts import expert_load, load_balance_loss
from course_lib.layers.experts import record_routers, route
from course_lib.layers.transformer import normal_weights
from course_lib.lessons.lesson_17 import figures
from course_lib.lessons.lesson_17.recipes import boltzmann
from course_lib.lessons.lesson_17.recipes.boltzmann import CLASSES, PIXELS, drawn, with_labels
from course_lib.lessons.lesson_17.recipes.efficient import attend_by
from course_lib.models.gpt import GPT, GPTConfig
from course_lib.training.language_models import nats_per_token, tokenized_prose
from course_lib.training.seeding import seeded

__all__ = ["drawn", "record_routers", "with_labels"]
CHECKED = 10_000  # characters of the validation text

# --------------------------------------------------------------------------------------------- attention


def by_steps(step: Callable[..., tuple[Tensor, Tensor, Tensor]]) -> Callable[..., Tensor]:
    """Causal attention as a loop over the learner's `step(q, k, v, s, z)`, head by head."""

    def attend(q: Tensor, k: Tensor, v: Tensor, **settings) -> Tensor:
        heads = zip(q.flatten(0, 1), k.flatten(0, 1), v.flatten(0, 1), strict=True)
        return torch.stack([one_head(step, *head) for head in heads]).view(*q.shape[:-1], v.shape[-1])

    return attend


def one_head(step: Callable, q: Float[Tensor, "T K"], k: Float[Tensor, "T K"], v: Float[Tensor, "T V"]) -> Tensor:
    """A head that reads its tokens one after the other and keeps nothing but s and z."""
    s, z, outputs = k.new_zeros(k.shape[1], v.shape[1]), k.new_zeros(k.shape[1]), []
    for i in range(len(q)):
        output, s, z = step(q[i], k[i], v[i], s, z)
        outputs.append(output)
    return torch.stack(outputs)


@torch.no_grad()
def three_logits(
    model: GPT, ids: Int[Tensor, "1 T"], parallel: Callable, step: Callable
) -> tuple[Tensor, Tensor, Tensor]:
    """The linear GPT's logits by the library, by the learner's parallel form, and token by token by her step.

    In double precision, so that only the forms can differ.
    """
    model = attend_by(deepcopy(model).double(), "linear")
    found = [model(ids)]
    for attend in (lambda q, k, v, **settings: parallel(q, k, v), by_steps(step)):
        for block in model.blocks:
            block.attn.attend = attend
        found.append(model(ids))
    return tuple(found)


# --------------------------------------------------------------------------------------------- experts


def text(split: str = "train") -> Int[Tensor, " T"]:
    """The prose in characters."""
    return tokenized_prose(None).ids[split]


def windows(ids: Int[Tensor, " T"], count: int, length: int) -> Int[Tensor, "B T"]:
    """Random windows of a text."""
    starts = torch.randint(len(ids) - length + 1, (count, 1))
    return ids[starts + torch.arange(length)]


def small_gpt(mixture: Callable[[], nn.Module] | None = None, *, dim: int = 64, depth: int = 2) -> GPT:
    """A GPT of characters; with `mixture` its feed-forward networks are what that makes, with a GPT's first weights."""
    vocabulary = len(tokenized_prose(None).tokenizer)
    model = GPT(
        GPTConfig(
            vocab_size=vocabulary,
            context_length=64,
            dim=dim,
            depth=depth,
            num_heads=2,
            activation="gelu",
            dropout=0.0,
        )
    )
    if mixture is not None:
        for block in model.blocks:
            block.ffn = normal_weights(mixture())
    return model


def bits(model: GPT) -> float:
    """Bits per character on validation text."""
    return nats_per_token(model.eval(), text("validation")[:CHECKED]) / torch.log(torch.tensor(2.0)).item()


def balance(routers: list[Tensor], k: int) -> Tensor:
    """The mean load-balancing loss of the recorded routers: 1 if every expert is chosen equally often."""
    return torch.stack([load_balance_loss(logits.flatten(0, -2), k) for logits in routers]).mean()


@torch.no_grad()
def loads(model: GPT, k: int) -> list[list[float]]:
    """For each block the fraction of choices that fall on each expert, on validation text."""
    length = model.config.context_length
    ids = text("validation")[: 40 * length].view(-1, length)
    with record_routers(model) as routers:
        model(ids)
    return [expert_load(route(logits, k)[1], logits.shape[-1]).tolist() for logits in routers]


def showing_loads(k: int) -> Callable[[nn.Module], Figure]:
    """An example for `page.watch`: the loads of the experts."""
    return lambda model: figures.routed(loads(model, k))


# --------------------------------------------------------------------------------------------- Boltzmann machines


def digits(split: str = "train") -> tuple[Float[Tensor, "N 64"], Int[Tensor, " N"]]:
    """Handwritten digits of 8 x 8 pixels from 0 to 1 as rows, and their labels."""
    return boltzmann.digits(split)


def dreams(
    model: nn.Module,
    labels: Int[Tensor, " B"] | None,
    *,
    steps: int = boltzmann.DREAM_STEPS,
    start: Float[Tensor, "B 64"] | None = None,
    count: int = 40,
    seed: int = 0,
) -> Float[Tensor, "B 64"]:
    """The pixels' probabilities after Gibbs steps of a machine with label units, the learner's or the library's.

    The chains begin at random pixels, or at `start`. Without `labels` nothing is clamped, and the label units begin at
    random, too.
    """
    hidden = model.hidden if hasattr(model, "hidden") else model.features
    count = count if labels is None else len(labels)
    with seeded(seed):
        pixels = torch.rand(count, PIXELS).round() if start is None else drawn(start)
        v = with_labels(pixels, torch.randint(CLASSES, (count,)) if labels is None else labels)
        clamped = torch.arange(v.shape[1]) >= (PIXELS if labels is not None else v.shape[1])
        return clamped_chain(hidden, model.visible, v, steps, clamped=clamped)[:, :PIXELS]


def recognised(images: Float[Tensor, "B 64"]) -> Int[Tensor, " B"]:
    """The digit that a linear classifier of pixels sees in each image."""
    return boltzmann.recogniser().predict(images)


def showing_dreams(rows: int = 2) -> Callable[[nn.Module], Figure]:
    """An example for `page.watch`: a dream of each label after 50 Gibbs steps."""
    labels = torch.arange(rows * CLASSES) % CLASSES

    def example(model: nn.Module) -> Figure:
        images = dreams(model, labels, steps=50)
        right = (recognised(images) == labels).float().mean().item()
        return figures.dreaming(images.view(-1, 8, 8), CLASSES, f"Dreams of 0 to 9; recognised: {100 * right:.0f} %")

    return example


@torch.no_grad()
def free_energy_gap(model: nn.Module, count: int = 300) -> float:
    """Mean free energy of validation digits minus that of training digits, in nats: growing means overfitting."""
    mean = {}
    for split in ("train", "validation"):
        pixels, labels = digits(split)
        with seeded(0):
            mean[split] = model(with_labels(drawn(pixels[:count]), labels[:count])).mean().item()
    return mean["validation"] - mean["train"]
