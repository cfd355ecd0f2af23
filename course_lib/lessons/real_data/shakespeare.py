"""The GPT of lesson 08 on tiny Shakespeare, beside nanoGPT's published small setting.

The README of https://github.com/karpathy/nanoGPT trains a GPT of 4 blocks on a CPU, config/train_shakespeare_char.py
with block_size 64, batch_size 12, n_layer 4, n_head 4, n_embd 128, max_iters and lr_decay_iters 2000 and dropout 0, and
reports a loss of 1.88 nats a character. The same here: split, sizes, batches, steps, learning rates, betas, weight
decay and clipping. Different: our layers and norms have biases, the windows are other draws, and our score counts every
window of the held-out text once, where nanoGPT's averages 20 batches of windows drawn from it.
"""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import torch
import torch.nn.functional as F
from jaxtyping import Int
from torch import Tensor

from course_lib.data.checkpoints import TrainedModel
from course_lib.data.real import tiny_shakespeare
from course_lib.generation import sample
from course_lib.models.gpt import GPT, GPTConfig
from course_lib.text.characters import CharacterTokenizer
from course_lib.training.batches import text_windows
from course_lib.training.language_models import next_token_loss, token_nats
from course_lib.training.recipe import Recipe, Scores, Trained, common, each, fit_by
from course_lib.training.seeding import seeded

TRAINING = 0.9  # of the characters, from the beginning, as in nanoGPT
ROWS = 64  # windows that are scored at once
SHOWN = 300  # characters on the lesson's page


@dataclass(frozen=True, kw_only=True)
class ShakespeareSettings:
    """nanoGPT's setting for a CPU."""

    dim: int = 128
    depth: int = 4
    num_heads: int = 4
    context_length: int = 64  # characters
    dropout: float = 0.0
    batch_size: int = 12  # windows
    steps: int = 2000
    learning_rate: float = 1e-3
    final_factor: float = 0.1  # cosine to 1e-4
    weight_decay: float = 0.1
    seed: int = 0


@lru_cache(maxsize=1)
def tokenizer() -> CharacterTokenizer:
    """The 65 characters of the whole text, as in nanoGPT."""
    return CharacterTokenizer.train([tiny_shakespeare()], specials=())


@lru_cache(maxsize=1)
def parts() -> dict[str, Int[Tensor, " T"]]:
    """The first nine tenths to train by; the last tenth for validation and test, half each, and as a whole."""
    ids = torch.tensor(tokenizer().encode(tiny_shakespeare()))
    cut = int(TRAINING * len(ids))
    middle = (cut + len(ids)) // 2
    return {"train": ids[:cut], "validation": ids[cut:middle], "test": ids[middle:], "held out": ids[cut:]}


def train(settings: ShakespeareSettings, *, checkpoint: Path | None = None) -> Trained:
    """Trains the GPT on characters."""
    with seeded(settings.seed):
        model = GPT(GPTConfig(**common(settings, GPTConfig), vocab_size=len(tokenizer())))
    windows = {"batch_size": settings.batch_size, "length": settings.context_length + 1, "seed": settings.seed}
    return fit_by(
        settings,
        model,
        text_windows(parts()["train"], **windows),
        next_token_loss,
        parts=4,
        schedule="cosine",
        warmup=min(100, settings.steps // 4),
        betas=(0.9, 0.99),
        validate=lambda model: nats_in_windows(model, parts()["validation"]),
        checkpoint=checkpoint,
        extra={"tokenizer": tokenizer().state_dict()},
    )


@torch.no_grad()
def nats_in_windows(model: GPT, ids: Int[Tensor, " T"]) -> float:
    """-ln p of a character, the mean over windows one after the other, each read from nothing: nanoGPT's loss."""
    length = model.config.context_length
    count = (len(ids) - 1) // length
    inputs, targets = ids[: count * length].view(count, length), ids[1 : count * length + 1].view(count, length)
    losses = [
        F.cross_entropy(model(some).flatten(0, 1), right.flatten(), reduction="sum")
        for some, right in zip(inputs.split(ROWS), targets.split(ROWS), strict=True)
    ]
    return float(sum(losses)) / targets.numel()


def score(trained: Trained, split: str) -> Scores:
    """Nats a character as nanoGPT counts them, and with half a window of context at least, as lesson 08 does."""
    ids = parts()[split]
    scores = {
        "nats": nats_in_windows(trained.model, ids),
        "nats with context": float(token_nats(trained.model, ids).mean()),
    }
    return scores | (
        {"nats, last tenth": nats_in_windows(trained.model, parts()["held out"])} if split == "test" else {}
    )


def show(data: str, trained: Trained | TrainedModel | None = None) -> None:
    """Some of the held-out text; with a model its beginning and how the model goes on, by the same dice always.

    The model reads half of its context and writes the other half, until there is enough.
    """
    ids = parts()["held out"][:SHOWN]
    if trained is None:
        print(tokenizer().decode(ids))
        return
    half, dice = trained.model.config.context_length // 2, torch.Generator().manual_seed(0)
    written = given = ids[:half]
    while len(written) < SHOWN:
        options = {"max_new_tokens": half, "temperature": 0.8, "generator": dice}
        written = torch.cat([written, sample(trained.model.eval(), written[None, -half:], **options)[0]])
    print(f"given: {tokenizer().decode(given)!r}\n\n{tokenizer().decode(written)}")


RECIPES = {
    "gpt_tiny_shakespeare": Recipe(
        title="A GPT on the characters of tiny Shakespeare",
        lesson="08",
        data="The data set tiny_shakespeare, see docs/data.md: the first 90% to train by, the next 5% for validation, "
        "the last 5% for the test. The score `nats, last tenth` is that of validation and test together, the text on "
        "which nanoGPT reports 1.88 nats for the same sizes, batches and steps.",
        minutes=3,
        variants={"": ShakespeareSettings()},
        train=train,
        scores=each(score),
        chosen_by="nats",
        licence="MIT, as the course; the text is in the public domain.",
    )
}
