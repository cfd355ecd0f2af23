"""The search behind lesson 05's translators: learning rates at equal computing time, judged on validation sentences.

    course bench translation

For each kind of attention and each learning rate: how long a step takes, how many steps fit into the budget, and the
BLEU that two seeds reach. The lesson takes the best rate of each kind, and the step counts of equal time.
"""

from itertools import product

import numpy as np
from rich.console import Console
from rich.table import Table

from course_lib.training.parallel import run_jobs
from course_lib.training.translation import score_translator, splits, train_translator

KINDS = ("none", "additive", "general")
RATES = (2.5e-3, 5e-3, 1e-2)
SEEDS = (0, 1)
BUDGET = 14.0  # CPU seconds of training for each run
TRIAL_STEPS = 60


def main(*, budget: float = BUDGET) -> int:
    """Prints the table; returns 0."""
    console = Console()
    trials = run_jobs(train_translator, [{"attention": kind, "steps": TRIAL_STEPS} for kind in KINDS])
    pace = {run.recipe.attention: run.history.cpu_seconds[-1] / TRIAL_STEPS for run in trials}
    steps = {kind: round(budget / pace[kind]) for kind in KINDS}
    jobs = [
        {"attention": kind, "learning_rate": rate, "seed": seed, "steps": steps[kind]}
        for kind, rate, seed in product(KINDS, RATES, SEEDS)
    ]
    runs = run_jobs(train_translator, jobs)
    table = Table(title=f"Translators after about {budget:g} CPU seconds of training each: validation BLEU")
    for column in ("attention", "ms a step", "steps", "learning rate", "BLEU (one seed each)", "CPU seconds"):
        table.add_column(column)
    for kind, rate in product(KINDS, RATES):
        group = [run for run in runs if (run.recipe.attention, run.recipe.learning_rate) == (kind, rate)]
        scores = [score_translator(run.model, splits().validation).bleu for run in group]
        seconds = np.mean([run.history.cpu_seconds[-1] for run in group])
        bleu = ", ".join(f"{score:.1f}" for score in scores)
        table.add_row(kind, f"{1000 * pace[kind]:.1f}", str(steps[kind]), f"{rate:g}", bleu, f"{seconds:.1f}")
    console.print(table)
    return 0
