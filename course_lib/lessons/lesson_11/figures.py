"""The figures of lesson 11: a picture as words, what a ViT learns from how much, and where it looks."""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure
from torch import Tensor

from course_lib.viz.marks import HERO, OTHER, PREDICTION, THIRD, arrow, box, image, patch_lines, prediction, seed_dots
from course_lib.viz.style import GREY, PALETTE, figure


def guesses(
    pictures: Float[Tensor, "B H W"], probs: Float[Tensor, "B classes"], labels: Sequence[int] | Tensor
) -> Figure:
    """A row of pictures, under each the likeliest class and its share; a wrong one says so."""
    fig, panels = figure(7.2, 1.9, columns=len(pictures), layout=None)
    fig.subplots_adjust(left=0.01, right=0.99, top=0.98, bottom=0.3, wspace=0.08)
    for axes, picture, row, label in zip(panels, pictures, probs, labels, strict=True):
        best = int(row.argmax())
        image(axes, picture)
        axes.set_xlabel(
            f"{best}: {100 * row[best]:.0f} %" + ("" if best == int(label) else "\nwrong"), fontsize=12, labelpad=2
        )
    return fig


def mechanism(
    picture: Float[Tensor, "H W"], patches: Float[Tensor, "N p p"], probs: Float[Tensor, " classes"]
) -> Figure:
    """The picture, its patches as a row of words behind a class token, and what comes out of the encoder."""
    fig = figure(12, 5.2, layout=None)[0]
    fig.clear()
    side = round(len(patches) ** 0.5)
    whole = fig.add_axes((0.01, 0.2, 0.27, 0.62))
    image(whole, picture)
    patch_lines(whole, picture.shape[0], side)
    whole.set_title("1 picture, 16 patches", fontsize=15)
    words = fig.add_axes((0.3, 0, 0.7, 1))
    words.set(xlim=(0, 17.6), ylim=(0, 10))
    words.axis("off")
    for number in range(len(patches) + 1):
        x = 0.55 + number
        if number:
            words.imshow(
                patches[number - 1].numpy(),
                extent=(x - 0.43, x + 0.43, 1.1, 2.2),
                cmap="gray",
                vmin=0,
                vmax=1,
                aspect="auto",
            )
        else:
            box(words, x, 1.65, "class", OTHER, width=0.86, height=1.0, fontsize=11)
        box(words, x, 3.6, str(number), PALETTE["sky"], width=0.7, height=0.7, ink="black", fontsize=12)
        words.text(x, 2.72, "+", ha="center", va="center", fontsize=14)
        arrow(words, (x, 4.15), (x, 4.9), width=1.2)
        if number:
            words.text(x, 0.62, "E", ha="center", va="center", color=GREY, style="italic")
    text = "each patch: 64 grey values, times one matrix E, plus what was learned for its place"
    words.text(0.1, 0.05, text, color=GREY)
    box(
        words,
        8.55,
        5.6,
        "a Transformer's encoder (lesson 06): every word looks at every word",
        HERO,
        width=16.6,
        height=1.0,
        fontsize=15,
    )
    arrow(words, (0.55, 6.25), (0.55, 7.1), width=1.2)
    words.text(0.15, 7.45, "only the class token is read at the end:", color=GREY)
    best = int(probs.argmax())
    for digit, share in enumerate(probs.tolist()):
        x = 0.55 + 0.9 * digit
        words.bar(x, 0.04 + 1.0 * share, bottom=8.75, width=0.6, color=HERO if digit == best else GREY)
        words.text(x, 8.35, str(digit), ha="center", va="center")
    words.text(0.95 + 0.9 * best, 9.4, f"  {100 * probs[best]:.0f} %", fontsize=14, va="center")
    return fig


def data(
    live: Mapping[str, float],
    seeds: Mapping[str, Sequence[float]],
    by_data: Mapping[str, Mapping[int, Sequence[float]]],
    predicted: float | None = None,
) -> Figure:
    """Left: what was trained here beside longer trainings; right: accuracy by the number of training pictures."""
    fig, (left, right) = figure(12, 4.6, columns=2, gridspec_kw={"width_ratios": (1, 1.35)})
    for position, (name, value) in enumerate(live.items()):
        left.plot([position], [100 * value], "*", color=HERO, markersize=18)
        seed_dots(left, position + 0.22, [100 * v for v in seeds[name]])
    left.set_xticks(range(len(live)), list(live))
    left.set(xlim=(-0.5, len(live) - 0.3), ylabel="test digits named right, %")
    left.set_title("New digits in each step")
    left.text(
        0.5,
        0.04,
        "star: yours      dots: 1,500 steps, three seeds",
        ha="center",
        color=GREY,
        transform=left.transAxes,
    )
    low = 100 * min([*live.values(), *(v for values in seeds.values() for v in values)])
    left.set_ylim(min(94.0, low - 1.5), 100)
    for position, (name, colour) in enumerate((("ResNet", OTHER), ("ViT", HERO))):
        counts = list(by_data[name])
        means = [100 * np.mean(by_data[name][count]) for count in counts]
        right.plot(range(len(counts)), means, color=colour, linestyle="-", linewidth=2)
        for x, count in enumerate(counts):
            seed_dots(right, x, [100 * v for v in by_data[name][count]], colour)
        right.text(0.42, np.mean(means) + (1.2, -2.6)[position], name, color=colour, fontsize=15, weight="bold")
    if predicted is not None:
        shown = min(max(predicted, 85.0), 100.0)
        prediction(right, 0, shown, (-12, 0), f"your prediction\n{predicted:.0f}")
    right.set_xticks(range(2), [f"{count:,} pictures" for count in by_data["ViT"]])
    right.set(xlim=(-0.45, 1.25), ylim=(84.5, 100.5))
    right.set_title("A fixed set of training pictures, three seeds")
    return fig


