"""The training loop in its shortest form; `fit` is the same loop with logging, checkpoints and several processes."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from course_lib.training.schedules import cosine


def simple_fit(
    model: nn.Module,
    batch_at: Callable[[int], Any],
    loss: Callable[[nn.Module, Any], Tensor],
    *,
    steps: int,
    learning_rate: float = 1e-3,
    warmup: int = 0,
    clip_norm: float = 1.0,
) -> list[float]:
    """Trains `model` in place with Adam on `loss(model, batch_at(step))`, and returns the loss of each step."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate, weight_decay=0.0)
    losses = []
    model.train()
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate * cosine(step, steps, warmup)
        batch_loss = loss(model, batch_at(step))
        optimizer.zero_grad()
        batch_loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), clip_norm)
        optimizer.step()
        losses.append(batch_loss.item())
    model.eval()
    return losses
