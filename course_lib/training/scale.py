"""Training beyond one process on the CPU, through Lightning Fabric (the extra `scale`).

    engine = start(Setup(device="cuda", precision="bf16", accumulate=4))
    fit(model, batch_at, loss, config=config, engine=engine)

or `with using(engine):` around anything that calls `fit`. In a script that `torchrun --nproc-per-node 2` starts, the
same lines train in two processes together. docs/scale.md goes from a laptop to a cluster.
"""

import copy
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed
from torch import Tensor, nn
from torch.optim import Optimizer

from course_lib.data.place import CannotStart
from course_lib.training.engine import Loss, OneProcess
from course_lib.training.seeding import seed_everything

DEVICES = ("cpu", "cuda", "mps", "auto")  # auto: the accelerator that there is, else the CPU
PRECISIONS = {"32": "32-true", "bf16": "bf16-mixed", "fp16": "16-mixed"}  # ours -> Fabric's


@dataclass(frozen=True, kw_only=True)
class Setup:
    """Where and how `fit` computes; as it stands here, as without Fabric. Raises ValueError for what makes no sense."""

    device: str = "cpu"  # one of DEVICES; of several processes each has its own
    precision: str = "32"  # of the forward pass, one of PRECISIONS; weights and their updates keep 32 bits
    compile: bool = False  # the loss, forward pass included, by torch.compile
    accumulate: int = 1  # batches of each process whose gradients make one step

    def __post_init__(self):
        if self.device not in DEVICES:
            raise ValueError(f"device must be one of {', '.join(DEVICES)}, got {self.device!r}")
        if self.precision not in PRECISIONS:
            raise ValueError(f"precision must be one of {', '.join(PRECISIONS)}, got {self.precision!r}")
        if self.accumulate < 1:
            raise ValueError(f"accumulate must be at least 1 batch a step, got {self.accumulate}")


def start(setup: Setup | None = None) -> "type[OneProcess] | Launched":
    """The engine for `fit`: `OneProcess` where nothing else is asked for, else Fabric, which joins the processes.

    Raises CannotStart, with what to do, if Fabric is not installed, if there are fewer devices than processes, or for
    fp16 on the CPU.
    """
    setup = setup or Setup()
    together = torch.distributed.is_available() and torch.distributed.is_torchelastic_launched()
    processes, here = (int(os.environ[name]) if together else 1 for name in ("WORLD_SIZE", "LOCAL_WORLD_SIZE"))
    if setup == Setup() and processes == 1:
        return OneProcess
    try:
        from lightning_fabric import Fabric
        from lightning_fabric.strategies import DDPStrategy
    except ImportError as error:
        raise CannotStart(
            "Other devices and precisions, compiling, accumulating, and more than one process need Lightning Fabric, "
            "which is not installed here. In the folder of the course this installs it: pip install --editable "
            "'.[scale]'"
        ) from error
    device = usable_device(setup.device, here)
    if (setup.precision, device) == ("fp16", "cpu"):
        raise CannotStart("fp16 is for GPUs: on the CPU take bf16.")
    fabric = Fabric(
        accelerator=device,
        devices=here,
        num_nodes=processes // here,
        precision=PRECISIONS[setup.precision],
        # A loss need not use all parameters in each step.
        strategy=DDPStrategy(find_unused_parameters=True) if processes > 1 else "auto",
    )
    fabric.launch()
    return Launched(fabric, setup)


def onednn_has_bf16_lstm() -> bool:
    """Whether oneDNN, which computes LSTMs on the CPU, does so in bf16; on a processor without AVX-512 it does not."""
    with torch.random.fork_rng(devices=[]), torch.autocast("cpu", dtype=torch.bfloat16):
        try:
            nn.LSTM(1, 1)(torch.zeros(1, 1, 1))
        except RuntimeError:
            return False
    return True


@contextmanager
def without_onednn() -> Iterator[None]:
    """Within, PyTorch's own kernels compute."""
    before, *_ = torch.backends.mkldnn.set_flags(_enabled=False)
    try:
        yield
    finally:
        torch.backends.mkldnn.set_flags(_enabled=before)


def usable_device(device: str, processes: int) -> str:
    """The device, with "auto" decided. Raises CannotStart if this machine has too few for its processes."""
    found = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    if device == "auto":
        device = found.type if found else "cpu"
    count = torch.accelerator.device_count() if found and found.type == device else 0
    if device != "cpu" and count < processes:
        raise CannotStart(
            f"{processes} process{'es' * (processes > 1)} on {device} cannot start: PyTorch {torch.__version__} finds "
            f"{count} such device{'s' * (count != 1)} on this machine. On the CPU it goes: device cpu."
        )
    return device


