"""Assignment 16, Acting, and seeing with words: what the grader asks of each task; tasks.md lists the mistakes."""

from dataclasses import replace

import torch
from torch import Tensor

from course_lib.grading.spec import Assignment
from course_lib.lessons.lesson_16.assignment import ASSIGNMENT as SHOWN
from course_lib.tasks import Case, Draw


def uniform(draw: Draw, low: float, high: float) -> float:
    return low + (high - low) * torch.rand(1, generator=draw.generator).item()


def predicted(draw: Draw, *, kappa: float | None = None, far: bool = False) -> tuple[Tensor, Tensor, Tensor, float]:
    """Logits of returns and of actions, the values of the returns in any order, and kappa; `far` are large returns."""
    B, K, A = draw.sizes(3, 3, 8)
    returns = draw(K) + (300 + 40 * draw(K).argsort() if far else 0)
    kappa = uniform(draw, 0.7, 2.0) if kappa is None else kappa
    return 2 * draw(B, K), returns, 2 * draw(B, K, A), kappa


EXPERT_POLICY = replace(
    SHOWN["expert_policy"],
    cases=(
        Case("the actions of an expert", predicted, 9),
        Case("without a preference for high returns", lambda draw: predicted(draw, kappa=0.0), 2),
        Case("large returns", lambda draw: predicted(draw, far=True), 4),
    ),
)


def overlapping(draw: Draw, *, m: float | None = None, steps: str = "some") -> tuple[Tensor, float]:
    """Chunks of actions, and how fast the weights fall; an episode has `some` steps, `few` or `many`."""
    B, A, *both = draw.sizes(4)
    K, T = sorted(both, reverse=steps == "few")
    m = uniform(draw, 0.3, 1.0) if m is None else m
    return draw(B, 300 if steps == "many" else T, K, A), m


TEMPORAL_ENSEMBLE = replace(
    SHOWN["temporal_ensemble"],
    cases=(
        Case("several predictions for a step", overlapping, 7),
        Case("an episode that is shorter than a chunk", lambda draw: overlapping(draw, steps="few"), 3),
        Case("equal weights", lambda draw: overlapping(draw, m=0.0), 2),
        Case("hundreds of steps", lambda draw: overlapping(draw, m=uniform(draw, 0.5, 1.0), steps="many"), 3),
    ),
)


def transitions(draw: Draw, *, sweeps: int | None = None, ends: bool = False, costs: bool = True) -> tuple:
    """Transitions in any order, some of them several times with other results; some pairs and states never occur."""
    S, A = draw.integers(6, 10, 1).item(), draw.integers(3, 5, 1).item()
    known = torch.rand(S, A, generator=draw.generator) < 0.5
    known[:, 0], known[0, 1], known[1] = True, True, False  # nothing is known of the second state
    pairs = known.nonzero()
    pairs = pairs[draw.integers(0, len(pairs), 4 * len(pairs))]
    states, actions = pairs.unbind(dim=1)
    rewards = draw(len(pairs)) - (2.0 if costs else 0.0)
    following = draw.integers(0, S, len(pairs))
    following = following.masked_fill(torch.rand(len(pairs), generator=draw.generator) < (0.5 if ends else 0.1), -1)
    sweeps = draw.integers(4, 9, 1).item() if sweeps is None else sweeps
    return states, actions, rewards, following, S, A, uniform(draw, 0.6, 0.95), sweeps


STITCH = replace(
    SHOWN["stitch"],
    cases=(
        Case("rewards that are costs", transitions, 8),
        Case("rewards of both signs", lambda draw: transitions(draw, costs=False), 4),
        Case("episodes that end soon", lambda draw: transitions(draw, ends=True), 4),
        Case("a single sweep", lambda draw: transitions(draw, sweeps=1), 2),
        Case("two sweeps", lambda draw: transitions(draw, sweeps=2), 2),
    ),
)


