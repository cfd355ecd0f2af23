"""Lesson 09, scaling laws: what its assignment's check cells ask; the grader's tables are in hidden/09."""

import torch
from torch import Tensor

from course_lib.functional.scaling import ScalingLaw
from course_lib.tasks import TRAINING_SECONDS, Check, Draw, Finding, Task, gradients, keeps_type
from course_lib.tasks.core import Probe
from course_lib.tasks.table import Measure

NOISE = 0.0025  # standard deviation of the logarithm of a loss
FAMILIES = 4  # of models, that a study is tried with
BUDGET = 1e14  # operations that a plan may spend
SIZES, TOKENS, RUNS = (1e4, 1e6), (3e5, 3.2e7), 40  # what can be bought: smallest and largest, and how many at most

OVER = Finding(
    "over the budget",
    "The runs of the plan cost more than the budget.",
    "Add up 6 N D over all runs before you return the plan.",
)
OUTSIDE = Finding(
    "runs that are not for sale",
    "The plan is not a table of two columns, has too many runs, or has a size or an amount outside of the limits.",
    "Return a tensor (k, 2) with at most 40 rows: N from 10,000 to 1,000,000 and D from 300,000 to 32,000,000.",
)
FAR = Finding(
    "predictions far off",
    "The losses of the larger runs are far from your predictions.",
    "Does the law have a constant, a term for the size and one for the text? Compare it with the runs that you bought.",
)
NEAR = Finding(
    "predictions not close",
    "Your predictions are roughly right, but another plan or another fit comes closer.",
    "Vary size and text separately, spend on few large runs and many small ones, and fit all five numbers together.",
)


class Family:
    """Trainings whose losses follow a law that nobody is told, up to noise."""

    def __init__(self, draw: Draw):
        self.draw = draw
        E, A, B, alpha, beta = torch.rand(5, generator=draw.generator).double().tolist()
        self.law = ScalingLaw(
            E=1.2 + 0.8 * E, A=60 + 80 * A, B=300 + 500 * B, alpha=0.35 + 0.12 * alpha, beta=0.38 + 0.12 * beta
        )

    def train(self, N: Tensor, D: Tensor) -> Tensor:
        """What these runs reach."""
        noise = torch.randn(len(N), generator=self.draw.generator, dtype=torch.float64)
        return self.law(N, D) * (NOISE * noise).exp()


def large() -> tuple[Tensor, Tensor]:
    """Nine runs of up to ten times the size and ten times the text that can be bought."""
    pairs = torch.meshgrid(torch.logspace(6.3, 7, 3).double(), torch.logspace(7.7, 8.5, 3).double(), indexing="ij")
    return tuple(every.flatten() for every in pairs)


def planned(plan: Tensor) -> list[Finding]:
    """What is wrong with a plan."""
    if plan.dim() != 2 or plan.shape[1] != 2 or not 0 < len(plan) <= RUNS:
        return [OUTSIDE]
    for column, (low, high) in zip(plan.double().T, (SIZES, TOKENS), strict=True):
        if column.min() < low * (1 - 1e-6) or column.max() > high * (1 + 1e-6):
            return [OUTSIDE]
    return [OVER] if 6 * plan.double().prod(dim=1).sum() > BUDGET * (1 + 1e-6) else []


def misses(name: str, points: float, *, below: float) -> Check:
    """On the large runs of every family the mean relative error is below this."""

    def errors(probe: Probe) -> tuple[list[Finding], list[float]]:
        found, none, (N, D) = [], torch.zeros(0, dtype=torch.float64), large()
        for _ in range(FAMILIES):
            plan = probe.tensor(BUDGET, none, none, none, N, D)
            if wrong := planned(plan):
                return wrong, []
            family = Family(probe.draw)
            bought = (*plan.double().T, family.train(*plan.double().T))
            said = probe.tensor(BUDGET, *bought, N, D, shape=tuple(N.shape)).double()
            found.append(float((said / family.train(N, D) - 1).abs().mean()))
        return [], found

    def run(probe: Probe) -> list[Finding]:
        wrong, found = probe.once("errors", errors)
        if wrong:
            return wrong
        probe.measured = 100 * max(found)
        if max(found) < below:
            return []
        return [FAR if max(found) > 0.05 else NEAR]

    told = (OVER, OUTSIDE, FAR, NEAR)
    return Check(name=name, points=points, run=run, detects=tuple(one.misconception for one in told))


# the examples -----------------------------------------------------------------------------------------------

HUBER = (([2.718281828, 1.0, 1.0], [1.0, 1.0, 1.2214028], 0.1), 0.11)
GAPS = torch.tensor([0.1, -0.1, 0.0, 0.2, 3.0])
BIWEIGHT = ((2 * GAPS.exp(), torch.full((5,), 2.0), 1.349), 3.15625)
TRANSFER = (([100.0, 10_000.0], [10_000.0, 160_000.0], 2.0, 0.5, 0.25), [[200.0, 4000.0], [3.0, 1.4]])
NOISY = (([[[4.0, 0.0], [2.0, 2.0]], [[2.0, 0.0], [2.0, 4.0]]], 8), 8.0)
BREAK = (
    ([1.0, 4.0, 16.0, 64.0, 256.0], [64.0, 16.0, 4.0, 2.0, 1.0], [4.0, 8.0, 16.0]),
    [64.0, 1.0, 0.5, 16.0],
)
REPEATED = (([3.0, 1.0], 100.0, 2.0), [226.424, 100.0])
BATCH = (([32.0, 64.0], 1000.0, 64_000.0), [[3000.0, 2000.0], [96_000.0, 128_000.0]])
FLOOR = (([1.0, 10.0, 100.0], [5.0, 1.4, 1.04], [0.0, 1.0]), [4.0, 1.0, 1.0])

SHOWN = (
    Task("huber_of_logs", "A loss that outliers do not spoil", asks="predicted, measured, delta",
         also=(keeps_type, gradients), example=(HUBER,)),
    Task("biweight_of_logs", "A loss that ignores outliers", asks="predicted, measured, tuning",
         also=(keeps_type,), example=(BIWEIGHT,)),
    Task("effective_tokens", "Read it again", asks="epochs, unique, fade", also=(keeps_type,), example=(REPEATED,)),
    Task("transferred_data", "What pretraining is worth", asks="finetuning, parameters, k, alpha, beta",
         also=(keeps_type,), example=(TRANSFER,)),
    Task("steps_and_examples", "The best size of a batch", asks="batch, fewest_steps, fewest_examples",
         also=(keeps_type,), example=(BATCH,)),
    Task("noise_scale", "The noise in the gradient", asks="gradients, batch", also=(keeps_type,), example=(NOISY,)),
    Task("law_with_floor", "A floor", asks="x, y, floors", also=(keeps_type,), example=(FLOOR,)),
    Task("law_with_break", "A break", asks="x, y, breaks", also=(keeps_type,), example=(BREAK,)),
    Task(
        "study",
        "A budget that binds",
        asks="budget, N, D, L, larger_N, larger_D",
        seconds=TRAINING_SECONDS,
        measure=Measure("mean relative error in percent, for the hardest of four laws", lower_is_better=True),
        checks=(
            misses("Larger runs: within 5 % on average", 7, below=0.05),
            misses("Larger runs: within 3 % on average", 7, below=0.03),
            misses("Larger runs: within 2 % on average", 8, below=0.02),
        ),
    ),
)  # fmt: skip
ASSIGNMENT = {task.name: task for task in SHOWN}
