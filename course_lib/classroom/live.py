"""Training before the learner's eyes: the loss so far and what the model makes of one example, redrawn in one place."""

import html
import os
import time
from collections.abc import Callable
from statistics import fmean

import ipywidgets as widgets
import torch
from matplotlib.figure import Figure
from torch import nn

from course_lib.classroom.choices import button
from course_lib.classroom.output import BLUE, in_notebook, picture_html, present
from course_lib.training.progress import Line, Progress, Silent
from course_lib.training.seeding import random_state, restore_random_state

SECONDS_BETWEEN_DRAWINGS = 2.0
SHARE_OF_TIME = 0.1  # that drawing may take
POINTS = 120  # of the curve, each the mean of some steps
WIDTH, HEIGHT = 320, 180  # of the curve, in pixels


def watch(
    model: nn.Module,
    *,
    example: Callable[[nn.Module], str | Figure] | None = None,
    title: str = "training",
    height: int = 320,
) -> Progress:
    """Return a display that shows the training of `model`; silent without a kernel and with COURSE_PROGRESS=off.

    `example(model)` is HTML or a Figure, made without gradients, in evaluation mode and with random numbers of its own:
    the training ends with the same weights, bit for bit, as one that nobody watches. `height` is how many pixels the
    display takes at least, so that a longer text moves nothing; whatever is higher gets its own height.
    """
    if not in_notebook() or os.environ.get("COURSE_PROGRESS", "").lower() == "off":
        return Silent(title)
    return LiveTraining(model, example, title, height)


class LiveTraining(Line):
    """A progress line over a curve of the loss and an example; the last drawing stays.

    JupyterLab hands the press of the button to a thread of its own, so that it is heard while the cell runs.
    """

    stops = 0  # trainings that a learner has stopped in this kernel

    def __init__(self, model: nn.Module, example: Callable[..., str | Figure] | None, title: str, height: int) -> None:
        super().__init__(title)
        self.model, self.example, self.height = model, example, height
        self.losses: list[float] = []
        self.box = widgets.HTML()
        self.button = button("Stop here", self.stop)
        self.button.layout.display = "none"  # until the training asks whether it is stopped
        self.is_stopped = False
        self.wait, self.closed = 0.0, False
        self.latest: tuple[float, float, str] | None = None

    def update(self, done: float, total: float, **details: float | str) -> None:
        if isinstance(details.get("loss"), float):
            self.losses.append(details["loss"])
        self.first_done = done if self.first_done is None else self.first_done
        now = time.monotonic()
        self.latest = (done, total, self.text(done, total, now, details))
        if now - self.last_drawn >= self.wait:
            self.draw(*self.latest)

    def draw(self, done: float, total: float, text: str) -> None:
        started = time.monotonic()
        if self.last_drawn == float("-inf"):
            present("", "", widget=widgets.VBox([self.box, self.button]))
        shown = self.show_example() if self.example else ""
        title = html.escape(self.title)
        self.box.value = (
            f'<div style="min-height:{self.height}px" role="group" aria-label="{title}">'
            f'<div><progress value="{done:g}" max="{total:g}" aria-label="{title}"></progress> '
            f"{title} · {html.escape(text)}</div>"
            f'<div style="display:flex;flex-wrap:wrap;gap:1.5em;margin-top:0.5em">'
            f'<div style="flex:none;width:{WIDTH}px;height:{HEIGHT}px">{loss_curve(self.losses)}</div>'
            f'<div style="flex:1 1 20em;min-width:0;line-height:1.45">{shown}</div></div></div>'
        )
        self.last_drawn = time.monotonic()
        self.wait = max(SECONDS_BETWEEN_DRAWINGS, (self.last_drawn - started) / SHARE_OF_TIME)

    def stop(self) -> None:
        """Let the training end after this step, with what it has learned so far."""
        if not self.is_stopped:
            self.is_stopped = True
            LiveTraining.stops += 1

    @property
    def stopped(self) -> bool:
        """Whether the learner has pressed the button, which is there from the first time that this is asked."""
        if self.button.layout.display and not self.closed:
            self.button.layout.display = None
        return self.is_stopped

    def close(self) -> None:
        self.closed = True
        self.button.layout.display = "none"
        if self.latest and self.last_drawn > float("-inf"):
            self.draw(*self.latest)

    def show_example(self) -> str:
        """Return what the model makes of the example now, as HTML, and leave the model as it was."""
        state, modes = random_state(), [(module, module.training) for module in self.model.modules()]
        self.model.eval()
        try:
            with torch.no_grad():
                shown = self.example(self.model)
        except Exception as error:  # a picture that fails is no reason to lose the training
            return f"The example could not be shown: {html.escape(f'{type(error).__name__}: {error}')}"
        finally:
            for module, training in modes:
                module.training = training
            restore_random_state(state)
        return picture_html(shown, alt=f"{self.title}: one example") if isinstance(shown, Figure) else shown


def loss_curve(losses: list[float], *, width: int = WIDTH, height: int = HEIGHT) -> str:
    """Return the loss over the steps as an inline SVG; each point is the mean of some steps."""
    if len(losses) < 2:
        return ""
    size = -(-len(losses) // POINTS)
    means = [fmean(losses[at : at + size]) for at in range(0, len(losses), size)]
    top, left, low, high = 20, 56, min(means), max(means)
    span = high - low or 1.0
    right, down = (width - left - 4) / (len(means) - 1), (height - 2 * top) / span
    points = " ".join(f"{left + right * at:.1f},{top + down * (high - mean):.1f}" for at, mean in enumerate(means))
    label = f"Loss over {len(losses)} steps: from {means[0]:.3g} to {means[-1]:.3g}"
    return (
        f'<svg role="img" aria-label="{label}" width="{width}" height="{height}" font-size="12" fill="currentColor">'
        f'<text x="{left - 6}" y="{top + 4}" text-anchor="end">{high:.2g}</text>'
        f'<text x="{left - 6}" y="{height - top + 4}" text-anchor="end">{low:.2g}</text>'
        f'<text x="{left}" y="{height - 4}">loss, {len(losses)} steps so far</text>'
        f'<polyline points="{points}" fill="none" stroke="var(--jp-brand-color1, {BLUE})" stroke-width="2.5"/></svg>'
    )
