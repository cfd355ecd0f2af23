"""One training in two processes, for test_loop: at the top level of a module, where a new process finds it."""

from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from course_lib.training import FitConfig, fit, seeded
from course_lib.training.loop import OneProcess

INPUTS = torch.randn(96, 5, generator=torch.Generator().manual_seed(0))
TARGETS = INPUTS.prod(dim=1, keepdim=True)
CONFIG = FitConfig(steps=12, learning_rate=0.02, clip_norm=0.3, evaluate_every=3, checkpoint_every=4)


class TwoProcesses(OneProcess):
    """What a Lightning Fabric does, with torch.distributed on the CPU."""

    def __init__(self, rank, folder):
        dist.init_process_group("gloo", init_method=f"file://{folder}/rendezvous", rank=rank, world_size=2)
        self.world_size, self.global_rank, self.is_global_zero = 2, rank, rank == 0

    def setup(self, model, optimizer):
        return DistributedDataParallel(model), optimizer

    def all_reduce(self, numbers, *, reduce_op):
        dist.all_reduce(numbers)
        return numbers / 2


def network(dropout=0.0):
    with seeded(3):
        return nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Dropout(dropout), nn.Linear(8, 1))


def batch_at(step):
    rows = torch.arange(4 * step, 4 * step + 4) % 96
    return INPUTS[rows], TARGETS[rows]


def both_batches_at(step):
    return tuple(torch.cat(pair) for pair in zip(batch_at(2 * step), batch_at(2 * step + 1), strict=True))


def loss(model, batch):
    return ((model(batch[0]) - batch[1]) ** 2).mean()


def validate(model):
    return float(loss(model, (INPUTS, TARGETS)))


def trained_alone():
    model = network()
    history = fit(model, both_batches_at, loss, config=CONFIG, validate=validate)
    return model.state_dict(), history


def interrupted_at(step):
    def interrupted(wanted):
        if wanted // 2 == step:
            raise KeyboardInterrupt
        return batch_at(wanted)

    return interrupted


def train(rank, folder):
    torch.set_num_threads(1)
    fabric, model = TwoProcesses(rank, folder), network()
    history = fit(model, batch_at, loss, config=CONFIG, validate=validate, fabric=fabric)
    whole, resumed = network(dropout=0.5), network(dropout=0.5)
    fit(whole, batch_at, loss, config=CONFIG, fabric=fabric)
    try:
        fit(network(dropout=0.5), interrupted_at(6), loss, config=CONFIG, checkpoint=Path(folder, "run"), fabric=fabric)
    except KeyboardInterrupt:
        fit(resumed, batch_at, loss, config=CONFIG, checkpoint=Path(folder, "run"), fabric=fabric)
    torch.save((model.state_dict(), (whole.state_dict(), resumed.state_dict()), history), Path(folder, f"{rank}.pt"))
    dist.destroy_process_group()
