"""Everything that a training needs to go on after an interruption."""

import dataclasses
import hashlib
import math
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from course_lib.training import checkpoints
from course_lib.training.averaging import WeightAverage
from course_lib.training.config import FitConfig
from course_lib.training.engine import OneProcess
from course_lib.training.experiment import batch_facts, function_name, model_facts
from course_lib.training.history import History
from course_lib.training.seeding import random_state, restore_random_state, seeded

EXPERIMENT = ("loss", "first batch")  # and all that begins with "model": what older checkpoints leave out
UNSAID = {"final_factor": 0.0, "processes": 1, "accumulate": 1, "precision": "32"}  # what old checkpoints leave out


class Clock:
    """Adds up the seconds spent inside its `with` blocks: on the wall, and of all this process's threads."""

    def __init__(self):
        self.wall = self.cpu = 0.0

    def __enter__(self) -> None:
        self._began = time.perf_counter(), time.process_time()

    def __exit__(self, *exception: object) -> None:
        self.wall += time.perf_counter() - self._began[0]
        self.cpu += time.process_time() - self._began[1]


class Run:
    """Model, optimizer, weight average, history, clock and random numbers, saved and restored together."""

    def __init__(
        self,
        model: nn.Module,
        optimizer: Optimizer,
        config: FitConfig,
        engine: OneProcess,
        *,
        validate: Callable | None,
        mode: str,
        checkpoint: Path | None,
    ):
        self.model, self.optimizer, self.config, self.engine = model, optimizer, config, engine
        self.validate_model, self.mode, self.checkpoint = validate, mode, checkpoint
        validation_steps = config.validation_steps() if validate else []
        self.history = History.blank(config.steps, validation_steps)
        self.validation_positions = {step: position for position, step in enumerate(validation_steps)}
        self.average = WeightAverage(model, config.ema) if config.ema else None
        self.clock = Clock()
        self.peaks = _peak_learning_rates(optimizer, config)
        self.factors = config.learning_rate_factors()
        self.first_batch = ""  # by which the data are known

    def set_learning_rate(self, step: int) -> float:
        """Gives each parameter group its rate for `step`; returns the first group's."""
        for group, peak in zip(self.optimizer.param_groups, self.peaks, strict=True):
            group["lr"] = peak * self.factors[step]
        return self.peaks[0] * self.factors[step]

    def finish(self) -> None:
        """Leaves the model ready for use."""
        if self.average:
            self.average.copy_to_model()
        self.model.eval()

    def log(self, step: int, *, loss: float, gradient_norm: float, learning_rate: float) -> None:
        """Writes a finished step into the history."""
        self.history.losses[step] = loss
        self.history.gradient_norms[step] = gradient_norm
        self.history.learning_rates[step] = learning_rate
        self.history.cpu_seconds[step] = self.clock.cpu
        self.history.wall_seconds[step] = self.clock.wall

    @torch.no_grad()
    def validate(self, done: int) -> None:
        """Scores the model after `done` steps and keeps its weights if they are the best so far."""
        averaged = self.average.swapped_in() if self.average else nullcontext()
        # Random numbers drawn by the validation must not change the training after it.
        with averaged, seeded(self.config.seed):
            self.model.eval()
            value = float(self.validate_model(self.engine.for_validation()))
            self.model.train()
            before = self.history.best_value
            self.history.validation_values[self.validation_positions[done]] = value
            is_better = before is None or (value < before if self.mode == "min" else value > before)
            if is_better and not math.isnan(value):
                self.history.best_step = done
                weights = self.model.state_dict()
                self.history.best_weights = {name: tensor.clone() for name, tensor in weights.items()}

    def save(self, done: int) -> None:
        """Writes a checkpoint after `done` steps, in process 0; returns when it is there. Without a folder, nothing."""
        if self.checkpoint is None:
            return
        if self.engine.rank == 0:
            self._write(done)
        self.engine.wait()

    def _write(self, done: int) -> None:
        history = self.history
        if history.best_step is not None:
            best = {"step": history.best_step, "value": history.best_value, "weights": history.best_weights}
            checkpoints.write(self.checkpoint / checkpoints.BEST, best)
        state = {
            "settings": self.settings(),
            "done": done,
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "average": self.average.state_dict() if self.average else None,
            "history": history.state_dict(),
            "clock": (self.clock.wall, self.clock.cpu),
            "random": random_state(),
            "engine": self.engine.state_dict(),
        }
        if self.config.keep_weights:  # first: a run that ends in between writes the same file again
            kept = {"step": done, "weights": state["model"]}
            checkpoints.keep_weights(self.checkpoint, kept, self.config.keep_weights)
        checkpoints.save(self.checkpoint, state)

    def knows_data(self, first_batch: Any) -> None:
        """Notes which data this run has. Only a checkpoint asks for it."""
        if self.checkpoint:
            self.first_batch = batch_facts(first_batch)

    def resume(self, first_batch: Callable[[], Any]) -> int:
        """Takes up the folder's checkpoint, if there is one and it is of this experiment; returns the steps done."""
        state = checkpoints.load(self.checkpoint) if self.checkpoint else None
        if state is None:
            return 0
        checkpoints.check_same_model(state["model"], self.model, self.checkpoint)
        self.knows_data(first_batch())
        then, now = UNSAID | state["settings"], self.settings()
        for name in now.keys() - then.keys():
            if name in EXPERIMENT or (name.startswith("model") and "model" not in then):
                del now[name]
        checkpoints.check_same_settings(then, now, self.checkpoint)
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        if self.average:
            self.average.load_state_dict(state["average"])
        self.history.load_state_dict(state["history"])
        self.clock.wall, self.clock.cpu = state["clock"]
        restore_random_state(state["random"])
        self.engine.load_state_dict(state.get("engine", {}))
        return state["done"]

    def settings(self) -> dict:
        """What must be the same when a run goes on, in plain values; how often, and how much, is saved may change."""
        settings = dataclasses.asdict(self.config)
        del settings["checkpoint_every"], settings["keep_weights"]
        if callable(self.config.schedule):  # known by its name and by what it returns
            digest = hashlib.sha256(repr(self.factors).encode()).hexdigest()[:8]
            settings["schedule"] = f"{getattr(self.config.schedule, '__qualname__', 'function')} {digest}"
        return (
            settings
            | {
                "peak learning rates": self.peaks,
                "optimizer": type(self.optimizer).__name__,
                "validate": self.validate_model is not None,
                "best": self.mode,
                "loss": function_name(self.engine.loss),
                "first batch": self.first_batch,
            }
            | model_facts(self.model)
            | {name: getattr(self.engine, name) for name in ("processes", "accumulate", "precision")}
        )


def _peak_learning_rates(optimizer: Optimizer, config: FitConfig) -> list[float]:
    """Each parameter group's rate at the schedule's peak, kept in the group as torch's schedulers do."""
    peaks = [group.setdefault("initial_lr", group["lr"]) for group in optimizer.param_groups]
    if config.learning_rate not in peaks:
        raise ValueError(
            f"The optimizer's learning rate is {', '.join(map(str, peaks))} but the config's is "
            f"{config.learning_rate}: give both the same."
        )
    return peaks
