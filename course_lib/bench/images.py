"""How many images a second our sources make, beside the same images made one by one.

One thread, one process; the variants take turns. The twin draws every image on its own, so that what is measured is
what the work on whole batches gains.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch

from course_lib.bench.race import race
from course_lib.bench.table import Row, Section, print_table, row
from course_lib.data.crops import PhotoCrops
from course_lib.data.digits import CleanDigits
from course_lib.data.scenes import DigitScenes

COUNT = 512  # images in a batch
TARGET = 0.5  # of the time that they take one by one


SOURCES: dict[str, Any] = {
    "clean digits, 28 px": CleanDigits(split="train"),
    "digit scenes, 32 px": DigitScenes(split="train", clutter=(0.0, 1.0)),
    "digit scenes, 32 px, in colour": DigitScenes(split="train", colour=True),
    "digit scenes, 32 px, 1-2 digits": DigitScenes(split="train", digits=(1, 2)),
    "digit scenes, 48 px, 1-3 digits": DigitScenes(split="train", digits=(1, 3), size=48),
    "digit scenes, 64 px, 1-3 digits, in colour": DigitScenes(split="train", digits=(1, 3), size=64, colour=True),
    "photo crops, 32 px": PhotoCrops(split="train"),
    "photo crops, 32 px, in colour": PhotoCrops(split="train", colour=True),
}


def one_by_one(source: Any, count: int) -> list[Any]:
    """`count` batches of a single image, each of its own seed."""
    return [source.batch(1, seed) for seed in range(count)]


def rows(*, count: int = COUNT, seconds: float = 6.0) -> Iterator[Row]:
    """Milliseconds for a thousand images. Raises RuntimeError if a single image is not the first of its batch."""
    few = max(1, count // 16)  # the twin is slow
    for what, source in SOURCES.items():
        for seed, single in enumerate(one_by_one(source, 3)):
            agree(single, source.batch(9, seed))
        variants = {
            "ours": lambda source=source: source.batch(count, 0),
            "theirs": lambda source=source: one_by_one(source, few),
        }
        made = row(what, race(variants, fewest=5, seconds=seconds, warm_up=1), target=None)
        ours, theirs = 1e3 * made.ours / count, 1e3 * made.theirs / few
        yield replace(made, ours=ours, theirs=theirs, ratio=made.ratio * few / count, target=TARGET)


def agree(single: tuple, batch: tuple) -> None:
    """Raises RuntimeError unless the single image is the batch's first but for rounding."""
    for one, many in zip(single, batch, strict=True):
        if not torch.allclose(one[0].float(), many[0].float(), atol=1e-4):
            raise RuntimeError("One by one the images are others: the race would mean nothing.")


def main() -> int:
    """Prints the table; returns 0 if every source gains as much by whole batches as it should, otherwise 1."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return print_table([Section(title="A thousand images in batches, against one by one, one thread", rows=rows)])
    finally:
        torch.set_num_threads(threads)
