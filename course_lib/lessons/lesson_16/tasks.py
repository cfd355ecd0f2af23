"""Lesson 16, Acting, and seeing with words: what its exercises are tried with; tasks.md has their text and mistakes."""

from collections.abc import Callable
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_lib.layers.transformer import FeedForward, MultiHeadAttention
from course_lib.lessons.lesson_08.tasks import TASKS as TASKS_08
from course_lib.lessons.lesson_08.tasks import Block
from course_lib.tasks import Case, Check, Draw, Finding, TaskInput
from course_lib.tasks.core import Probe
from course_lib.tasks.markdown import read_tasks

LARGE = "large logits"
DETACHED, CLOSED, FROZEN = "the reward is detached", "a new layer returns its input", "only the new layers learn"

# What a learner's classes take if she has no function or class of her own ------------------------------------------


class ReLUBlock(Block):
    """Lesson 08's block with the activation of the released Decision Transformer for Gym."""

    def __init__(self, dim: int, num_heads: int):
        super().__init__(dim, num_heads)
        self.ffn = FeedForward(dim, 4 * dim, activation="relu")


def part(name: str) -> Callable[..., nn.Module]:
    """The class of a solution."""
    return lambda *sizes: TASKS[name].module(*sizes)


PARTS = {
    "MultiHeadAttention": MultiHeadAttention,
    "FeedForward": FeedForward,
    "ReLUBlock": ReLUBlock,
    "MyGPT": lambda *sizes: TASKS_08["gpt"].module(*sizes),
    "interleave": lambda *given: TASKS["interleave"].reference(*given),
    "GatedCrossAttention": part("gated_cross_attention"),
    "Resampler": part("resampler"),
}

# Inputs -------------------------------------------------------------------------------------------------------------


def some_steps(draw: Draw, *, size: float = 2.0) -> tuple[Tensor, Tensor, Tensor]:
    """Logits of actions, the actions taken, and which steps come before the end of their trajectory."""
    B, T, A = draw.sizes(3, 3, 7)
    lengths = 1 + draw(B).argsort() % (T - 1)
    return size * draw(B, T, A), draw.integers(0, A, B, T), torch.arange(T) < lengths[:, None]


def logits_of_pairs(draw: Draw, *, size: float = 2.0) -> tuple[Tensor, Tensor]:
    """Logits of the discriminator on some pairs of the policy, and on another number of the expert's."""
    N, M = draw.sizes(2, 3, 9)
    return size * draw(N), size * draw(M)


def logits_of_steps(draw: Draw, *, size: float = 2.0) -> tuple[Tensor]:
    """Logits of the discriminator on the steps of some trajectories."""
    return (size * draw(*draw.sizes(2, 3, 9)),)


def an_expert(draw: Draw, state_dim: int, num_actions: int) -> Callable[[Tensor], Tensor]:
    """An expert that acts by the largest of some linear functions of the state."""
    weights = draw(state_dim, num_actions)
    return lambda states: (torch.as_tensor(states) @ weights).argmax(dim=-1)


def visited_states(draw: Draw) -> tuple[Tensor, Tensor, Tensor, Tensor, Callable[[Tensor], Tensor]]:
    """Data so far, states that a policy has visited, some of them twice, what it did there, and the expert."""
    N, M, S, A = draw.sizes(4, 3, 8)
    expert, visited = an_expert(draw, S, A), draw(M, S)
    visited[1] = visited[0]
    taken = expert(visited)
    taken[::2] = (taken[::2] + 1) % A
    return draw(N, S), draw.integers(0, A, N), visited, taken, expert


def embedded_steps(draw: Draw) -> tuple[Tensor, Tensor, Tensor]:
    """Embedded returns, states and actions of some steps."""
    B, K, D = draw.sizes(3)
    return draw(B, K, D), draw(B, K, D), draw(B, K, D)


def windows(draw: Draw) -> TaskInput:
    """Steps from the middle of some episodes, and the sizes of a Decision Transformer."""
    B, K, S, A = draw.sizes(4, 2, 6)
    heads = draw.integers(2, 4, 1).item()
    times = draw.integers(1, 8, B)[:, None] + torch.arange(K)
    taken = F.one_hot(draw.integers(0, A, B, K), A).float()
    return TaskInput((2 * draw(B, K), 2 * draw(B, K, S), taken, times), build=(S, A, K + 8, 4 * heads, 2, heads))


