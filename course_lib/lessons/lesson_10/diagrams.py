"""Lesson 10: the reward model, the four models of PPO, and the two that GRPO needs."""

from matplotlib.figure import Figure

from course_lib.viz.architecture import Box, Repeat, Residual, architecture
from course_lib.viz.marks import HERO, OTHER, THIRD, arrow, bare, box
from course_lib.viz.style import GREY, figure


def reward_model() -> tuple[Figure, str]:
    """A GPT with a head of one number, read at the last real token."""
    gpt = [
        Box("tokens: prompt and answer", "input", shape="(B, T)"),
        Box("token + position\nembedding", "embedding", "(B, T, D)"),
        Repeat("N", [Residual([Box("LayerNorm,\ncausal attention", "attention")]),
                     Residual([Box("LayerNorm, MLP", "mlp")])], shape="(B, T, D)"),
        Box("LayerNorm", "norm", "(B, T, D)"),
    ]  # fmt: skip
    language = [*gpt, Box("tied head", "head", "(B, T, V)"), Box("next-token logits", "input")]
    reward = [
        *gpt,
        Box("linear head,\none number", "head", "(B, T)"),
        Box("at the last real token", shape="(B,)"),
        Box("reward r(x, y)", "input"),
    ]
    return architecture({"language model": language, "reward model": reward})


def _loop(title: str, models: list[tuple[float, str, str, str]], joins: list[tuple[float, float, str, str]]) -> Figure:
    """Models in a row between the answers that they read and what is computed from their outputs."""
    fig, axes = figure(12.2, 5.4, layout=None)
    fig.subplots_adjust(0, 0, 1, 1)
    bare(axes, (0, 12.2), (0, 5.4))
    box(axes, 6.1, 0.45, title, "white", width=11.4, height=0.55, ink="black", edge=GREY)
    for x, name, shape, colour in models:
        arrow(axes, (x, 0.73), (x, 1.25))
        box(axes, x, 1.75, name, colour, width=2.6, height=0.95)
        arrow(axes, (x, 2.23), (x, 2.95))
        axes.text(x + 0.1, 2.6, shape, va="center", color="black")
    for x, width, words, shape in joins:
        box(axes, x, 3.3, words, "#E4E4E4", width=width, height=0.66, ink="black", edge=GREY)
        if shape:
            axes.text(x + 0.1, 3.98, shape, va="center")
            arrow(axes, (x, 3.63), (x, 4.32))
    return fig


def ppo() -> tuple[Figure, str]:
    """The four models of PPO, and what becomes of their outputs."""
    fig = _loop(
        "prompts (B, P) and the answers that the policy has sampled (B, T)",
        [(1.7, "policy\ntrained", "ln π  (B, T)", HERO), (4.6, "reference\nfrozen", "ln π_ref  (B, T)", GREY),
         (7.5, "reward model\nfrozen", "score  (B,)", GREY), (10.5, "critic\ntrained", "V  (B, T)", OTHER)],
        [(4.6, 8.4, "token rewards r: −β ln(π/π_ref), and the score at the last token", ""),
         (10.5, 2.6, "GAE", "returns\n(B, T)")],
    )  # fmt: skip
    axes = fig.axes[0]
    arrow(axes, (8.8, 3.3), (9.2, 3.3))
    arrow(axes, (9.4, 3.64), (8.3, 4.36))
    axes.text(8.62, 3.95, "A  (B, T)", va="center", ha="right")
    box(axes, 4.6, 4.75, "clipped objective, from ln π and A: trains the policy", HERO, width=8.4, height=0.75)
    box(axes, 10.5, 4.75, "squared error:\ntrains the critic", OTHER, width=2.6, height=0.75)
    return fig, (
        "Prompts and sampled answers, (B, T), enter four models. The policy, trained, and the reference, frozen, give "
        "log-probabilities (B, T), the reward model, frozen, one score for each answer (B,), and the critic, trained, "
        "values (B, T). Log-probabilities and score become token rewards (B, T), and with the values GAE makes "
        "advantages (B, T) of them. The clipped objective trains the policy, and a squared error trains the critic."
    )


def grpo() -> tuple[Figure, str]:
    """GRPO with a program that checks answers."""
    fig = _loop(
        "P prompts, and G sampled answers to each: (P · G, T)",
        [(2.2, "policy\ntrained", "ln π  (PG, T)", HERO), (6.1, "reference\nfrozen", "ln π_ref  (PG, T)", GREY),
         (9.9, "a program\nthat checks", "r: 0 or 1  (P, G)", THIRD)],
        [(4.15, 7.2, "k3: an estimate of KL(π ‖ π_ref)", "penalty"),
         (9.9, 3.8, "(r − mean) / std, per group", "A  (PG,)")],
    )  # fmt: skip
    box(
        fig.axes[0],
        6.1,
        4.75,
        "loss: −(clipped objective, from ln π and A) + β k3, trains the policy",
        HERO,
        width=11.4,
        height=0.75,
    )
    return fig, (
        "P prompts with G answers each enter three boxes: the policy, trained, the reference, frozen, and a program "
        "that gives each answer the reward 0 or 1. The log-probabilities of the two models become k3, an estimate of "
        "the KL divergence; the rewards become advantages within each group. Both train the policy. There is no "
        "reward model and no critic."
    )


DIAGRAMS = {"reward_model": reward_model, "ppo": ppo, "grpo": grpo}
