"""What happened during a training: one number per step, as plain arrays."""

from dataclasses import dataclass, field, fields
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn


@dataclass(kw_only=True, eq=False)
class History:
    """One entry per training step; validations have their own steps. What has not happened yet is NaN."""

    losses: np.ndarray  # before each step's update
    gradient_norms: np.ndarray  # before clipping
    learning_rates: np.ndarray  # of the first parameter group
    cpu_seconds: np.ndarray  # since the start, of all threads, without validation and checkpoints
    wall_seconds: np.ndarray  # since the start, without validation and checkpoints
    validation_steps: np.ndarray  # steps done when the model was validated
    validation_values: np.ndarray
    best_step: int | None = None  # steps done when the model validated best
    best_weights: dict[str, Tensor] | None = field(default=None, repr=False)  # `save` leaves them out

    @classmethod
    def blank(cls, steps: int, validation_steps: list[int]) -> "History":
        """A history of `steps` steps that have not happened yet."""
        per_step = (np.full(steps, np.nan) for _ in range(5))
        names = ("losses", "gradient_norms", "learning_rates", "cpu_seconds", "wall_seconds")
        return cls(
            **dict(zip(names, per_step, strict=True)),
            validation_steps=np.array(validation_steps, dtype=np.int64),
            validation_values=np.full(len(validation_steps), np.nan),
        )

    @property
    def best_value(self) -> float | None:
        """The validation value at `best_step`."""
        if self.best_step is None:
            return None
        return float(self.validation_values[self.validation_steps == self.best_step][0])

    def load_best(self, model: nn.Module) -> None:
        """Puts the weights that validated best into `model`. Raises ValueError if there was no validation."""
        if self.best_weights is None:
            raise ValueError("This history holds no best weights: give `validate` to fit, or read best.pt.")
        model.load_state_dict(self.best_weights)

    def save(self, path: Path | str) -> None:
        """All arrays and the best step as one .npz file."""
        np.savez(path, best_step=-1 if self.best_step is None else self.best_step, **self.arrays())

    @classmethod
    def load(cls, path: Path | str) -> "History":
        """What `save` wrote."""
        with np.load(path, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files if name != "best_step"}
            best_step = int(stored["best_step"])
        return cls(**arrays, best_step=None if best_step < 0 else best_step)

    def arrays(self) -> dict[str, np.ndarray]:
        """All arrays by name."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return {name: value for name, value in values.items() if isinstance(value, np.ndarray)}

    def state_dict(self) -> dict[str, Tensor | int | dict[str, Tensor] | None]:
        """The history for a checkpoint."""
        arrays = {name: torch.from_numpy(array) for name, array in self.arrays().items()}
        return arrays | {"best_step": self.best_step, "best_weights": self.best_weights}

    def load_state_dict(self, state: dict[str, Tensor | int | dict[str, Tensor] | None]) -> None:
        """Takes back what `state_dict` gave."""
        for name, array in self.arrays().items():
            array[:] = state[name].numpy()
        self.best_step, self.best_weights = state["best_step"], state["best_weights"]
