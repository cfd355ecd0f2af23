"""The search behind lesson 05's comparison of heads: every number of heads at every learning rate, on validation.

course bench heads
"""

from itertools import product

from rich.console import Console
from rich.table import Table

from course_lib.lessons.lesson_05.neighbours import TASKS, train_reader
from course_lib.training.parallel import run_jobs

HEADS = (1, 2, 4)
RATES = (0.01, 0.02, 0.04, 0.06)
SEEDS = (0, 1)


def main() -> int:
    """Prints the table; returns 0."""
    grid = list(product(TASKS, HEADS, RATES, SEEDS))
    jobs = [{"task": task, "num_heads": h, "learning_rate": rate, "seed": seed} for task, h, rate, seed in grid]
    results = dict(zip(grid, run_jobs(train_reader, jobs), strict=True))
    table = Table(title="Neighbours named right on validation sentences (%), one number for each seed")
    for column in ("task", "heads", *(f"rate {rate:g}" for rate in RATES)):
        table.add_column(column)
    for task, heads in product(TASKS, HEADS):
        cells = (
            ", ".join(f"{100 * results[task, heads, rate, seed].validation:.1f}" for seed in SEEDS) for rate in RATES
        )
        table.add_row(task, str(heads), *cells)
    Console().print(table)
    return 0
