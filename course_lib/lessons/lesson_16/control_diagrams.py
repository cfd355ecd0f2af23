"""Lesson 16, acting: the Decision Transformer with its tokens, and the loop of GAIL."""

from matplotlib.figure import Figure

from course_lib.lessons.lesson_16.recipes import control
from course_lib.viz.architecture import COLOURS, SMALL
from course_lib.viz.marks import HERO, OTHER, THIRD, arrow, bare, box
from course_lib.viz.style import GREY, figure

WIDE = 12.0
RETURN, STATE, ACTION = "#FBE0BC", COLOURS["attention"], "#C3E7D9"


def decision_transformer() -> tuple[Figure, str]:
    """Three tokens a step, from below: embeddings, the time of the step added, causal blocks, a head at the states."""
    cells, settings = control.maze().state_dim, control.DECISION
    width, actions, depth = settings.dim, control.maze().num_actions, settings.depth
    fig, axes = figure(WIDE, 5.4, layout=None)
    fig.subplots_adjust(0, 0, 1, 1)
    bare(axes, (0, WIDE), (0, 5.4))
    style = {"ink": "black", "edge": GREY, "fontsize": 13}
    kinds = (
        ("R", "1", RETURN, "linear 1"),
        ("s", f"{cells}", STATE, f"linear {cells}"),
        ("a", f"{actions}", ACTION, f"linear {actions}"),
    )
    for step in range(2):
        for number, (name, size, colour, layer) in enumerate(kinds):
            x, t = 1.1 + 4.75 * step + 1.5 * number, "t−1" if step == 0 else "t"
            box(axes, x, 0.35, rf"$\mathit{{{name}}}_{{{t}}}$  (B, {size})", "white", width=1.42, height=0.42, **style)
            arrow(axes, (x, 0.56), (x, 0.94), width=1.5, shrinkA=0, shrinkB=0)
            box(axes, x, 1.15, f"{layer} → {width}", colour, width=1.46, height=0.42, **style | {"fontsize": 12})
            arrow(axes, (x, 1.36), (x, 2.5), width=1.5, shrinkA=0, shrinkB=0)
        middle = 1.1 + 4.75 * step + 1.5
        box(
            axes,
            middle,
            1.85,
            f"+ embedding of the time {'t−1' if step == 0 else 't'}  (B, {width})",
            COLOURS["other"],
            width=4.4,
            height=0.42,
            **style,
        )
    box(axes, 5.0, 2.72, f"LayerNorm, tokens (B, 3K, {width})", COLOURS["norm"], width=9.3, height=0.44, **style)
    arrow(axes, (5.0, 2.94), (5.0, 3.2), width=1.5, shrinkA=0, shrinkB=0)
    box(
        axes,
        5.0,
        3.45,
        f"{depth} causal blocks of lesson 08: each token attends to itself and to those before it",
        COLOURS["attention"],
        width=9.3,
        height=0.5,
        **style,
    )
    for step in range(2):
        x = 1.1 + 4.75 * step + 1.5
        arrow(axes, (x, 3.7), (x, 4.08), width=1.5, shrinkA=0, shrinkB=0)
        box(axes, x, 4.29, f"LayerNorm, linear {width} → {actions}", COLOURS["head"], width=2.9, height=0.42, **style)
        arrow(axes, (x, 4.5), (x, 4.82), width=1.5, shrinkA=0, shrinkB=0)
        name = "t−1" if step == 0 else "t"
        axes.text(
            x, 5.05, rf"logits of $\mathit{{a}}_{{{name}}}$  (B, {actions})", ha="center", va="center", fontsize=14
        )
    axes.text(9.85, 1.85, "the same for the three\ntokens of a step", va="center", color=GREY, fontsize=SMALL)
    axes.text(9.85, 1.15, "one layer for each kind", va="center", color=GREY, fontsize=SMALL)
    axes.text(9.85, 0.35, f"a window of K = {settings.context_steps} steps", va="center", color=GREY, fontsize=SMALL)
    axes.text(9.85, 3.45, f"(B, 3K, {width})", va="center", color=GREY, fontsize=SMALL)
    axes.text(9.85, 4.29, "only at the tokens\nof the states", va="center", color=GREY, fontsize=SMALL)
    return fig, (
        f"The Decision Transformer, from bottom to top, for two steps. Each step has three inputs: the return to go R, "
        f"(B, 1), the state s, (B, {cells}), and the action a, (B, {actions}), one-hot. A linear layer for each kind "
        f"makes {width} features of it. The embedding of the time, (B, {width}), is added to all three tokens of a "
        f"step. LayerNorm follows, and the 3K tokens, (B, 3K, {width}), enter {depth} causal blocks. At the tokens of "
        f"the states, LayerNorm and a linear layer give the logits of the action, (B, {actions})."
    )


