"""What a learner reads when a cell stops before its end: one sentence for an interrupt, her own lines for her error."""

from types import TracebackType

from IPython import get_ipython
from IPython.core.interactiveshell import InteractiveShell

INTERRUPTED = "Interrupted: this cell stopped before it had finished. Run it again when you are ready."


class LearnersError(RuntimeError):
    """A function of the learner stopped while the lesson ran on it; its cause is her error."""

    def _render_traceback_(self) -> list[str]:  # what IPython asks for
        error = self.__cause__
        own = error.__traceback__.tb_next  # the first frame is the course's
        lines = get_ipython().InteractiveTB.structured_traceback(type(error), error, own, tb_offset=0)
        return [f"{self}\n", *lines]


def shorten_interrupts() -> None:
    """From now on an interrupted cell of this kernel shows one sentence, not the frames of the training in it."""
    if shell := get_ipython():
        shell.set_custom_exc((KeyboardInterrupt,), _say_interrupted)


def _say_interrupted(
    shell: InteractiveShell,
    kind: type[BaseException],
    interrupt: KeyboardInterrupt,
    traceback: TracebackType,
    tb_offset: int | None = None,
) -> None:
    vars(interrupt)["_render_traceback_"] = lambda: [INTERRUPTED]  # what IPython asks for
    shell.showtraceback((kind, interrupt, traceback))
