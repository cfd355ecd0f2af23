"""Tasks as tables: what a learner's own code is asked, and what is said of whatever goes wrong; see `table`."""

from course_lib.tasks.core import Check, Draw, Report, run_checks
from course_lib.tasks.findings import Comparison, Finding, Row
from course_lib.tasks.table import TRAINING_SECONDS, Case, Mistake, Task, TaskInput, gradients, keeps_type

__all__ = [
    "Case",
    "Check",
    "Comparison",
    "Draw",
    "Finding",
    "TaskInput",
    "Mistake",
    "Report",
    "Row",
    "TRAINING_SECONDS",
    "Task",
    "gradients",
    "keeps_type",
    "run_checks",
]
