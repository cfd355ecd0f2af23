"""Lesson 16, acting: the Decision Transformer with its tokens, and the loop of GAIL."""

from matplotlib.figure import Figure

from course_lib.lessons.lesson_16.recipes import control
from course_lib.viz.architecture import COLOURS
from course_lib.viz.marks import HERO, OTHER, THIRD, arrow, bare, box
from course_lib.viz.style import GREY, figure

WIDE, TALL = 12.0, 5.9
RETURN, STATE, ACTION = "#FBE0BC", COLOURS["attention"], "#C3E7D9"


def decision_transformer() -> tuple[Figure, str]:
    """Three tokens a step, from below: embeddings, the time of the step added, causal blocks, a head at the states."""
    cells, settings = control.maze().state_dim, control.DECISION
    width, actions, depth = settings.dim, control.maze().num_actions, settings.depth
    fig, axes = figure(WIDE / 1.2, TALL / 1.2, layout=None)
    fig.subplots_adjust(0, 0, 1, 1)
    bare(axes, (0, WIDE), (0, TALL))
    style = {"ink": "black", "edge": GREY}
    kinds = (
        ("R", "1", RETURN, "1"),
        ("s", f"{cells}", STATE, f"{cells}"),
        ("a", f"{actions}", ACTION, f"{actions}"),
    )
    for step, t in enumerate(("t−1", "t")):
        for number, (name, size, colour, inputs) in enumerate(kinds):
            x = 0.85 + 4.5 * step + 1.45 * number
            box(
                axes,
                x,
                0.42,
                rf"$\mathit{{{name}}}_{{{t}}}$" + f"\n(B, {size})",
                "white",
                width=1.36,
                height=0.7,
                **style,
            )
            box(axes, x, 1.4, f"linear\n{inputs} → {width}", colour, width=1.36, height=0.7, **style)
            for start, end in ((0.77, 1.05), (1.75, 2.68)):
                arrow(axes, (x, start), (x, end), width=1.5, shrinkA=0, shrinkB=0)
        x = 2.3 + 4.5 * step
        words = f"+ embedding of time {t}  (B, {width})"
        box(axes, x, 2.2, words, COLOURS["other"], width=4.3, height=0.42, **style)
        box(axes, x, 4.71, f"LayerNorm,\nlinear {width} → {actions}", COLOURS["head"], width=2.4, height=0.7, **style)
        for start, end in ((4.06, 4.36), (5.06, 5.36)):
            arrow(axes, (x, start), (x, end), width=1.5, shrinkA=0, shrinkB=0)
        axes.text(x, 5.6, rf"logits of $\mathit{{a}}_{{{t}}}$  (B, {actions})", ha="center", va="center")
    box(axes, 4.55, 2.9, f"LayerNorm, tokens (B, 3K, {width})", COLOURS["norm"], width=8.8, height=0.44, **style)
    arrow(axes, (4.55, 3.12), (4.55, 3.36), width=1.5, shrinkA=0, shrinkB=0)
    words = f"{depth} causal blocks of lesson 08: each token attends\nto itself and to those before it"
    box(axes, 4.55, 3.71, words, COLOURS["attention"], width=8.8, height=0.7, **style)
    for y, words in (
        (0.42, f"a window of\nK = {settings.context_steps} steps"),
        (1.4, "one layer for\neach kind"),
        (2.2, "the same for the three\ntokens of a step"),
        (3.71, f"(B, 3K, {width})"),
        (4.71, "only at the tokens\nof the states"),
    ):
        axes.text(9.15, y, words, va="center", color=GREY)
    return fig, (
        f"The Decision Transformer, from bottom to top, for two steps. Each step has three inputs: the return to go R, "
        f"(B, 1), the state s, (B, {cells}), and the action a, (B, {actions}), one-hot. A linear layer for each kind "
        f"makes {width} features of it. The embedding of the time, (B, {width}), is added to all three tokens of a "
        f"step. LayerNorm follows, and the 3K tokens, (B, 3K, {width}), enter {depth} causal blocks. At the tokens of "
        f"the states, LayerNorm and a linear layer give the logits of the action, (B, {actions})."
    )


def gail() -> tuple[Figure, str]:
    """Who gives what to whom in a round of GAIL, and what is trained by which loss."""
    fig, axes = figure(WIDE, 5.5, layout=None)
    fig.subplots_adjust(0, 0, 1, 1)
    bare(axes, (0, WIDE), (0, 5.5))
    plain = {"ink": "black", "edge": GREY}
    box(axes, 1.45, 4.85, "policy π(a | s)\ntrained", HERO, width=2.6, height=0.9)
    box(axes, 1.45, 2.55, "maze", COLOURS["other"], width=2.6, height=0.6, **plain)
    box(axes, 1.45, 0.65, "demonstrations\nof the expert", COLOURS["other"], width=2.6, height=0.9, **plain)
    box(axes, 5.7, 1.2, "discriminator D(s, a)\ntrained", OTHER, width=3.2, height=0.9)
    loss = "discriminator loss\n− mean ln D(policy)\n− mean ln(1 − D(expert))"
    box(axes, 10.1, 1.2, loss, "white", width=3.7, height=1.3, **plain)
    box(axes, 5.7, 3.2, "rewards −ln D(s, a)\n(N, T)", "white", width=3.2, height=0.9, **plain)
    box(axes, 10.1, 3.2, "critic V(s), GAE:\nadvantages  (N, T)", THIRD, width=3.7, height=0.9)
    box(axes, 6.6, 4.85, "clipped objective of PPO,\nand λ × entropy", "white", width=4.2, height=0.9, **plain)
    for start, end in (
        ((1.1, 4.4), (1.1, 2.85)),
        ((1.8, 2.85), (1.8, 4.4)),
        ((2.75, 2.5), (4.1, 1.55)),
        ((2.75, 0.65), (4.1, 1.0)),
        ((7.3, 1.4), (8.25, 1.4)),
        ((6.7, 1.65), (6.7, 2.75)),
        ((7.3, 3.2), (8.25, 3.2)),
        ((9.7, 3.65), (8.7, 4.6)),
    ):
        arrow(axes, start, end, width=1.8, shrinkA=0, shrinkB=0)
    for start, end, colour in (((8.25, 1.0), (7.3, 1.0), OTHER), ((4.5, 4.85), (2.75, 4.85), HERO)):
        arrow(axes, start, end, colour, width=1.8, shrinkA=0, shrinkB=0, linestyle=(0, (4, 2)))
    for x, y, words, side, colour in (
        (1.0, 3.62, "action", "right", GREY),
        (1.9, 3.62, "state", "left", GREY),
        (3.7, 2.3, "pairs (s, a) of\nthe policy, N × T", "left", GREY),
        (3.2, 0.4, "pairs of the expert, E", "left", GREY),
        (7.77, 0.78, "trains", "center", OTHER),
        (3.62, 5.07, "trains", "center", HERO),
    ):
        axes.text(x, y, words, ha=side, va="center", color=colour)
    return fig, (
        "A round of GAIL. The policy acts in the maze: it gets a state and returns an action. Its pairs of state and "
        "action, N times T of them, and E pairs of the expert's demonstrations enter the discriminator D. The "
        "discriminator loss, minus the mean of ln D for the policy and minus the mean of ln(1 - D) for the expert, "
        "trains the discriminator. The rewards -ln D(s, a), (N, T), go with a critic into GAE, which gives advantages, "
        "(N, T). With them the clipped objective of PPO, and an entropy term, train the policy."
    )


DIAGRAMS = {"decision_transformer": decision_transformer, "gail": gail}