class Launched:
    """A Fabric whose processes have met; called by `fit` with what it trains."""

    def __init__(self, fabric: Any, setup: Setup):
        self.fabric, self.setup = fabric, setup
        self.rank, self.processes, self.wait = fabric.global_rank, fabric.world_size, fabric.barrier
        self.scaler = getattr(fabric.strategy.precision, "scaler", None)  # of the loss, with fp16
        self.fresh_scale = self.scaler.state_dict() if self.scaler else {}

    def __call__(self, model: nn.Module, loss: Loss, optimizer: Optimizer) -> "WithFabric":
        return WithFabric(self, model, loss, optimizer)

    def facts(self) -> dict[str, Any]:
        facts = {"processes": self.processes, "accumulate": self.setup.accumulate, "precision": self.setup.precision}
        return {name: value for name, value in facts.items() if value != getattr(OneProcess, name)}


class WithFabric(OneProcess):
    """One training by a Fabric.

    With several processes the gradient is the mean of theirs (DistributedDataParallel, Li et al. 2020, arXiv
    2006.15704). Mixed precision is that of Micikevicius et al. 2018, arXiv 1710.03740: with fp16 the loss is scaled up,
    so that small gradients do not vanish, and a step whose gradient overflows is left out.
    """

    def __init__(self, launched: Launched, model: nn.Module, loss: Loss, optimizer: Optimizer):
        fabric, setup = launched.fabric, launched.setup
        self.fabric, self.scaler, self.fresh_scale = fabric, launched.scaler, launched.fresh_scale
        self.rank, self.processes, self.wait = launched.rank, launched.processes, launched.wait
        self.accumulate, self.precision = setup.accumulate, setup.precision
        self.may_overflow = self.scaler is not None
        self.home = next(model.parameters()).device
        short_lstm = fabric.device.type != "cpu" or setup.precision != "bf16" or onednn_has_bf16_lstm()
        self.kernels = nullcontext if short_lstm else without_onednn
        self.inner = optimizer
        self.trained, stepped = fabric.setup(LossModule(model, compiled(loss) if setup.compile else loss), optimizer)
        self.load_state_dict({})
        super().__init__(model, loss, stepped)

    def begin_step(self, step: int, seed: int) -> None:
        """A checkpoint holds the random numbers of process 0: those of the others begin anew in each step."""
        if self.rank:
            seed_everything((seed + 1_000_003 * (step * self.processes + self.rank)) % 2**32)

    def part(self, index: int) -> AbstractContextManager:
        """The processes add up their gradients once a step, in its last part."""
        return self.fabric.no_backward_sync(self.trained, enabled=index + 1 < self.accumulate)

    def loss_of(self, batch: Any) -> Tensor:
        with self.kernels():
            return self.trained(Untouched(batch))

    def backward(self, loss: Tensor) -> None:
        self.fabric.backward(loss)

    def clip(self, max_norm: float) -> Tensor:
        if self.scaler:
            self.scaler.unscale_(self.inner)  # first: the limit is one of true gradients
        return super().clip(max_norm)

    def mean(self, numbers: Tensor) -> Tensor:
        return self.fabric.all_reduce(numbers, reduce_op="mean")

    def for_validation(self) -> nn.Module:
        """A copy, if need be: DistributedDataParallel loses hold of parameters that are moved."""
        return self.model if self.home == self.fabric.device else copy.deepcopy(self.model).to(self.home)

    def close(self) -> None:
        self.model.to(self.home)

    def state_dict(self) -> dict[str, Any]:
        return self.scaler.state_dict() if self.scaler else {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if self.scaler:
            self.scaler.load_state_dict(state or self.fresh_scale)


class LossModule(nn.Module):
    """The loss as a module: whatever methods of its model it calls, Fabric sees one forward pass."""

    def __init__(self, model: nn.Module, loss: Loss):
        super().__init__()
        self.model, self.loss = model, loss

    def forward(self, untouched: "Untouched") -> Tensor:
        return self.loss(self.model, untouched.batch)


class Untouched:
    """A batch into which Fabric does not look: with bf16 it would round all numbers in it, targets too."""

    def __init__(self, batch: Any):
        self.batch = batch


def compiled(loss: Loss) -> Loss:
    return torch.compile(lambda model, batch: loss(model, batch))
