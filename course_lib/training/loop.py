"""A training loop to be read: `fit` is the whole of it."""

import dataclasses
import math
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import AdamW, Optimizer

from course_lib.training import progress as displays
from course_lib.training.batches import Rollouts
from course_lib.training.config import FitConfig, is_due
from course_lib.training.engine import IN_USE, Engine, Loss, OneProcess
from course_lib.training.experiment import function_name
from course_lib.training.history import History
from course_lib.training.progress import Progress
from course_lib.training.run import Run
from course_lib.training.seeding import seeded


def fit(
    model: nn.Module,
    batch_at: Callable[[int], Any] | Rollouts,
    loss: Loss,
    *,
    config: FitConfig,
    validate: Callable[[nn.Module], float] | None = None,
    mode: str = "min",
    checkpoint: Path | str | None = None,
    progress: Progress | None = None,
    optimizer: Optimizer | None = None,
    engine: Engine | None = None,
) -> History:
    """Trains `model` in place for `config.steps` steps and returns what happened.

    The batch of a step is `batch_at(step)`, a pure function of the step, or comes from `Rollouts`; it is moved to the
    model's device. `loss(model, batch)` is a scalar. `validate(model)` is called without gradients and in evaluation
    mode; `mode` is "min" if low values are good (a loss) and "max" if high ones are (accuracy, BLEU).

    With a folder `checkpoint`, a run that was interrupted goes on where it stood, and ends with the same
    weights and history, bit for bit, as one that was not; a finished one says so and trains nothing. The folder knows
    its experiment: the settings, the model with its config, the name of the loss and the first batch must be those of
    before. The model is left in evaluation mode with its last weights (the averaged ones if `config.ema` is set);
    `history.load_best(model)` puts the best ones in.

    Where `progress.stopped` becomes True, the training ends after that step; the history has NaN for the rest.

    `optimizer` replaces AdamW; its learning rate must be the config's, and its parameters those of the model that
    require gradients.

    `engine` says where to compute, see `scale.start`; without one, in this process, on the model's device. Of N
    processes, number r gets `batch_at(n * N + r)` as its batch n (or rollouts) and dropout of its own, and k batches
    may be accumulated: a step sees what N k steps of one process would. Losses in the history are means over these
    batches; process 0 alone writes, to a folder that all can read. All of them validate: the others would have to wait
    anyway, and so every history knows the best step. A validation, like the caller afterwards, has the model on the
    device on which it was given.

    Raises ValueError for arguments or a checkpoint that do not fit each other, and FloatingPointError when
    the loss or the gradient stops being finite; the weights are then those before that step.
    """
    if mode not in ("min", "max"):
        raise ValueError(f'mode must be "min" (low values are good) or "max" (high ones are), got {mode!r}.')
    if optimizer is not None:
        check_parameters(optimizer, model)
    own_optimizer = adamw(model, config) if optimizer is None else optimizer
    engine = (engine or IN_USE.get())(model, loss, own_optimizer)
    own_batch_at = batch_source(batch_at, model, config, engine)
    folder = None if checkpoint is None else Path(checkpoint)
    run = Run(model, own_optimizer, config, engine, validate=validate, mode=mode, checkpoint=folder)
    device = next(model.parameters()).device

    display = progress or (displays.Silent() if engine.rank else displays.start("training"))
    with seeded(config.seed), closing(display), closing(engine):
        rollouts = function_name(batch_at.make) if isinstance(batch_at, Rollouts) else None
        first_step = run.resume(lambda: rollouts or fetched(batch_at, 0))
        if first_step == config.steps and engine.rank == 0:
            print(f"{checkpoint}: finished before, nothing trained.")
        model.train()
        for step in range(first_step, config.steps):
            with run.clock:
                learning_rate = run.set_learning_rate(step)
                engine.begin_step(step, config.seed)
                engine.optimizer.zero_grad()
                mean_loss = 0.0
                for part in range(engine.accumulate):
                    batch = fetched(own_batch_at, step * engine.accumulate + part)
                    if step == part == 0:
                        run.knows_data(rollouts or batch)
                    batch = to_device(batch, device)
                    with engine.part(part):
                        batch_loss = scalar(engine.loss_of(batch)) / engine.accumulate
                        engine.backward(batch_loss)
                    mean_loss = mean_loss + batch_loss.detach()
                norm = engine.clip(config.clip_norm or math.inf)
                # One copy to the CPU for both numbers: on an accelerator each would wait for it.
                loss_value, norm_value = engine.mean(torch.stack([mean_loss, norm])).tolist()
                stop_unless_finite(loss_value, 0.0 if engine.may_overflow else norm_value, step, learning_rate)
                engine.optimizer.step()
                if run.average:
                    run.average.update()
            run.log(step, loss=loss_value, gradient_norm=norm_value, learning_rate=learning_rate)
            display.update(step + 1, config.steps, loss=loss_value)
            if step + 1 in run.validation_positions:
                run.validate(step + 1)
            if is_due(step + 1, config.checkpoint_every, config.steps):
                run.save(step + 1)
            if getattr(display, "stopped", False):
                break
    run.finish()
    return run.history