def pairs_and_scale(draw: Draw) -> tuple[Tensor, Tensor, Tensor]:
    """Embeddings of images and texts, and the logarithm of a factor."""
    B, D = draw.sizes(2, 3, 8)
    return 2 * draw(B, D), 3 * draw(B, D), 0.5 + draw(1)[0].abs()


def two_streams(draw: Draw, *, padded: bool) -> TaskInput:
    """Words and regions, perhaps which words are none, and the sizes of a layer."""
    B, T, R, text, image = draw.sizes(5, 2, 7)
    heads = draw.integers(2, 4, 1).item()
    words, regions = 2 * draw(B, T, heads * text), 2 * draw(B, R, heads * image)
    some = (draw.mask(B, T),) if padded else ()
    return TaskInput((words, regions, *some), build=(heads * text, heads * image, heads))


def text_with_images(draw: Draw, *, alone: bool = False) -> tuple[Tensor, int]:
    """Ids of some texts, in which another id marks images; with `alone` the last text has none."""
    B, T = draw.sizes(2, 8, 12)
    image, tokens = draw.integers(20, 30, 1).item(), draw.integers(0, 20, B, T)
    tokens = tokens.masked_fill(draw(B, T) > 1, image)
    tokens[:, 0] = 1
    tokens[0, :9] = torch.tensor([1, 2, image, 3, 4, image, image, 5, 6])[: T if T < 9 else 9]
    if alone and B > 1:
        tokens[-1] = 3
    return tokens, image


def weights_of(module: nn.Module, draw: Draw) -> dict[str, Tensor]:
    """Drawn numbers for all of its parameters, also for those without axes."""
    shapes = {name: tuple(value.shape) for name, value in module.named_parameters()}
    return {name: draw(*shape) / (shape[-1] ** 0.5 if shape else 1.0) for name, shape in shapes.items()}


def text_and_media(draw: Draw, *, masked: bool) -> TaskInput:
    """Tokens of a text and of images, perhaps which may attend to which, and the sizes of a gated layer."""
    B, T, N, d, C = draw.sizes(5, 2, 7)
    heads = draw.integers(2, 4, 1).item()
    build = (heads * d, C + 1, heads)
    some = (draw.mask(B, T, N, blind=True),) if masked else ()
    given = 2 * draw(B, T, heads * d), 2 * draw(B, N, C + 1)
    return TaskInput((*given, *some), build, weights_of(TASKS["gated_cross_attention"].module(*build), draw))


def features_of_images(draw: Draw) -> TaskInput:
    """Features of some images, and the sizes of a resampler."""
    B, N, D, R, d = draw.sizes(5, 2, 7)
    return TaskInput((2 * draw(B, N, D + 2),), build=(D + 2, R, draw.integers(2, 4, 1).item(), d))


def text_and_images(draw: Draw, *, several: bool, seen: bool = False) -> TaskInput:
    """A text with one image or several, perhaps which token attends to which, and the sizes of a Flamingo."""
    B, T, M, N, C, R = draw.sizes(6, 2, 7)
    heads, V, M = draw.integers(2, 4, 1).item(), draw.integers(8, 12, 1).item(), M if several else 1
    build = (V, T + 3, 4 * heads, 2, heads, C + 2, R)
    given = draw.integers(0, V, B, T), 2 * draw(B, M, N, C + 2)
    count = (torch.arange(T) + draw.integers(0, 2, B)[:, None]).clamp(max=M)
    some = (count[..., None] == torch.arange(1, M + 1),) if seen else ()
    return TaskInput((*given, *some), build, weights_of(TASKS["flamingo"].module(*build), draw))


# Checks of their own ------------------------------------------------------------------------------------------------


def is_detached(probe: Probe) -> list[Finding]:
    """Whether the reward has no graph."""
    result = probe.call(logits_of_steps(Draw(0))[0].requires_grad_())
    connected = isinstance(result, Tensor) and result.requires_grad
    return [TASKS["imitation_reward"].finding("gradient flows to the discriminator")] if connected else []


