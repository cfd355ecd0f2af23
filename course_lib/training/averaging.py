"""Averages of weights: a smoother model for the price of a copy (Polyak & Juditsky 1992).

A moving average over all steps, or the mean of a run's last checkpoints (Vaswani et al. 2017, section 6.1).
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import Tensor, nn

from course_lib.training import checkpoints


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


def mean_weights(checkpoint_weights: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """The mean of several state dicts, tensor by tensor; what is no float (a counter) is taken from the last one.

    Raises ValueError for none at all, and for those of different models.
    """
    if not checkpoint_weights:
        raise ValueError("a mean needs the weights of one checkpoint or more, got none")
    shapes = [{name: tensor.shape for name, tensor in weights.items()} for weights in checkpoint_weights]
    if any(other != shapes[0] for other in shapes):
        raise ValueError("these weights are not of one model: their names or shapes differ")
    last = checkpoint_weights[-1]
    return {
        name: torch.stack([weights[name].double() for weights in checkpoint_weights]).mean(dim=0).to(last[name].dtype)
        if last[name].is_floating_point()
        else last[name].clone()
        for name in last
    }


def load_mean(folder: Path | str, model: nn.Module, *, last: int | None = None) -> list[int]:
    """Puts the mean of a run's `last` kept weights (all, if not given) into `model`; returns after how many steps each.

    A run keeps them if its config says `keep_weights`. Raises FileNotFoundError if there are fewer, and ValueError if
    one is damaged or made for another model.
    """
    paths = checkpoints.kept_weights(Path(folder))
    if not paths or len(paths) < (last or 0):
        raise FileNotFoundError(
            f"{folder} keeps the weights of {len(paths)} checkpoints, {last or 'one or more'} are needed: "
            "train with a larger keep_weights"
        )
    states = [checkpoints.read(path) for path in paths[-(last or len(paths)) :]]
    for path, state in zip(paths[-len(states) :], states, strict=True):
        checkpoints.check_same_model(state["weights"], model, path)
    model.load_state_dict(mean_weights([state["weights"] for state in states]))
    return [state["step"] for state in states]
