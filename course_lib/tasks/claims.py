"""Claims that a lesson makes about its own results, checked where the reader stands."""


class ClaimError(AssertionError):
    """A result of the lesson did not come out as the lesson says it does."""

    def _render_traceback_(self) -> list[str]:
        # IPython asks for this: the reader needs the sentence, not the frames of this module.
        return str(self).splitlines()


def claim(holds: object, sentence: str, *, measured: object = None) -> None:
    """Print `sentence` with a tick if `holds`, and stop the notebook with an explanation if not.

    `sentence` is printed on every machine alike, so it names the threshold and never a number measured in
    the run; `measured` is what the run gave, a value or a text with its unit, and appears only on failure.
    Raises ClaimError if the claim does not hold, ValueError if `holds` is not a single truth value or
    `sentence` is empty.
    """
    if not sentence.strip():
        raise ValueError("a claim needs a sentence that says what is claimed; the one given is empty")
    try:
        true = bool(holds)
    except (ValueError, RuntimeError, TypeError) as error:
        shape = tuple(getattr(holds, "shape", ()))
        raise ValueError(
            f"a claim is one yes or no, but {type(holds).__name__} of shape {shape} was given for "
            f"{sentence!r}; reduce it first, for example with .all()"
        ) from error
    if not true:
        raise ClaimError(_explanation(sentence, measured))
    print(f"✓ {sentence}")


def _explanation(sentence: str, measured: object) -> str:
    lines = ["✗ This result did not come out as the lesson expects.", f"  Expected: {sentence}"]
    if measured is not None:
        lines.append(f"  Measured: {measured}")
    lines += [
        "  What may be the reason:",
        "  - a cell above was changed, left out or run twice: restart the kernel and run all cells;",
        "  - an experiment of yours changed a variable that the lesson goes on to use;",
        "  - another machine or library version: compare with `course doctor` and its red lines.",
    ]
    return "\n".join(lines)
