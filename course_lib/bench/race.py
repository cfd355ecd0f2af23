"""Comparing speeds fairly: variants take turns in one process, so that all meet the same load of the machine."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median

FEWEST, MOST = 21, 210  # rounds: more where the machine is noisy or two variants are close
SECONDS = 15.0  # after which a close race ends, once it has had the fewest rounds


@dataclass(frozen=True, kw_only=True)
class Race:
    """The seconds that each variant took in each round."""

    seconds: dict[str, list[float]]

    @property
    def rounds(self) -> int:
        return len(next(iter(self.seconds.values())))

    def median(self, name: str) -> float:
        """Median seconds of a variant."""
        return median(self.seconds[name])

    def ratio(self, name: str, peer: str) -> float:
        """Median over the rounds of a variant's time divided by its peer's in the same round."""
        return median(a / b for a, b in zip(self.seconds[name], self.seconds[peer], strict=True))


def race(
    runs: Mapping[str, Callable[[], object]],
    *,
    fewest: int = FEWEST,
    most: int = MOST,
    seconds: float | None = None,
    warm_up: int = 2,
) -> Race:
    """Lets the variants take turns until it is clear which of the first two is faster, or time is over."""
    first, second, *_ = runs
    times: dict[str, list[float]] = {name: [] for name in runs}
    for run in runs.values():
        for _ in range(warm_up):
            run()
    deadline = time.monotonic() + (SECONDS if seconds is None else seconds)
    for count in range(1, most + 1):
        # who follows whom changes each round: a neighbour's leftovers in the cache favour nobody
        for name in runs if count % 2 else reversed(runs):
            begin = time.perf_counter()
            runs[name]()
            times[name].append(time.perf_counter() - begin)
        over = is_clear(times[first], times[second]) or time.monotonic() > deadline
        if over and count >= fewest:
            break
    return Race(seconds=times)


def is_clear(ours: list[float], theirs: list[float]) -> bool:
    """Whether one of the two won more rounds than a fair coin would: three standard deviations from half of them."""
    won = sum(a < b for a, b in zip(ours, theirs, strict=True))
    return abs(won - len(ours) / 2) > 3 * len(ours) ** 0.5 / 2