def rollouts(
    picture: Float[Tensor, "H W"],
    found: Float[Tensor, "h w"],
    half: Float[Tensor, "H W"],
    dropped: Sequence[int],
    curves: Mapping[str, Sequence[float]],
    predicted: float | None = None,
) -> Figure:
    """A picture, its rollout, its better half; and the share named right when patches are dropped in each order."""
    fig = figure(12.2, 5.6)[0]
    fig.clear()
    grid = fig.add_gridspec(3, 2, width_ratios=(1, 3.4))
    for row, title in enumerate(("the picture", "what reached the class token", "half of it dropped")):
        axes = fig.add_subplot(grid[row, 0])
        image(axes, half if row == 2 else picture)
        axes.set_title(title, fontsize=13, loc="center", weight="normal")
        if row == 1:
            side = picture.shape[0]
            axes.imshow(found.numpy(), cmap="magma", extent=(-0.5, side - 0.5, side - 0.5, -0.5), alpha=0.78, vmin=0)
    axes = fig.add_subplot(grid[:, 1])
    looks = ((HERO, 3.5), (THIRD, 2), (GREY, 2), (OTHER, 2))
    for values, (colour, width) in zip(curves.values(), looks, strict=True):
        axes.plot(dropped, [100 * v for v in values], color=colour, linestyle="-", linewidth=width, marker="o")
    positions = ((9.4, 96, "left"), (6.4, 79, "center"), (4.1, 63, "center"), (3.5, 25, "right"))
    for name, (x, y, side), (colour, _) in zip(curves, positions, looks, strict=True):
        axes.text(x, y, name.replace("map's ", "map's\n"), color=colour, fontsize=14, ha=side, va="center")
    prediction(axes, 8, predicted)
    axes.set(xlabel="patches dropped, of 16", ylabel="digits on textures named right, %", ylim=(0, 103))
    axes.set_xticks(dropped)
    axes.set_title("Half of the patches can go, if they are the right half")
    return fig


def shuffled(
    before: Float[Tensor, "H W"],
    after: Float[Tensor, "H W"],
    right: Mapping[str, float],
    predicted: float | None = None,
) -> Figure:
    """A digit, its patches in another order, and what a ViT makes of 1,000 such pictures."""
    fig = figure(12.2, 3.9)[0]
    fig.clear()
    grid = fig.add_gridspec(1, 3, width_ratios=(1, 1, 2.6))
    for column, (picture, title) in enumerate(((before, "as it is"), (after, "shuffled"))):
        axes = fig.add_subplot(grid[0, column])
        image(axes, picture)
        patch_lines(axes, picture.shape[0], 4)
        axes.set_title(title, fontsize=14, loc="center", weight="normal")
    axes = fig.add_subplot(grid[0, 2])
    for row, (name, share) in enumerate(right.items()):
        axes.barh(-row, 100 * share, height=0.5, color=HERO if "stay" in name else PALETTE["sky"])
        axes.text(0.5, -row + 0.31, name, fontsize=14, va="bottom")
        axes.text(100 * share + 1.5, -row, f"{100 * share:.0f} %", va="center", fontsize=14)
    if predicted is not None:
        row = list(right).index("shuffled, positions stay")
        axes.plot([predicted], [-row], "*", color=PREDICTION, markersize=18)
        axes.text(
            predicted,
            -row + 0.31,
            "your prediction",
            color=PREDICTION,
            fontsize=14,
            ha="left" if predicted < 60 else "right",
            va="bottom",
        )
    axes.set_yticks([])
    axes.set(xlim=(0, 113), ylim=(-len(right) + 0.55, 0.85), xlabel="named right, %")
    axes.set_title("Places come from the positions alone")
    return fig


