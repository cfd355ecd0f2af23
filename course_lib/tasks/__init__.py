"""Checks of properties that a learner's own code should have; see `core` for how they work."""

from course_lib.tasks.core import Check, Finding, Report, run_checks

__all__ = ["Check", "Finding", "Report", "run_checks"]