def gail() -> tuple[Figure, str]:
    """Who gives what to whom in a round of GAIL, and what is trained by which loss."""
    fig, axes = figure(WIDE, 4.7, layout=None)
    fig.subplots_adjust(0, 0, 1, 1)
    bare(axes, (0, WIDE), (0, 4.7))
    plain = {"ink": "black", "edge": GREY, "fontsize": 14}
    box(axes, 1.6, 3.95, "policy π(a | s)\ntrained", HERO, width=2.5, height=0.9)
    box(axes, 1.6, 1.95, "maze", COLOURS["other"], width=2.5, height=0.6, **plain)
    arrow(axes, (1.2, 3.5), (1.2, 2.25), width=1.8, shrinkA=0, shrinkB=0)
    axes.text(1.1, 2.87, "action", ha="right", va="center", color=GREY, fontsize=SMALL)
    arrow(axes, (2.0, 2.25), (2.0, 3.5), width=1.8, shrinkA=0, shrinkB=0)
    axes.text(2.1, 2.87, "state", va="center", color=GREY, fontsize=SMALL)
    box(axes, 1.6, 0.5, "demonstrations\nof the expert", COLOURS["other"], width=2.5, height=0.8, **plain)
    box(axes, 6.0, 1.2, "discriminator D(s, a)\ntrained", OTHER, width=2.9, height=0.9)
    arrow(axes, (2.85, 1.95), (4.5, 1.4), width=1.8, shrinkA=0, shrinkB=2)
    axes.text(2.95, 2.0, "pairs (s, a) of the policy, N × T", va="bottom", color=GREY, fontsize=SMALL)
    arrow(axes, (2.85, 0.5), (4.5, 1.0), width=1.8, shrinkA=0, shrinkB=2)
    axes.text(3.75, 0.45, "pairs of the expert, E", va="center", color=GREY, fontsize=SMALL)
    box(
        axes,
        10.1,
        1.2,
        "discriminator loss\n− mean ln D(policy)\n− mean ln(1 − D(expert))",
        "white",
        width=3.4,
        height=1.2,
        **plain,
    )
    arrow(axes, (7.45, 1.3), (8.4, 1.3), width=1.8, shrinkA=0, shrinkB=0)
    arrow(axes, (8.4, 1.0), (7.45, 1.0), OTHER, width=1.8, shrinkA=0, shrinkB=0, linestyle=(0, (4, 2)))
    axes.text(7.92, 0.72, "trains", ha="center", va="center", color=OTHER, fontsize=SMALL)
    box(axes, 6.0, 2.75, "rewards −ln D(s, a)  (N, T)", "white", width=3.2, height=0.6, **plain)
    arrow(axes, (6.0, 1.65), (6.0, 2.45), width=1.8, shrinkA=0, shrinkB=0)
    box(axes, 10.1, 2.75, "critic V(s), GAE:\nadvantages  (N, T)", THIRD, width=3.4, height=0.8)
    arrow(axes, (7.6, 2.75), (8.4, 2.75), width=1.8, shrinkA=0, shrinkB=0)
    box(axes, 6.9, 4.05, "clipped objective of PPO, and λ × entropy", "white", width=5.4, height=0.6, **plain)
    arrow(axes, (10.1, 3.15), (9.3, 3.75), width=1.8, shrinkA=0, shrinkB=0)
    arrow(axes, (4.2, 4.05), (2.85, 4.05), HERO, width=1.8, shrinkA=0, shrinkB=0, linestyle=(0, (4, 2)))
    axes.text(3.52, 4.28, "trains", ha="center", va="center", color=HERO, fontsize=SMALL)
    return fig, (
        "A round of GAIL. The policy acts in the maze: it gets a state and returns an action. Its pairs of state and "
        "action, N times T of them, and E pairs of the expert's demonstrations enter the discriminator D. The "
        "discriminator loss, minus the mean of ln D for the policy and minus the mean of ln(1 - D) for the expert, "
        "trains the discriminator. The rewards -ln D(s, a), (N, T), go with a critic into GAE, which gives advantages, "
        "(N, T). With them the clipped objective of PPO, and an entropy term, train the policy."
    )


DIAGRAMS = {"decision_transformer": decision_transformer, "gail": gail}