def batch_source(batch_at: Any, model: nn.Module, config: FitConfig, engine: OneProcess) -> Callable[[int], Any]:
    """Batch 0, 1, ... of this process. Raises ValueError for what is no function of the step, or rollouts in parts."""
    if isinstance(batch_at, Rollouts):
        if engine.accumulate > 1:
            raise ValueError(
                f"rollouts are not accumulated: take fewer minibatches, and not {engine.accumulate} a step"
            )
        return batch_at.batches(model, config)
    if callable(batch_at):
        return lambda number: batch_at(number * engine.processes + engine.rank)
    raise ValueError(
        f"batch_at must be a function of the step, so that a run can be resumed, got {type(batch_at).__name__}. "
        "Of a dataset make one with indices_at = shuffled_batches(len(dataset), batch_size, seed) and "
        "batch_at = lambda step: torch.utils.data.default_collate([dataset[i] for i in indices_at(step)])."
    )


def fetched(batch_at: Callable[[int], Any], number: int) -> Any:
    """A batch. Raises ValueError if it was to come from an iterator, such as a DataLoader's, that has come to its end.

    StopIteration itself would end the loop of a generator around `fit` without a word.
    """
    try:
        return batch_at(number)
    except StopIteration as end:
        raise ValueError(
            f"batch_at has no batch for step {number}: an iterator in it has come to its end. Make it a function of "
            "the step, which begins the data anew: indices_at = shuffled_batches(len(dataset), batch_size, seed) and "
            "batch_at = lambda step: torch.utils.data.default_collate([dataset[i] for i in indices_at(step)])."
        ) from end


def check_parameters(optimizer: Optimizer, model: nn.Module) -> None:
    """Raises ValueError unless the optimizer moves all parameters of the model that are to be trained, and no others.

    One that was made before a layer was replaced would move the old layer, and leave the new one as it is.
    """
    held = {id(p) for group in optimizer.param_groups for p in group["params"]}
    foreign = len(held - {id(p) for p in model.parameters()})
    if foreign:
        raise ValueError(
            f"The optimizer holds {foreign} tensors that are not parameters of this {type(model).__name__}. Make the "
            "optimizer after the model has got its last layer."
        )
    if missing := [name for name, p in model.named_parameters() if p.requires_grad and id(p) not in held]:
        raise ValueError(
            f"The optimizer moves some parameters of this {type(model).__name__}, but not {', '.join(missing)}. Make "
            "it of all of them, or call requires_grad_(False) on those that are to stay as they are."
        )


def adamw(model: nn.Module, config: FitConfig) -> AdamW:
    """Adam with decoupled weight decay (Loshchilov & Hutter 2019) on matrices only; without it, Adam."""
    trained = [p for p in model.parameters() if p.requires_grad]
    if not trained:
        raise ValueError(f"{type(model).__name__} has no parameter to train.")
    groups = [
        {"params": [p for p in trained if p.ndim >= 2], "weight_decay": config.weight_decay},
        {"params": [p for p in trained if p.ndim < 2], "weight_decay": 0.0},
    ]
    return AdamW([g for g in groups if g["params"]], lr=config.learning_rate, betas=config.betas, fused=True)


def to_device(batch: Any, device: torch.device) -> Any:
    """The batch with all tensors on `device`: a tensor, or tuples, lists, dicts, dataclasses of them."""
    if isinstance(batch, Tensor):
        return batch.to(device)
    if isinstance(batch, Mapping):
        return {key: to_device(value, device) for key, value in batch.items()}
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):  # a namedtuple
        return type(batch)(*(to_device(value, device) for value in batch))
    if isinstance(batch, (tuple, list)):
        return type(batch)(to_device(value, device) for value in batch)
    if dataclasses.is_dataclass(batch):
        names = [field.name for field in dataclasses.fields(batch) if field.init]
        return dataclasses.replace(batch, **{name: to_device(getattr(batch, name), device) for name in names})
    return batch


def scalar(loss: Tensor) -> Tensor:
    """The loss itself. Raises ValueError unless it is one number."""
    if not isinstance(loss, Tensor) or loss.ndim != 0:
        shape = tuple(loss.shape) if isinstance(loss, Tensor) else type(loss).__name__
        raise ValueError(f"loss(model, batch) must be a tensor of shape (), got {shape}: take a mean or a sum.")
    return loss


def stop_unless_finite(loss: float, gradient_norm: float, step: int, learning_rate: float) -> None:
    """Raises FloatingPointError for a NaN or infinite loss or gradient, which would ruin the weights."""
    if math.isfinite(loss) and math.isfinite(gradient_norm):
        return
    what = f"gradient norm is {gradient_norm}" if math.isfinite(loss) else f"loss is {loss}"
    raise FloatingPointError(
        f"Training stopped at step {step} with learning rate {learning_rate:.3g}: the {what}. "
        "The weights are those before this step. Try a lower learning rate, a longer warm-up or a smaller "
        "clip_norm, and look at this batch."
    )
