"""What `fit` asks of the place where it computes, and the plain answers: this process, the model's own device.

`scale` gives the other answers, through Lightning Fabric: several processes, other devices and precisions.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_
from torch.optim import Optimizer

Loss = Callable[[nn.Module, Any], Tensor]


class OneProcess:
    """One training in this process, on the device and in the precision of its model."""

    rank, processes = 0, 1  # of the processes that train together, which one this is, and how many there are
    accumulate = 1  # batches of each process in a step
    precision = "32"  # bits
    may_overflow = False  # whether a step with an infinite gradient is left out and the training goes on

    def __init__(self, model: nn.Module, loss: Loss, optimizer: Optimizer):
        self.model, self.loss, self.optimizer = model, loss, optimizer

    @staticmethod
    def wait() -> None:
        """Returns when all processes have come here."""

    @classmethod
    def facts(cls) -> dict[str, Any]:
        """What of this changes the numbers, as plain values."""
        return {}

    def begin_step(self, step: int, seed: int) -> None:
        """Called before anything random happens in a step."""

    def part(self, index: int) -> AbstractContextManager:
        """Around the forward and backward pass of batch `index` of the step's `accumulate` ones."""
        return nullcontext()

    def loss_of(self, batch: Any) -> Tensor:
        return self.loss(self.model, batch)

    def backward(self, loss: Tensor) -> None:
        loss.backward()

    def clip(self, max_norm: float) -> Tensor:
        """Shortens the gradient to `max_norm`; returns how long it was."""
        return clip_grad_norm_(self.model.parameters(), max_norm)

    def mean(self, numbers: Tensor) -> Tensor:
        """Over all processes."""
        return numbers

    def for_validation(self) -> nn.Module:
        """The model on the device on which `fit` was given it, where the data of a validation are."""
        return self.model

    def close(self) -> None:
        """The training has ended: the model goes back to the device on which `fit` was given it."""

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint must hold of this, in plain values."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Takes back what `state_dict` gave."""


Engine = Callable[[nn.Module, Loss, Optimizer], OneProcess]  # of one training; with the class's own members
IN_USE: ContextVar[Engine] = ContextVar("engine", default=OneProcess)


@contextmanager
def using(engine: Engine) -> Iterator[None]:
    """Inside the `with` block, in this thread, every `fit` that is given no engine takes this one."""
    before = IN_USE.set(engine)
    try:
        yield
    finally:
        IN_USE.reset(before)
