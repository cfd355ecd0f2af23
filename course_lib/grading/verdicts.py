"""Verdicts as they lie in the course directory: one JSON file for each student."""

import json
from collections.abc import Mapping
from typing import Any

from course_lib.grading.folders import Folders, read_small
from course_lib.grading.judge import SANDBOXED

LARGEST = 50_000_000  # bytes


def read_verdict(folders: Folders, student: str, assignment: str) -> dict[str, Any] | None:
    """What the judge found in a student's submission; None if there is no verdict that can be read."""
    content = read_small(folders.verdict(student, assignment), LARGEST)
    try:
        verdict = json.loads(content) if content is not None else None
    except ValueError:
        return None
    return verdict if isinstance(verdict, dict) and verdict.get("schema") == 1 else None


def is_trusted(verdict: Mapping[str, Any] | None) -> bool:
    """Whether the submission was judged without a sandbox."""
    return verdict is not None and verdict.get("sandbox") != SANDBOXED