def inside(
    similar: Float[Tensor, "h w h w"], distances: Float[Tensor, "L H"], uniform: float, patch_size: int
) -> Figure:
    """How alike the positions are, a small map for each patch; and how far each head of each block looks."""
    fig, (left, right) = figure(12.2, 5.4, columns=2, gridspec_kw={"width_ratios": (1.15, 1)})
    height, width = similar.shape[:2]
    canvas = np.full((height * (height + 1), width * (width + 1)), np.nan)
    for row in range(height):
        for column in range(width):
            top, start = row * (height + 1), column * (width + 1)
            canvas[top : top + height, start : start + width] = similar[row, column]
    shown = left.imshow(canvas, cmap="viridis", vmin=-0.2, vmax=0.6)
    left.set_xticks([])
    left.set_yticks([])
    left.grid(visible=False)
    for spine in left.spines.values():
        spine.set_visible(False)
    left.set_title("Neighbours get similar positions")
    fig.colorbar(shown, ax=left, shrink=0.75, location="left", label="cosine with every other position")
    for block, heads in enumerate(distances.tolist(), start=1):
        seed_dots(right, block, heads, HERO, markersize=11, alpha=0.8)
    end = len(distances) + 0.5
    for y, text in ((uniform, "looks evenly\nat all patches"), (patch_size, "at the next\npatch only")):
        right.plot([0.5, end], [y, y], color=GREY, linestyle=":", linewidth=1.5)
        right.text(end + 0.1, y, text, color=GREY, va="center")
    right.set(xlabel="block", ylabel="how far a head looks, pixels", xlim=(0.5, end + 1.6), ylim=(0, 17))
    right.set_xticks(range(1, len(distances) + 1))
    right.set_title("Mean distance of each head")
    return fig


def larger(
    small: Float[Tensor, "S S"],
    large: Float[Tensor, "L L"],
    patch_size: int,
    curves: Mapping[str, tuple[Sequence[int], Sequence[float]]],
    predicted: float | None = None,
) -> Figure:
    """A digit in two sizes with its patches, and the accuracy by size; the prediction is for the large one."""
    fig = figure(12.2, 4.6)[0]
    fig.clear()
    grid = fig.add_gridspec(1, 3, width_ratios=(len(small), len(large), 92))
    for column, picture in enumerate((small, large)):
        axes, side = fig.add_subplot(grid[0, column]), len(picture) // patch_size
        image(axes, picture)
        patch_lines(axes, len(picture), side)
        axes.set_title(f"{side} x {side} patches", fontsize=14, loc="center", weight="normal")
    axes = fig.add_subplot(grid[0, 2])
    for (name, (sizes, right)), colour in zip(curves.items(), (HERO, OTHER, GREY), strict=True):
        axes.plot(sizes, [100 * share for share in right], color=colour, linestyle="-", marker="o")
        axes.text(sizes[-1] + 0.8, 100 * right[-1], name, color=colour, fontsize=14, va="center")
    prediction(axes, len(large), predicted, (-12, 0))
    axes.set(xlabel="pixels a side", ylabel="digits named right, %", xlim=(27, 66), ylim=(0, 103))
    axes.set_xticks([28, 35, 42, 49])
    axes.set_title("Pictures larger than in training")
    return fig


def textures(
    here: Sequence[float], seeds: Mapping[str, Float[np.ndarray, "seeds kinds"]], kinds: Sequence[str]
) -> Figure:
    """Accuracy by how cluttered the ground is: the shipped ViT as evaluated here, and three seeds of each stem."""
    fig, axes = figure(9.5, 4.2)
    positions = np.arange(len(kinds))
    for (name, values), colour in zip(seeds.items(), (HERO, OTHER), strict=True):
        axes.fill_between(
            positions, 100 * values.min(axis=0), 100 * values.max(axis=0), color=colour, alpha=0.25, linewidth=0
        )
        axes.plot(positions, 100 * values.mean(axis=0), color=colour, linestyle="-", linewidth=1.5)
        axes.text(positions[-1] + 0.08, 100 * values.mean(axis=0)[-1], name, color=colour, va="center", fontsize=14)
    axes.plot(positions, [100 * v for v in here], "*", color=HERO, markersize=16)
    axes.set_xticks(positions, [f"{kind} ground" for kind in kinds])
    axes.set(ylabel="test digits named right, %", xlim=(-0.2, len(kinds)), ylim=(70, 100))
    axes.set_title("The same ViT on harder ground")
    return fig


def paper(rows: Sequence[tuple[str, float, float, bool]]) -> Figure:
    """(name, TPUv3-core-days, accuracy on ImageNet, whether it is a ViT) of table 2, Dosovitskiy et al. 2021."""
    fig, axes = figure(10.5, 4.6)
    for name, days, accuracy, is_vit in rows:
        colour, early = HERO if is_vit else OTHER, days < 1000
        axes.plot([days], [accuracy], "o", color=colour, markersize=12)
        axes.annotate(
            name,
            (days, accuracy),
            (12, 0) if early else (8, -20),
            textcoords="offset points",
            color=colour,
            fontsize=14,
            ha="left" if early else "right",
            va="center",
        )
    axes.set_xscale("log")
    axes.set(xlabel="days of one TPUv3 core for pre-training", ylabel="ImageNet, % right")
    axes.set(xlim=(150, 20_000), ylim=(84.8, 89.0))
    axes.set_xticks([200, 500, 1000, 2000, 5000, 10_000], ["200", "500", "1,000", "2,000", "5,000", "10,000"])
    axes.minorticks_off()
    axes.set_title("As good, for less work")
    return fig
