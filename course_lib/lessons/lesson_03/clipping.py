"""Lesson 03, the experiment on gradient clipping: training by SGD with and without it, and the loss of one unit."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from course_lib.functional.recurrent import recurrent_matrix
from course_lib.training.batches import text_windows
from course_lib.training.language_models import (
    LanguageSettings,
    build_language_model,
    next_token_loss,
    tokenized_prose,
)

RATES = (0.5, 2.0, 5.0)  # learning rates of SGD
SIGMAS = (0.9, 1.3)  # all singular values of the recurrent matrix before the training


def sgd_run(
    rate: float, clip: Callable[..., Sequence[Tensor]] | None, *, sigma: float, seed: int, steps: int = 80
) -> tuple[float, float]:
    """Train a character RNN by SGD: the mean loss of the last twenty steps, in nats, and the largest gradient norm.

    Its recurrent matrix is at first an orthogonal one times `sigma`. Each step goes against `clip(gradients, 1.0)`,
    or, without a `clip`, against the gradients themselves.
    """
    torch.manual_seed(seed)
    model = build_language_model(LanguageSettings(model="rnn", dim=128, depth=1, steps=steps, learning_rate=rate))
    cell, text = model.rnn.cells[0], tokenized_prose().ids["train"]
    batch_at = text_windows(text, batch_size=16, length=101, seed=seed)
    with torch.no_grad():
        matrix = recurrent_matrix(128, sigma, kind="orthogonal", generator=torch.Generator().manual_seed(seed))
        cell.weight_hh.copy_(matrix)
    weights, losses, norms = list(model.parameters()), [], []
    for step in range(steps):
        loss = next_token_loss(model, batch_at(step))
        gradients = list(torch.autograd.grad(loss, weights))
        losses.append(loss.item())
        norms.append(torch.stack([gradient.norm() for gradient in gradients]).norm().item())
        with torch.no_grad():
            for weight, gradient in zip(weights, clip(gradients, 1.0) if clip else gradients, strict=True):
                weight -= rate * gradient
    return sum(losses[-20:]) / 20, max(norms)


def one_unit_loss(w: Tensor, b: Tensor) -> Tensor:
    """(sigmoid(a_50) - 0.7)^2 for a_t = w sigmoid(a_{t-1}) + b, a_0 = 0.5: Pascanu et al. 2013, figure 6."""
    a = torch.full_like(w + b, 0.5)
    for _ in range(50):
        a = w * torch.sigmoid(a) + b
    return (torch.sigmoid(a) - 0.7) ** 2
