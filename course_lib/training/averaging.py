"""A moving average of the weights: a smoother model for the price of a copy (Polyak & Juditsky 1992)."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class WeightAverage:
    """average <- d average + (1 - d) weights, with d = min(decay, (1 + t) / (10 + t)) at update t = 1, 2, ...

    The second term lets the average forget the random initial weights in a short run. Buffers are not
    averaged.
    """

    def __init__(self, model: nn.Module, decay: float):
        self.model, self.decay, self.updates = model, decay, 0
        self.average = {name: p.detach().clone() for name, p in model.named_parameters()}

    @torch.no_grad()
    def update(self) -> None:
        self.updates += 1
        decay = min(self.decay, (1 + self.updates) / (10 + self.updates))
        for name, parameter in self.model.named_parameters():
            self.average[name].lerp_(parameter, 1 - decay)

    @torch.no_grad()
    def copy_to_model(self) -> None:
        for name, parameter in self.model.named_parameters():
            parameter.copy_(self.average[name])

    @contextmanager
    def swapped_in(self) -> Iterator[None]:
        """Inside the `with` block the model holds the averaged weights."""
        own = {name: p.detach().clone() for name, p in self.model.named_parameters()}
        self.copy_to_model()
        try:
            yield
        finally:
            with torch.no_grad():
                for name, parameter in self.model.named_parameters():
                    parameter.copy_(own[name])

    def state_dict(self) -> dict[str, int | dict[str, Tensor]]:
        return {"updates": self.updates, "average": self.average}

    @torch.no_grad()
    def load_state_dict(self, state: dict[str, int | dict[str, Tensor]]) -> None:
        self.updates = state["updates"]
        for name, tensor in self.average.items():
            tensor.copy_(state["average"][name])