def starts_closed(probe: Probe) -> list[Finding]:
    """Whether a new layer is the identity."""
    given = text_and_media(Draw(0), masked=False)
    made = probe.make("GatedCrossAttention", *given.build, asks="dim, media_dim, num_heads")
    if torch.equal(made.tensor(*given.args), given.args[0]):
        return []
    return [TASKS["gated_cross_attention"].finding("gates open at the start")]


def only_new_layers(probe: Probe) -> list[Finding]:
    """Whether the language model is frozen, and gradients reach all else."""
    given, task = text_and_images(Draw(0), several=False), TASKS["flamingo"]
    made = probe.call(*given.build)
    parameters = dict(made.named_parameters())
    with torch.no_grad():
        for name, value in parameters.items():
            value.copy_(given.parameters[name])
    if any(value.requires_grad for name, value in parameters.items() if name.startswith("language.")):
        return [task.finding("language model not frozen")]
    new = [value for name, value in parameters.items() if not name.startswith("language.")]
    if not all(value.requires_grad for value in new):
        return [task.finding("everything frozen")]
    logits = made(*given.args)
    if logits.requires_grad:
        logits.square().sum().backward()
    lost = any(value.grad is None for value in new)
    return [task.finding("no gradient through the frozen blocks")] if lost else []


# The exercises ------------------------------------------------------------------------------------------------------


CASES = {
    "cloning_loss": (
        Case("the mean cross-entropy of the valid steps", some_steps),
        Case(LARGE, lambda draw: some_steps(draw, size=200.0)),
    ),
    "discriminator_loss": (
        Case("the loss of both groups of pairs", logits_of_pairs),
        Case(LARGE, lambda draw: logits_of_pairs(draw, size=300.0)),
    ),
    "imitation_reward": (
        Case("the reward of each pair", logits_of_steps),
        Case(LARGE, lambda draw: logits_of_steps(draw, size=300.0)),
    ),
    "dagger": (Case("the visited states are appended with the expert's labels", visited_states),),
    "to_go": (
        Case("the sum of the rewards from each step on", lambda draw: (draw(*draw.sizes(2, 3)),)),
        Case("rewards that are integers", lambda draw: (draw.integers(-5, 6, *draw.sizes(2, 3)),)),
    ),
    "interleave": (Case("return, state and action of each step, one after another", embedded_steps),),
    "decision_transformer": (Case("the logits of each step's action", windows, tolerance=1e-3),),
    "clip_loss": (Case("the mean of both cross-entropies", pairs_and_scale),),
    "co_attention": (
        Case("both streams, updated", lambda draw: two_streams(draw, padded=False)),
        Case("some words are padding", lambda draw: two_streams(draw, padded=True)),
    ),
    "media_mask": (
        Case("each token attends to the last image at or before it", text_with_images),
        Case("a text without an image", lambda draw: text_with_images(draw, alone=True)),
    ),
    "gated_cross_attention": (
        Case("every token attends to all media", lambda draw: text_and_media(draw, masked=False)),
        Case(
            "a token attends to some of the media, or to none",
            lambda draw: text_and_media(draw, masked=True),
        ),
    ),
    "resampler": (Case("the latents of each image", features_of_images),),
    "flamingo": (
        Case("a text with one image", lambda draw: text_and_images(draw, several=False), tolerance=1e-3),
        Case(
            "several images, and all tokens attend to all",
            lambda draw: text_and_images(draw, several=True),
            tolerance=1e-3,
        ),
        Case(
            "several images, and each token attends to one of them",
            lambda draw: text_and_images(draw, several=True, seen=True),
            tolerance=1e-3,
        ),
    ),
}
TASKS = read_tasks(
    Path(__file__).with_name("tasks.md"),
    CASES,
    PARTS,
    imitation_reward={
        "checks": (Check(name=DETACHED, detects=("gradient flows to the discriminator",), run=is_detached),)
    },
    to_go={"example": ((([[-1.0, -1.0, 0.0, 5.0]],), [[3.0, 4.0, 5.0, 5.0]]),)},
    gated_cross_attention={"checks": (Check(name=CLOSED, detects=("gates open at the start",), run=starts_closed),)},
    flamingo={
        "checks": (
            Check(
                name=FROZEN,
                detects=(
                    "language model not frozen",
                    "everything frozen",
                    "no gradient through the frozen blocks",
                ),
                run=only_new_layers,
            ),
        )
    },
)
