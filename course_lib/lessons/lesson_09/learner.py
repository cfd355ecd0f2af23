"""Lesson 09: how the learner's small GPTs begin, and their loss on test text."""

import torch
from torch import Tensor, nn

from course_lib.functional.positions import sinusoidal_positions
from course_lib.functional.scaling import CHINCHILLA
from course_lib.lessons.lesson_09 import laws, recipes
from course_lib.training.language_models import token_nats, tokenized_prose

CONTEXT = 32


def text() -> tuple[Tensor, int]:
    """The characters of the training text, and how many different ones there are."""
    prose = tokenized_prose(None)
    return prose.ids["train"], len(prose.tokenizer)


@torch.no_grad()
def init(model: nn.Module) -> None:
    """Matrices of variance 1 / fan-in, embeddings of 0.2^2, positions that begin as sinusoids; biases are zero."""
    for name, value in model.named_parameters():
        if value.dim() == 1 and name.endswith("bias"):
            value.zero_()
        elif value.dim() == 2 and "embed" not in name and "head" not in name:
            nn.init.normal_(value, std=value.shape[1] ** -0.5)
    nn.init.normal_(model.token_embed.weight, std=0.2)
    model.pos_embed.weight.copy_(0.2 * sinusoidal_positions(*model.pos_embed.weight.shape))


def size(model: nn.Module) -> int:
    """N: the parameters of the blocks."""
    return sum(value.numel() for value in model.blocks.parameters())


def nats(model: nn.Module) -> float:
    """Nats per character on the beginning of the test text."""
    ids = tokenized_prose(None).ids["test"][: recipes.SCORED]
    return float(token_nats(model.eval(), ids, length=CONTEXT).mean())


def tuned_rates() -> dict[int, float]:
    """The best of four learning rates for each width, on validation text."""
    return recipes.tuned_rates(laws.shipped()["rates"])


def published() -> tuple[float, ...]:
    """log E, log A, log B, alpha and beta of Hoffmann et al. 2022, eq. (10)."""
    law = CHINCHILLA
    logs = torch.tensor([law.E, law.A, law.B], dtype=torch.float64).log().tolist()
    return (*logs, law.alpha, law.beta)
