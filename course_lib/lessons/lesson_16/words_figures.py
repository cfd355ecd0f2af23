"""The figures of lesson 16 that show images and words: a search, cosines, gates, and what a word attends to."""

from collections.abc import Mapping, Sequence
from textwrap import wrap

from jaxtyping import Float
from matplotlib.figure import Figure
from torch import Tensor

from course_lib.viz.marks import HERO, OTHER, THIRD, bare, image, lines, prediction
from course_lib.viz.style import GREY, PALETTE, SEQUENTIAL, figure

Pixels = Float[Tensor, "N 3 H W"]
COLOURS = {"exact": "black", "size": PALETTE["purple"], "thing": HERO, "position": PALETTE["orange"]}


def picture(axes, pixels: Float[Tensor, "3 H W"], title: str = "") -> None:
    """A colour image."""
    image(axes, pixels.clamp(0, 1).permute(1, 2, 0), title)


def search(found: Mapping[str, tuple[Pixels, Sequence[str], Sequence[float]]]) -> Figure:
    """A row for each query: the icons with the highest cosines, each above its name and its cosine."""
    count = max(len(pixels) for pixels, *_ in found.values())
    fig, panels = figure(10.0, 1.21 * len(found), rows=len(found), columns=count)
    for row, (query, (pixels, names, cosines)) in zip(panels.reshape(len(found), count), found.items(), strict=True):
        for axes, one, name, cosine in zip(row, pixels, names, cosines, strict=True):
            picture(axes, one)
            axes.set_xlabel("\n".join(wrap(name, 12, max_lines=2, placeholder="…")))
            axes.text(1.08, 0.5, f"{cosine:.2f}", transform=axes.transAxes, color=GREY, va="center")
        row[0].set_ylabel(query.replace(" ", "\n"), rotation=0, ha="right", va="center", weight="bold")
    return fig


def matrices(pixels: Pixels, names: Sequence[str], cosines: Mapping[str, Float[Tensor, "N N"]]) -> Figure:
    """The cosine of each image (rows) with each name (columns), a panel for each state of the model."""
    fig, panels = figure(
        0.6 + 5.2 * len(cosines), 5.0, columns=len(cosines) + 1, width_ratios=(0.6, *[5] * len(cosines))
    )
    panels[0].set_axis_off()
    count = len(pixels)
    for number, one in enumerate(pixels):
        inset = panels[0].inset_axes((0, 1 - (number + 1) / count + 0.01, 1, 1 / count - 0.02))
        picture(inset, one)
    for axes, (title, values) in zip(panels[1:], cosines.items(), strict=True):
        axes.imshow(values.numpy(), cmap=SEQUENTIAL, vmin=-0.4, vmax=0.8, aspect="auto")
        for row in range(count):
            best = int(values[row].argmax())
            for column in range(count):
                ink = "black" if values[row, column] > 0.3 else "white"
                weight = "bold" if column == best else "normal"
                text = f"{values[row, column]:.1f}".replace("-0.0", "0.0")
                axes.text(column, row, text, ha="center", va="center", color=ink, weight=weight)
        axes.set_xticks(range(count), names, rotation=35, ha="right")
        axes.set(title=title, yticks=[])
        axes.grid(visible=False)
    return fig


def gates(
    pixels: Pixels,
    said: Sequence[tuple[str, str, str]],
    factors: Sequence[float],
    correct: Mapping[str, Sequence[float]],
) -> Figure:
    """Scenes with their captions (true, gates closed, gates open); what is correct as the gates open, in %."""
    fig, panels = figure(10.0, 4.1, columns=2, width_ratios=(1.6, 1))
    bare(panels[0], (0, 1), (0, 1))
    height = 1 / len(said)
    for row, (one, (true, closed, opened)) in enumerate(zip(pixels, said, strict=True)):
        y = 1 - (row + 1) * height
        picture(panels[0].inset_axes((0.0, y + 0.02, 0.2, height - 0.04)), one)
        colour = HERO if opened == true else OTHER
        for position, (name, text, ink) in enumerate(
            (("true", true, "black"), ("closed", closed, GREY), ("open", opened, colour))
        ):
            at = y + height * (0.78 - 0.28 * position)
            panels[0].text(0.22, at, f"{name}:", color=ink, va="center")
            panels[0].text(0.365, at, text, color=ink, va="center")
    curves = {name: (factors, [100 * value for value in values]) for name, values in correct.items()}
    lines(panels[1], curves, [COLOURS[name] for name in curves])
    panels[1].texts[-1].xyann = (8, 8)  # its curve ends close to another
    panels[1].set(xlim=(-0.05, 1.5), xticks=(0, 0.5, 1), ylim=(0, 103), xlabel="gates: factor of the trained α")
    panels[1].set(ylabel="correct captions, %", title="As the gates open")
    return fig


def layouts(
    exact: Mapping[str, Sequence[float]],
    rows: Sequence[Sequence[str]],
    parts: Sequence[str],
    predicted: float | None = None,
) -> Figure:
    """Exact captions of each variant in %, a dot for each seed; at the right, a table with every part of a caption."""
    fig, (left, right) = figure(12.2, 4.0, columns=2)
    for row, (name, values) in enumerate(reversed(exact.items())):
        colour = HERO if name.startswith("Flamingo") else THIRD
        left.plot([100 * value for value in values], [row] * len(values), "o", color=colour)
    left.set_yticks(range(len(exact)), list(reversed(exact)))
    left.set(xlim=(-2, 102), ylim=(-0.6, len(exact)), xlabel="exact captions, %", title="A dot for each seed")
    prediction(left, predicted, 1, (12, 0))
    bare(right, (0, len(parts)), (-0.6, len(exact)))
    right.set_title("Correct, mean of the seeds")
    for column, part in enumerate(parts):
        right.text(column + 0.5, len(exact) - 0.4, part, ha="center", weight="bold")
        for row, cells in enumerate(reversed(rows)):
            right.text(column + 0.5, row, cells[1 + column], ha="center", va="center")
    return fig
