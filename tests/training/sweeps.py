"""Functions for the tests of sweep: at the top level of a module, where a new process finds them."""

import math
from pathlib import Path


def note_and_square(folder, number, seed):
    if (Path(folder) / f"stop-at-{number}").exists():
        raise KeyboardInterrupt
    if number < 0:
        raise ZeroDivisionError("planted")
    with open(Path(folder) / str(number), "a") as file:
        file.write("x")
    return {"square": number**2}


def odd_result(kind):
    return {"value": {"nan": math.nan, "object": object()}[kind]}
