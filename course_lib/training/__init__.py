"""Training: a loop to be read, and what it needs to be repeated, watched and resumed."""

from course_lib.training.batches import Rollouts, bucketed_batches, shuffled_batches, text_windows
from course_lib.training.config import FitConfig
from course_lib.training.history import History
from course_lib.training.loop import fit
from course_lib.training.seeding import seed_everything, seeded
from course_lib.training.simple import simple_fit

__all__ = [
    "FitConfig",
    "History",
    "Rollouts",
    "bucketed_batches",
    "fit",
    "seed_everything",
    "seeded",
    "simple_fit",
    "shuffled_batches",
    "text_windows",
]
