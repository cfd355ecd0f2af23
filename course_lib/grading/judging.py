"""Judging one submission, in whichever process: its sandbox is kept for the next."""

import socket
import threading
from pathlib import Path
from typing import Any

from course_lib.grading.intake import Submission
from course_lib.grading.judge import judge, whole_verdict
from course_lib.grading.sandbox import BoxLost, SandboxError, Zygote
from course_lib.grading.spec import AssignmentFiles, load

_of_this_thread = threading.local()
_hidden: tuple[Path, ...] = ()  # folders that no box may see, wherever they lie


def judge_one(submission: Submission, files: AssignmentFiles, key: bytes, trusted: bool) -> dict[str, Any]:
    """The verdict on one submission; what executors run, here or elsewhere. The sandbox is kept for the next.

    Raises SandboxError if there is no sandbox; any other error is a matter of this submission and becomes a note.
    """
    try:
        return judge(submission, files, key=key, zygote=_zygote(trusted))
    except BoxLost:
        pass
    except SandboxError:
        _drop_zygote(trusted)
    except Exception as error:
        return lost_verdict(submission, files, trusted=trusted, note=_failure(error))
    zygote = _zygote(trusted)
    try:
        return judge(submission, files, key=key, zygote=zygote)
    except Exception as error:
        _drop_zygote(trusted)
        return lost_verdict(submission, files, trusted=trusted, note=_failure(error))


def _failure(error: Exception) -> str:
    return f"It could not be judged ({type(error).__name__}). Look at it by hand, or judge it again with --again."


def lost_verdict(submission: Submission, files: AssignmentFiles, *, trusted: bool, note: str) -> dict[str, Any]:
    """The verdict on a submission that could not be judged: no points, and a person has to look at it."""
    tasks = {}
    for task in load(files).assignment.tasks:
        checks = [
            {"name": check.name, "points": 0.0, "possible": check.points, "passed": False, "findings": []}
            for check in task.checks
        ]
        tasks[task.name] = {
            "points": 0.0,
            "possible": task.points,
            "checks": checks,
            "answered": task.name in submission.answers,
            "ended": None,
            "printed": "",
        }
    return whole_verdict(submission, files, tasks, trusted=trusted, attention=[note])


def _zygote(trusted: bool) -> Zygote:
    kept = _of_this_thread.__dict__.setdefault("zygotes", {})  # a zygote ends with the thread that started it
    if trusted not in kept:
        kept[trusted] = Zygote(trusted=trusted, hidden=_hidden)
    return kept[trusted]


def borrow_zygote(control: socket.socket) -> None:
    """Asks a zygote of another process for boxes, until it fails."""
    _of_this_thread.zygotes = {False: Zygote(hidden=_hidden, borrowed=control)}


def _drop_zygote(trusted: bool) -> None:
    zygote = _of_this_thread.__dict__.get("zygotes", {}).pop(trusted, None)
    if zygote is not None:
        zygote.close()


def hide(*folders: Path) -> None:
    """Keeps these folders from all boxes of sandboxes that this process starts from now on."""
    global _hidden
    _hidden = folders
