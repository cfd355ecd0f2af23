"""The table of a benchmark: races between ours and a peer, section by section, each with the ratio aimed at."""

import math
import os
import platform
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch

from course_lib.bench.race import Race


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of the table: what ran, median milliseconds of both, and their ratio with its target."""

    what: str
    ours: float
    theirs: float
    ratio: float
    target: float | None  # the ratio that is aimed at, at most; None: for information

    @property
    def reached(self) -> bool:
        return self.target is None or self.ratio <= self.target


@dataclass(frozen=True, kw_only=True)
class Section:
    """Rows that belong together, measured as they are asked for, and the geometric mean that is aimed at, if any."""

    title: str
    rows: Callable[[], Iterator[Row]]
    mean: float | None = None


def row(what: str, result: Race, *, target: float | None) -> Row:
    """A race between "ours" and "theirs" as a line of the table."""
    return Row(
        what=what,
        ours=1e3 * result.median("ours"),
        theirs=1e3 * result.median("theirs"),
        ratio=result.ratio("ours", "theirs"),
        target=target,
    )


def geometric_mean(ratios: Sequence[float]) -> float:
    return math.exp(sum(math.log(ratio) for ratio in ratios) / len(ratios))


def print_table(sections: Sequence[Section]) -> int:
    """Measures and prints all sections; returns 0 if every target was reached, otherwise 1."""
    machine = f"{os.cpu_count()} cores, {platform.machine()}"
    print(f"torch {torch.__version__}, {torch.get_num_threads()} thread(s), {machine}, float32")
    print("ratio = median over the rounds of ours / theirs; target = the largest ratio that is aimed at\n")
    print(f"{'milliseconds':<56}{'ours':>10}{'theirs':>10}{'ratio':>8}{'target':>8}")
    missed = sum(print_section(section) for section in sections)
    print(f"\n{'Every target was reached.' if not missed else f'{missed} target(s) missed.'}")
    return 1 if missed else 0


def print_section(section: Section) -> int:
    """Measures and prints one section; returns how many targets it missed."""
    print(section.title)
    ratios, missed = [], 0
    for each in section.rows():
        ratios.append(each.ratio)
        missed += not each.reached
        target = "       -" if each.target is None else f"{each.target:8.2f}"
        figures = f"{each.ours:10.2f}{each.theirs:10.2f}{each.ratio:8.3f}{target}"
        print(f"  {each.what:<54}{figures}{'' if each.reached else '  MISSED'}", flush=True)
    if section.mean is not None:
        mean = geometric_mean(ratios)
        missed += mean > section.mean
        print(f"  geometric mean of the models' ratios: {mean:.3f}, at most {section.mean} aimed at")
    return missed
