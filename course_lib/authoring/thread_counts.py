"""A lesson's claims on machines of several sizes: a learner's torch has as many threads as her machine has cores."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from course_lib.commands.execute import CELL_TIMEOUT, execute_notebook, reproducible_environment
from course_lib.tasks.claims import Measured, measurements


@dataclass(frozen=True)
class Told:
    """A claim as one run recorded it."""

    claim: str
    holds: bool
    measured: tuple[Measured, ...]


def read_claims(env: Mapping[str, str]) -> list[Told]:
    """What a run in this environment claimed, in order; to be read before `reproducible_environment` removes it."""
    path = Path(env["COURSE_CLAIMS"])
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    entries = map(json.loads, lines)
    return [
        Told(entry["claim"], entry["holds"], tuple(Measured(*each) for each in entry["measured"])) for entry in entries
    ]


def shipped_measurements(claims: Sequence[Told]) -> dict[str, str]:
    """For each claim that says so, what was measured: what a built notebook keeps for learners to compare with."""
    return {told.claim: "; ".join(f"{each.value:.4g}" for each in told.measured) for told in claims if told.measured}


def claims_by_threads(
    path: str | os.PathLike, threads: Sequence[int], *, timeout: float = CELL_TIMEOUT
) -> tuple[dict[int, list[Told]], list[str]]:
    """Execute a notebook once for each number of threads; no claim stops it. Also returns the errors that did."""
    found, errors = {}, []
    for count in threads:
        with reproducible_environment() as env:
            env |= {name: str(count) for name in env if name.endswith("_NUM_THREADS")}
            # Also where the machine has fewer cores: as many threads as asked for, and none that waits by computing.
            env |= {"COURSE_STRICT": "0", "MKL_DYNAMIC": "FALSE", "OMP_WAIT_POLICY": "PASSIVE"}
            report = execute_notebook(path, timeout=timeout, env=env)
            found[count] = read_claims(env)
        if report.error:
            errors.append(f"{_threads(count)}: {report.error}")
    return found, errors


def table(found: Mapping[int, Sequence[Told]]) -> list[str]:
    """Lines that say of each claim whether it held and what was measured, with each number of threads.

    A claim is close where its smallest margin is smaller than what it changes by from one number of threads to another.
    """
    lines = []
    for claim in dict.fromkeys(told.claim for claims in found.values() for told in claims):
        runs = [(count, told) for count, claims in found.items() for told in claims if told.claim == claim]
        held, close = all(told.holds for _, told in runs), is_close([told for _, told in runs])
        lines.append(f"{'✗' if not held else '~' if close else '✓'} {claim}{' (close)' if held and close else ''}")
        lines += [
            f"    {_threads(count)}: {'held' if told.holds else 'DID NOT HOLD'}"
            + (f", {measurements(told.measured)}" if told.measured else "")
            for count, told in runs
        ]
    return lines


def is_close(runs: Sequence[Told]) -> bool:
    """Whether one of a claim's margins is smaller than the spread of that margin over the runs."""
    margins = [[each.margin for each in one] for one in zip(*(told.measured for told in runs), strict=False)]
    return any(min(one) < max(one) - min(one) for one in margins)


def _threads(count: int) -> str:
    return f"{count} thread{'s' * (count != 1)}"
