"""Lesson 09, scaling laws: what its assignment's check cells ask; the grader's tables are in hidden/09."""

import torch
from torch import Tensor

from course_lib.functional.scaling import ScalingLaw
from course_lib.tasks import Check, Draw, Finding, Task, gradients, keeps_type
from course_lib.tasks.core import Probe

NOISE = 0.004  # standard deviation of the logarithm of a loss
FAMILIES = 4  # of models, that a prediction is tried with

FAR = Finding(
    "predictions far off",
    "The larger runs come out far from what you say.",
    "Has your law a floor, a term for the size and one for the text? Compare it with the given runs first.",
)
NEAR = Finding(
    "predictions not close",
    "Your predictions are in the right region, but a law that fits all runs at once comes closer.",
    "Five numbers, fitted together in logarithms, from several starts: $E$ is at most the smallest loss.",
)


class Family:
    """Trainings whose losses follow a law that nobody is told, up to noise."""

    def __init__(self, draw: Draw):
        self.draw = draw
        E, A, B, alpha, beta = torch.rand(5, generator=draw.generator).double().tolist()
        self.law = ScalingLaw(
            E=1.2 + 0.8 * E, A=60 + 80 * A, B=300 + 500 * B, alpha=0.35 + 0.12 * alpha, beta=0.38 + 0.12 * beta
        )

    def runs(self, sizes: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """N, D and L of every size on every amount."""
        N, D = (every.flatten() for every in torch.meshgrid(sizes, tokens, indexing="ij"))
        noise = torch.randn(len(N), generator=self.draw.generator, dtype=torch.float64)
        return N, D, self.law(N, D) * (NOISE * noise).exp()


def small(family: Family) -> tuple[Tensor, Tensor, Tensor]:
    """Thirty runs to learn from."""
    return family.runs(torch.logspace(4, 6, 6).double(), torch.logspace(5.5, 7.5, 5).double())


def large(family: Family) -> tuple[Tensor, Tensor, Tensor]:
    """Runs of up to ten times the size, and ten times the text."""
    return family.runs(torch.logspace(6.3, 7, 3).double(), torch.logspace(7.7, 8.5, 3).double())


def misses(name: str, points: float, *, below: float) -> Check:
    """On the large runs of every family the mean relative error is below this."""

    def errors(probe: Probe) -> list[float]:
        found = []
        for _ in range(FAMILIES):
            family = Family(probe.draw)
            known, (N, D, L) = small(family), large(family)
            said = probe.tensor(*known, N, D, shape=tuple(L.shape)).double()
            found.append(float((said / L - 1).abs().mean()))
        return found

    def run(probe: Probe) -> list[Finding]:
        worst = max(probe.once("errors", errors))
        return [] if worst < below else [(FAR if worst > 0.05 else NEAR)]

    return Check(name=name, points=points, run=run, detects=(FAR.misconception, NEAR.misconception))


# the examples -----------------------------------------------------------------------------------------------

HUBER = (([2.718281828, 1.0, 1.0], [1.0, 1.0, 1.2214028], 0.1), 0.11)
REPEATED = (([3.0, 1.0], 100.0, 2.0), [226.424, 100.0])
BATCH = (([32.0, 64.0], 1000.0, 64_000.0), [[3000.0, 2000.0], [96_000.0, 128_000.0]])
FLOOR = (([1.0, 10.0, 100.0], [5.0, 1.4, 1.04], [0.0, 1.0]), [4.0, 1.0, 1.0])

SHOWN = (
    Task("huber_of_logs", "A loss that outliers do not spoil", asks="predicted, measured, delta",
         also=(keeps_type, gradients), example=(HUBER,)),
    Task("effective_tokens", "Read it again", asks="epochs, unique, fade", also=(keeps_type,), example=(REPEATED,)),
    Task("steps_and_examples", "The best size of a batch", asks="batch, fewest_steps, fewest_examples",
         also=(keeps_type,), example=(BATCH,)),
    Task("law_with_floor", "A floor", asks="x, y, floors", also=(keeps_type,), example=(FLOOR,)),
    Task(
        "predict",
        "Ten times larger",
        asks="N, D, L, larger_N, larger_D",
        seconds=60.0,
        checks=(
            misses("Larger runs: within 5 % on average", 10, below=0.05),
            misses("Larger runs: within 3 % on average", 12, below=0.03),
        ),
    ),
)  # fmt: skip
ASSIGNMENT = {task.name: task for task in SHOWN}
