"""How many images a second our sources make, beside the same images made one by one.

    python -m course_lib.tools.bench_images

One thread, one process; the contestants take turns. The twin draws every image on its own, so that what is measured is
what the work on whole batches gains.
"""

import os
import platform
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from course_lib.data.crops import PhotoCrops
from course_lib.data.digits import CleanDigits
from course_lib.data.scenes import DigitScenes
from course_lib.tools.race import race

COUNT = 512  # images in a batch
TARGET = 5000  # images a second, for those of 32 pixels


@dataclass(frozen=True, kw_only=True)
class Rate:
    """Images a second, ours and one by one, and the median ratio of the seconds of a round (ours / one by one)."""

    what: str
    ours: float
    one_by_one: float
    ratio: float
    target: float | None  # images a second that ours should make at least


SOURCES: dict[str, tuple[Any, bool]] = {  # and whether the target holds for it
    "clean digits, 28 px": (CleanDigits(split="train"), True),
    "digit scenes, 32 px": (DigitScenes(split="train", clutter=(0.0, 1.0)), True),
    "digit scenes, 32 px, in colour": (DigitScenes(split="train", colour=True), True),
    "digit scenes, 32 px, 1-2 digits": (DigitScenes(split="train", digits=(1, 2)), True),
    "digit scenes, 48 px, 1-3 digits": (DigitScenes(split="train", digits=(1, 3), size=48), False),
    "digit scenes, 64 px, 1-3 digits, in colour": (
        DigitScenes(split="train", digits=(1, 3), size=64, colour=True),
        False,
    ),
    "photo crops, 32 px": (PhotoCrops(split="train"), True),
    "photo crops, 32 px, in colour": (PhotoCrops(split="train", colour=True), True),
}


def one_by_one(source: Any, count: int) -> list[Any]:
    """`count` batches of a single image, each of its own seed."""
    return [source.batch(1, seed) for seed in range(count)]


def measure(*, count: int = COUNT, seconds: float = 6.0) -> Iterator[Rate]:
    """The lines of the table. Raises RuntimeError if a single image is not the first of its seed's batch."""
    few = max(1, count // 16)  # the twin is slow
    for what, (source, has_target) in SOURCES.items():
        for seed, single in enumerate(one_by_one(source, 3)):
            agree(single, source.batch(9, seed))
        times = race(
            {
                "ours": lambda source=source: source.batch(count, 0),
                "one by one": lambda source=source: one_by_one(source, few),
            },
            fewest=5,
            seconds=seconds,
            warm_up=1,
        )
        yield Rate(
            what=what,
            ours=count / times.median("ours"),
            one_by_one=few / times.median("one by one"),
            ratio=times.ratio("ours", "one by one") * few / count,
            target=TARGET if has_target else None,
        )


def agree(single: tuple, batch: tuple) -> None:
    """Raises RuntimeError unless the single image is the batch's first but for rounding."""
    for one, many in zip(single, batch, strict=True):
        if not torch.allclose(one[0].float(), many[0].float(), atol=1e-4):
            raise RuntimeError("One by one the images are others: the race would mean nothing.")


def main() -> int:
    """Prints the table; returns 0 if every source of 28 or 32 px makes as many images a second as it should, else 1."""
    print(f"Generated images, one thread, batches of {COUNT}: medians over rounds, images a second.")
    print(f"torch {torch.__version__}, {os.cpu_count()} cores, {platform.machine()}\n")
    print(f"{'':<44}{'ours':>9}{'one by one':>12}{'time, ours/one by one':>23}")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    reached = True
    try:
        for rate in measure():
            print(f"{rate.what:<44}{rate.ours:9,.0f}{rate.one_by_one:12,.0f}{rate.ratio:23.3f}", flush=True)
            reached &= rate.target is None or rate.ours >= rate.target
    finally:
        torch.set_num_threads(threads)
    print(f"\nSmall images should come at {TARGET:,} a second at least: they {'do' if reached else 'DO NOT'}.")
    return 0 if reached else 1


if __name__ == "__main__":
    raise SystemExit(main())
