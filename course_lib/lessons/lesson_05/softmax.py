"""The softmax to play with: temperature, the width d_k, and what they do to weights and gradient."""

import math

import numpy as np

from course_lib.classroom.widgets.explorer import Choice, Explorer, Slider, State
from course_lib.viz.style import GREY, PALETTE, figure

KEYS = 5


def softmax_explorer() -> Explorer:
    """The softmax over five scores q.k, with a temperature T and a width d_k to move.

    A slider sets a key's score at d_k = 1; a wider q and k make it sqrt(d_k) times as large, as independent entries of
    variance 1 do, unless it is divided by sqrt(d_k) (Vaswani et al. 2017, section 3.2.1).
    """
    starts = (1.2, 0.4, -0.3, -1.1, 0.0)
    scores = [
        Slider(name=f"z{i + 1}", label=f"Score of key {i + 1}", low=-3, high=3, step=0.1, value=value)
        for i, value in enumerate(starts)
    ]
    return Explorer(
        name="softmax",
        title="Softmax: from scores to weights",
        controls=[
            Choice(name="d_k", label="Width d_k", options={str(d): d for d in (1, 4, 16, 64, 256, 1024)}, value=1),
            Choice(
                name="scaled",
                label="Divide by √d_k",
                options={"no": False, "yes, as in the paper": True},
                value=False,
            ),
            Slider(name="temperature", label="Temperature T", low=-1, high=1.6, step=0.05, value=1.0, log=True),
            *scores,
        ],
        draw=_draw,
        alt=_alt,
        steps={"d_k": (1, 16, 64), "temperature": (1.0, 4.0, 8.0)},  # T = sqrt(d_k) gives the same weights each time
    )


def logits_of(state: State) -> np.ndarray:
    """Return what goes into the softmax: q.k, divided by sqrt(d_k) if asked for and by the temperature."""
    raw = np.array([state[f"z{i + 1}"] for i in range(KEYS)]) * math.sqrt(state["d_k"])
    return raw / (math.sqrt(state["d_k"]) if state["scaled"] else 1.0) / state["temperature"]


def softmax(logits: np.ndarray) -> np.ndarray:
    """exp(z_i) / sum_j exp(z_j)."""
    powers = np.exp(logits - logits.max())
    return powers / powers.sum()


def entropy(weights: np.ndarray) -> float:
    """Return -sum_i p_i log2 p_i in bits: 0 when one key has all the weight, log2(n) when all have the same."""
    seen = weights[weights > 0]
    return float(-(seen * np.log2(seen)).sum()) + 0.0


def jacobian(weights: np.ndarray) -> np.ndarray:
    """dp_i / dz_j = p_i (1[i = j] - p_j): how much a small change of score j moves weight i."""
    return np.diag(weights) - np.outer(weights, weights)


def _draw(state: State):
    logits = logits_of(state)
    weights = softmax(logits)
    fig, (left, middle, right) = figure(9.6, 3.5, columns=3, layout=None, gridspec_kw={"width_ratios": [1, 1, 1.05]})
    fig.subplots_adjust(left=0.07, right=0.99, bottom=0.17, top=0.88, wspace=0.32)
    keys = np.arange(1, KEYS + 1)
    left.bar(keys, logits, color=PALETTE["orange"])
    left.axhline(0, color=GREY, linewidth=1)
    left.set(title="into the softmax", xlabel="key", xticks=keys)
    middle.bar(keys, weights, color=PALETTE["blue"])
    for key, weight in zip(keys, weights, strict=True):
        middle.text(key, weight + 0.02, f"{weight:.2f}", ha="center", fontsize=11)
    middle.set(title="weights", xlabel="key", xticks=keys, ylim=(0, 1.12))
    slope = jacobian(weights)
    right.imshow(slope, cmap="PuOr", vmin=-0.25, vmax=0.25)
    right.grid(visible=False)
    for i in range(KEYS):
        for j in range(KEYS):
            text, colour = f"{slope[i, j]:.2f}".replace("-0.00", "0.00"), "white" if slope[i, j] > 0.12 else "black"
            right.text(j, i, text, ha="center", va="center", fontsize=10, color=colour)
    right.set(title="∂ weight / ∂ score", xlabel="score of key")
    right.set_xticks(range(KEYS), keys)
    right.set_yticks(range(KEYS), keys)
    return fig


def _alt(state: State) -> str:
    weights = softmax(logits_of(state))
    size = np.linalg.norm(jacobian(weights))
    first = int(weights.argmax())
    listed = ", ".join(f"{weight:.2f}" for weight in weights)
    mood = "A change of the scores moves the weights."
    if size < 0.02:
        mood = "The softmax is saturated: hardly any gradient comes through."
    return (
        f"The weights of keys 1 to {KEYS} are {listed}; key {first + 1} has the largest. "
        f"Entropy {entropy(weights):.2f} of at most {math.log2(KEYS):.2f} bits. "
        f"Size of the gradient (norm of the Jacobian) {size:.3f}. {mood}"
    )
