"""Figures of sentences and their translations."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from course_lib.viz.style import GREY, PALETTE, figure


def word_links(source: Sequence[str], target: Sequence[str], links: Sequence[tuple[int, int]]) -> Figure:
    """A sentence above its translation, each gold link a line; lines that cross another are drawn strong.

    In long sentences every second word stands further out, so that neighbours have room.
    """
    links = sorted(links)
    longest = max(len(source), len(target))
    outward = 0.32 if longest > 8 else 0.0
    crossing = {a for a in links for b in links if (a[0] - b[0]) * (a[1] - b[1]) < 0}
    fig, axes = figure(min(12, 1.35 * longest), 3.4 + 2 * outward)
    axes.set(xlim=(-0.7, longest - 0.3), ylim=(-0.25 - outward, 2.25 + outward))
    axes.axis("off")
    for i, j in links:
        strong = (i, j) in crossing
        axes.plot(
            [i, j],
            [1.75 + outward * (i % 2), 0.3 - outward * (j % 2)],
            color=PALETTE["vermilion"] if strong else GREY,
            linestyle="-" if strong else ":",
            linewidth=2.5 if strong else 1.5,
        )
    for words, y, away in ((source, 2.0, outward), (target, 0.05, -outward)):
        for x, word in enumerate(words):
            axes.text(x, y + away * (x % 2), word, ha="center", va="center")
    return fig
