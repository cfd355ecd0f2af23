"""Where cheap attention begins to pay: operations of one causal head by length, and its time as a ratio to softmax.

python -m course_lib.bench.lengths
"""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from course_lib.bench.race import race
from course_lib.functional.attention import attention
from course_lib.functional.cost import count_flops
from course_lib.functional.linear_attention import linear_attention
from course_lib.functional.local_attention import local_attention

LENGTHS = (16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
WIDTH, WINDOW = 32, 16  # features of a head; keys that a local one sees on either side
KINDS: dict[str, Callable[..., Tensor]] = {
    "softmax": attention,
    "local": partial(local_attention, window=WINDOW),
    "linear": linear_attention,
}


def calls(length: int) -> dict[str, Callable[[], Tensor]]:
    """One forward pass of each kind over the same queries, keys and values."""
    q, k, v = torch.randn(3, 1, 1, length, WIDTH, generator=torch.Generator().manual_seed(0)).unbind(0)
    return {name: partial(attend, q, k, v, causal=True) for name, attend in KINDS.items()}


def operations(length: int) -> dict[str, int]:
    """Floating-point operations of the matrix products, masked ones included: the same on every machine."""
    return {name: count_flops(call) for name, call in calls(length).items()}


def pays_from(name: str) -> int:
    """The first of the lengths from which on a kind needs fewer operations than softmax.

    Raises ValueError for a kind that never does.
    """
    saves = [operations(length)[name] < operations(length)["softmax"] for length in LENGTHS]
    if not saves[-1]:
        raise ValueError(f"{name!r} needs no fewer operations than softmax, even for {LENGTHS[-1]} tokens")
    return LENGTHS[len(saves) - saves[::-1].index(False)]


def main() -> int:
    """Prints the table: operations a token, and seconds divided by those of softmax in the same rounds."""
    print(
        f"one causal head of {WIDTH} features, {torch.get_num_threads()} thread(s); operations a token, time / softmax"
    )
    print(f"{'tokens':>8}" + "".join(f"{name:>12}{'':>8}" for name in KINDS))
    for length in LENGTHS:
        counted, timed = operations(length), race(calls(length), most=41, seconds=2.0)
        parts = [f"{counted[name] // length:>12,}{timed.ratio(name, 'softmax'):>8.2f}" for name in KINDS]
        print(f"{length:>8}" + "".join(parts), flush=True)
    print(
        "".join(
            f"{name} needs fewer operations than softmax from {pays_from(name)} tokens on. "
            for name in KINDS
            if name != "softmax"
        )
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