def valued(draw: Draw, **kinds: int) -> tuple:
    """As `transitions`, with the expectile of a state's value."""
    *rest, sweeps = transitions(draw, **kinds)
    return *rest, uniform(draw, 0.65, 0.95), sweeps


IMPLICIT_Q = replace(
    SHOWN["implicit_q"],
    cases=(
        Case("rewards that are costs", valued, 8),
        Case("rewards of both signs", lambda draw: valued(draw, costs=False), 4),
        Case("episodes that end soon", lambda draw: valued(draw, ends=True), 4),
        Case("a single sweep", lambda draw: valued(draw, sweeps=1), 2),
        Case("two sweeps", lambda draw: valued(draw, sweeps=2), 2),
    ),
)


def embeddings(draw: Draw, *, single: bool = False, scale: float = 1.0) -> tuple[Tensor, Tensor, Tensor, float, float]:
    """Embeddings of images and texts, which of them match, and scale and bias; with `single` one text for each."""
    N, M, D = draw.sizes(3, 2, 7)
    M = N if single else M
    matches = torch.eye(N, dtype=torch.bool)[draw(N).argsort()] if single else draw(N, M) > 0.3
    return 2 * draw(N, D), 3 * draw(M, D), matches, scale * uniform(draw, 1.5, 4.0), scale * uniform(draw, -2.0, -0.5)


SIGMOID_LOSS = replace(
    SHOWN["sigmoid_loss"],
    cases=(
        Case("images with any number of texts", embeddings, 8),
        Case("one text for each image", lambda draw: embeddings(draw, single=True), 3),
        Case("large logits", lambda draw: embeddings(draw, scale=80.0), 3),
    ),
)


def tokens(draw: Draw, *, counts: str = "any", scale: float = 1.0) -> tuple[Tensor, Tensor, Tensor, float]:
    """Embeddings of patches and words, how many words each text has, any number, `all` or `one`, and a scale."""
    D, N, P, T = draw.sizes(4, 3, 7)
    real = {"any": draw.integers(1, T, N), "all": torch.full((N,), T), "one": torch.ones(N, dtype=torch.int64)}
    lengths = 0.3 + 3 * torch.rand(N, T, 1, generator=draw.generator)
    return 2 * draw(N, P, D), lengths * draw(N, T, D), real[counts], scale * uniform(draw, 1.5, 4.0)


LATE_INTERACTION = replace(
    SHOWN["late_interaction"],
    cases=(
        Case("texts of different lengths", tokens, 8),
        Case("texts without padding", lambda draw: tokens(draw, counts="all"), 2),
        Case("texts of a single word", lambda draw: tokens(draw, counts="one"), 2),
        Case("large logits", lambda draw: tokens(draw, scale=200.0), 2),
    ),
)


def prompted(draw: Draw, *, all_real: bool = False) -> tuple[Tensor, Tensor, Tensor, float]:
    """Embeddings of images and prompts, how many of these are real, and a temperature."""
    N, C, D, P = draw.sizes(4, 3, 7)
    lengths = 0.3 + 3 * torch.rand(C, P, 1, generator=draw.generator)  # prompts of very different length
    counts = draw.integers(1, P, C)
    counts[-1] = max(1, P - 1)
    counts = torch.full_like(counts, P) if all_real else counts
    return 2 * draw(N, D), lengths * draw(C, P, D), counts, uniform(draw, 0.2, 0.6)


ZERO_SHOT = replace(
    SHOWN["zero_shot"],
    cases=(
        Case("classes with different numbers of prompts", prompted, 8),
        Case("the same number of prompts for each class", lambda draw: prompted(draw, all_real=True), 3),
    ),
)

ASSIGNMENT = Assignment(
    "16",
    notebook="acting_and_seeing",
    title="Acting, and seeing with words",
    tasks=(
        EXPERT_POLICY,
        TEMPORAL_ENSEMBLE,
        STITCH,
        IMPLICIT_Q,
        SIGMOID_LOSS,
        LATE_INTERACTION,
        ZERO_SHOT,
        SHOWN["train"],
    ),
)
