"""Lesson 06, The Transformer: what the check cells of its assignment ask; the grader's tables are in hidden/06."""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from course_lib.layers.transformer import MultiHeadAttention
from course_lib.tasks import TRAINING_SECONDS, Check, Draw, Finding, Task, TaskInput, gradients, keeps_type
from course_lib.tasks.core import ModuleProbe, Probe, is_real
from course_lib.tasks.findings import RANDOM, WRONG_TYPE, CheckFailed, general
from course_lib.tasks.solution import Changes, run
from course_lib.tasks.trained import ELSEWHERE, in_parameters
from course_lib.tasks.values import bring, row_of

# modules ----------------------------------------------------------------------------------------------------


class CachedAttention(MultiHeadAttention):
    """The four maps of multi-head attention."""

    def __init__(self, dim: int, num_heads: int):
        super().__init__(dim, num_heads)


class LinearAttention(MultiHeadAttention):
    """The same four maps, Katharopoulos et al. 2020, section 3."""

    def __init__(self, dim: int, num_heads: int):
        super().__init__(dim, num_heads)


class MLP(nn.Module):
    """What an expert has."""

    def __init__(self, dim: int, mlp_dim: int):
        super().__init__()
        self.up_proj, self.down_proj = nn.Linear(dim, mlp_dim), nn.Linear(mlp_dim, dim)


class SwitchMLP(nn.Module):
    """A router and its experts, Fedus et al. 2022, section 2."""

    def __init__(self, dim: int, mlp_dim: int, num_experts: int):
        super().__init__()
        self.router = nn.Linear(dim, num_experts)
        self.experts = nn.ModuleList(MLP(dim, mlp_dim) for _ in range(num_experts))


class ExpertChoiceMLP(SwitchMLP):
    """The same parts, and how many positions each expert takes, Zhou et al. 2022, section 3.2."""

    def __init__(self, dim: int, mlp_dim: int, num_experts: int, capacity: int):
        super().__init__(dim, mlp_dim, num_experts)


CACHE = "cache", "the keys and the values so far"


def read(
    step: Callable[..., Any], x: Tensor, pieces: list[int], kept: tuple[str, str] = CACHE
) -> tuple[Tensor, Tensor, Tensor]:
    """What attention makes of x when it reads it in pieces of these lengths, each with what was kept of the last.

    With the two tensors that are kept in the end; `kept` are the argument's name and what it holds.
    """
    name, holds = kept
    found, cache = [], None
    for part in x.split(pieces, dim=1):
        answer = step(part) if cache is None else step(part, **{name: cache})
        if not isinstance(answer, list | tuple) or len(answer) != 2 or not is_real(answer[0]):
            raise CheckFailed(
                general(WRONG_TYPE, f"`forward` must return a pair: the output at the new positions, and the {name}.")
            )
        if answer[0].shape != part.shape:
            seen = f"For x {tuple(part.shape)} the output has shape {tuple(answer[0].shape)}; it must be that of x."
            raise CheckFailed(
                Finding(
                    "wrong shape",
                    seen,
                    f"Return the output at the new positions only, however many positions the {name} holds.",
                )
            )
        output, cache = answer
        if not isinstance(cache, list | tuple) or len(cache) != 2 or not all(map(is_real, cache)):
            raise CheckFailed(general(WRONG_TYPE, f"The {name} must be a pair of tensors: {holds}."))
        found.append(output)
    return torch.cat(found, dim=1).float(), *(part.float() for part in cache)


class InPieces(Task):
    """A task whose module reads in pieces: its inputs are x and the lengths of the pieces."""

    kept = CACHE
    other_kept = Finding(
        "another cache than keys and values",
        "Your cache holds a tensor of shape {}, but keys and values of shape {}.",
        "Keep the keys and the values of all positions, each (B, H, T, D / H).",
    )

    def right(self, given: TaskInput, way: Changes = ()) -> tuple[Tensor, ...]:
        step = partial(run, self.reference.changed(way), given.build, given.parameters)
        return read(step, *given.args, self.kept)

    def ask(self, probe: Probe, given: TaskInput, wanted: Any) -> Tensor:
        output, *cache = read(self.whom(probe, given).call, *given.args, self.kept)
        if isinstance(wanted, Tensor):
            return output
        for part, right in zip(cache, wanted[1:], strict=True):
            if part.dim() != right.dim() or part.shape[:2] != right.shape[:2]:
                seen = self.other_kept.message.format(tuple(part.shape), tuple(right.shape))
                raise CheckFailed(replace(self.other_kept, message=seen))
        return row_of((output, *cache))


class InSteps(InPieces):
    """Likewise, with a state of a fixed size."""

    kept = "state", "S and Z"
    other_kept = Finding(
        "another state than S and Z",
        "Your state holds a tensor of shape {}, but the sum that is asked for has shape {}.",
        "Keep S, (B, H, d, d), and Z, (B, H, d), behind the last position, however many positions were read.",
    )


class Sequence(Task):
    """A task whose answer is a list of words, and its score."""

    def ask(self, probe: Probe, given: TaskInput, wanted: Any) -> Tensor:
        args, kwargs = self.split(given.args)
        answer = probe.call(*args, **kwargs)
        by_hand = isinstance(wanted, Tensor)  # of the example: words and score in a row
        row = row_of(bring(answer, ([0], 0.0) if by_hand else wanted))
        return row[2:] if by_hand else row


class Sequences(Task):
    """A task whose answer is a list of lists of words; by hand, all words in a row."""

    def ask(self, probe: Probe, given: TaskInput, wanted: Any) -> Tensor:
        if not isinstance(wanted, Tensor):
            return super().ask(probe, given, wanted)
        args, kwargs = self.split(given.args)
        return torch.tensor([word for words in bring(probe.call(*args, **kwargs), [[0]]) for word in words])


# a model that writes backwards ------------------------------------------------------------------------------

SYMBOLS, LENGTH = 10, 8  # the start is the symbol behind the last


PLAIN = torch.arange(SYMBOLS), torch.arange(LENGTH)


def secret(draw: Draw) -> tuple[Tensor, Tensor]:
    """A code of the symbols, and an order in which none of the five last ones of a sequence stays where it was."""
    ring, order = draw(5).argsort(), torch.arange(LENGTH)
    return draw(SYMBOLS).argsort(), order.scatter(0, ring, ring.roll(1))


def backwards(draw: Draw, count: int, rule: tuple[Tensor, Tensor], length: int = LENGTH) -> tuple[Tensor, Tensor]:
    """Sequences, and the same in reverse in a code and an order, both (count, length)."""
    code, order = rule
    sources = draw.integers(0, SYMBOLS, count, length)
    return sources, code[sources.flip(1)[:, order[:length]]]


NOT_LEARNED = Finding(
    "not learned",
    "Too few new sequences are written without a mistake, and hardly more of the training examples.",
    "Does the loss fall from step to step? Look at what your model writes after the training.",
)
BY_HEART = Finding(
    "memorised",
    "Training examples are written much better than new ones.",
    "Treat each symbol by the same layers at every position, and let attention find the position.",
)
AHEAD = Finding(
    "attends to later symbols",
    "The logits at a position change when later symbols change. At inference these symbols do not exist yet.",
    "Use a causal mask in every self-attention over `written`.",
)
COPIES = Finding(
    "target not shifted",
    "The model predicts the symbol that it has just read, not the next one.",
    "In training, the model reads the start symbol and the targets without their last symbol.",
)
NO_PLACES = Finding(
    "order of the symbols not learned",
    "Nearly all written symbols occur in the target, but too few sequences are correct throughout.",
    "Attention alone does not know the order: add position codes to the source and to `written`.",
)
ONE_LENGTH = Finding(
    "only sequences of one length",
    "Sequences of the training length are written correctly, shorter ones are not.",
    "The last symbol of the source is written first. Number the positions so that its number is always the same.",
)
BUILT_IN = Finding(
    "rule not learned from the data",
    "With targets in a secret code and a secret order, the result is wrong.",
    "Write no part of the rule into your code. The training has to find it in the examples.",
)


def said(model: ModuleProbe, sources: Tensor, written: Tensor) -> Tensor:
    """The most probable symbol behind each position of the output so far."""
    return model.tensor(sources, written, shape=(*written.shape, SYMBOLS)).argmax(dim=-1)


def begun(targets: Tensor) -> Tensor:
    """What the model is given while it learns to write the targets."""
    return torch.cat([torch.full_like(targets[:, :1], SYMBOLS), targets[:, :-1]], dim=1)


def write(model: ModuleProbe, sources: Tensor) -> Tensor:
    """What the model writes, symbol by symbol."""
    written = torch.full_like(sources[:, :1], SYMBOLS)
    for _ in range(sources.shape[1]):
        written = torch.cat([written, said(model, sources, written)[:, -1:]], dim=1)
    return written[:, 1:]


def reverses(name: str, points: float, *, shorter: bool = False, coded: bool = True, ahead: bool = False) -> Check:
    """At least 95 % of new sequences are written without a mistake; with `ahead`, no later symbol is seen."""

    def trained(probe: Probe) -> tuple[ModuleProbe, tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
        rule = secret(probe.draw) if coded else PLAIN
        examples = backwards(probe.draw, 1000, rule)
        model = probe.make("train", *examples)
        some = tuple(part[:50] for part in examples)
        in_parameters(model, some[0], begun(some[1]), knows=lambda: share(model, *some) > 0.5)
        return model, rule, examples

    def share(model: ModuleProbe, sources: Tensor, targets: Tensor) -> float:
        return (write(model, sources) == targets).all(dim=1).float().mean().item()

    def sees_ahead(model: ModuleProbe, sources: Tensor, targets: Tensor, other: Tensor) -> bool:
        given, half = begun(targets), LENGTH // 2
        changed = torch.cat([given[:, :half], other[:, half:]], dim=1)
        shape = (*given.shape, SYMBOLS)
        first, again, second = (model.tensor(sources, written, shape=shape) for written in (given, given, changed))
        if not torch.allclose(first, again, atol=1e-3, rtol=1e-3):
            raise CheckFailed(general(RANDOM))
        return not torch.allclose(first[:, :half], second[:, :half], atol=1e-3, rtol=1e-3)

    def run(probe: Probe) -> list[Finding]:
        model, rule, examples = probe.once(f"trained, coded: {coded}", trained)
        new, other = backwards(probe.draw, 200, rule), probe.integers(0, SYMBOLS, 200, LENGTH)
        if ahead and sees_ahead(model, *new, other):
            return [AHEAD]
        right = share(model, *new)
        if shorter and right >= 0.95:
            length = 5 + probe.integers(0, 3, 1).item()
            try:
                right = share(model, *backwards(probe.draw, 200, rule, length))
            except CheckFailed:  # a table of positions that no other length fits
                right = 0.0
            return [] if right >= 0.95 else [ONE_LENGTH]
        return [] if right >= 0.95 else [why(model, rule, new, examples, other)]

    def why(model: ModuleProbe, rule: tuple, new: tuple, examples: tuple, other: Tensor) -> Finding:
        sources, targets = new
        backwards_only = (sources.flip(1), rule[0][sources.flip(1)])
        if coded and any(share(model, sources, plain) > 0.5 for plain in backwards_only):
            return BUILT_IN
        if (said(model, sources, other) == other).float().mean() > 0.9:
            return COPIES
        if sees_ahead(model, *new, other):
            return AHEAD
        if share(model, *(part[:200] for part in examples)) > share(model, *new) + 0.2:
            return BY_HEART
        written = write(model, sources)
        if (written[:, :, None] == targets[:, None]).any(dim=2).float().mean() > 0.9:
            return NO_PLACES
        return NOT_LEARNED

    told = (NOT_LEARNED, BY_HEART, AHEAD, COPIES, NO_PLACES, ONE_LENGTH, BUILT_IN)
    return Check(name=name, points=points, run=run, detects=(ELSEWHERE, *(one.misconception for one in told)))


# what is shown ----------------------------------------------------------------------------------------------

NORM = ([[[1.0, 3.0, 1.0, 3.0]]], [2.0, 1.0, 1.0, 1.0], [[[4.0, 0.0, 0.0, 0.0]]])
NORMED = [[[4.0, 0.0, -4.0, 0.0]]]
ATTENDED = (
    [[[2.0, 0.0, 0.0, 0.0], [0.0] * 4]],
    [[[math.log(3), 0.0, 0.0, 0.0], [0.0] * 4]],
    [[[4.0, 0.0, 0.0, 0.0], [0.0] * 4]],
    [[[1.0, 0.0, 0.0, 0.0], [0.0, 2.0, 0.0, 0.0]]],
)
ATTENTION_GRADIENT = [
    [[[0.375 * math.log(3), 0.0, 0.0, 0.0], [0.0] * 4]],
    [[[0.75, 0.0, 0.0, 0.0], [-0.75, 0.0, 0.0, 0.0]]],
    [[[0.75, 1.0, 0.0, 0.0], [0.25, 1.0, 0.0, 0.0]]],
]
MAPS = {f"{letter}_proj.weight": (letter in "vo") * torch.eye(2) for letter in "qkvo"}
MAPS |= {f"{letter}_proj.bias": torch.zeros(2) for letter in "qkvo"}
CACHED = (
    TaskInput((torch.tensor([[[0.0, 8.0], [2.0, 0.0]]]), [1, 1]), build=(2, 1), parameters=MAPS),
    [[[0.0, 8.0], [1.0, 4.0]]],
)
SUMMED = (
    TaskInput(
        CACHED[0].args, build=(2, 1), parameters=MAPS | {"k_proj.weight": torch.tensor([[1.0, 0.0], [0.0, 0.0]])}
    ),
    [[[0.0, 8.0], [4 / 3, 8 / 3]]],
)
EXPERTS = {"router.weight": math.log(3) * torch.eye(2), "router.bias": torch.zeros(2)}
for expert, down in enumerate(([[4.0], [0.0]], [[0.0], [8.0]])):
    EXPERTS |= {f"experts.{expert}.up_proj.weight": torch.ones(1, 2), f"experts.{expert}.up_proj.bias": torch.zeros(1)}
    EXPERTS |= {f"experts.{expert}.down_proj.weight": torch.tensor(down)}
    EXPERTS |= {f"experts.{expert}.down_proj.bias": torch.zeros(2)}
SWITCHED = (
    TaskInput((torch.tensor([[[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]]),), build=(2, 1, 2), parameters=EXPERTS),
    [[[3.0, 0.0], [0.0, 6.0], [3.0, 0.0]]],
)
THREE = (torch.tensor([[[2.0, 0.0], [1.0, 0.0], [0.0, 1.0]]]),)
CHOSEN = (
    (TaskInput(THREE, build=(2, 1, 2, 2), parameters=EXPERTS), [[[7.2, 0.0], [3.0, 2.0], [0.0, 6.0]]]),
    (TaskInput(THREE, build=(2, 1, 2, 1), parameters=EXPERTS), [[[7.2, 0.0], [0.0, 0.0], [0.0, 6.0]]]),
)
CHANCES = [[0.0, 0.0, 0.6, 0.4], [1.0, 0.0, 0.0, 0.0], [0.0, 0.4, 0.3, 0.3], [0.0, 0.9, 0.1, 0.0]]
LOGARITHMS = [[math.log(p) if p else -math.inf for p in row] for row in CHANCES]

NO_AUTOGRAD = ("autograd", "backward", "grad", "requires_grad", "requires_grad_", "vjp", "jacrev", "jacobian")
SHOWN = (
    Task(
        "norm_gradient",
        "The backward pass of LayerNorm",
        asks="x, gain, dy",
        forbids=NO_AUTOGRAD,
        also=(keeps_type,),
        example=((NORM, NORMED),),
    ),
    Task(
        "attention_gradient",
        "The backward pass of attention",
        asks="q, k, v, do",
        forbids=NO_AUTOGRAD,
        also=(keeps_type,),
        example=((ATTENDED, ATTENTION_GRADIENT),),
    ),
    InPieces(
        "CachedAttention",
        "Self-attention with a cache",
        asks="x, cache=None",
        module=CachedAttention,
        example=(CACHED,),
    ),
    InSteps(
        "LinearAttention",
        "Self-attention with a state of fixed size",
        asks="x, state=None",
        module=LinearAttention,
        example=(SUMMED,),
    ),
    Task(
        "SwitchMLP",
        "A mixture of experts",
        asks="x",
        module=SwitchMLP,
        also=(gradients,),
        example=(SWITCHED,),
    ),
    Task(
        "ExpertChoiceMLP",
        "Experts that choose",
        asks="x",
        module=ExpertChoiceMLP,
        also=(gradients,),
        example=CHOSEN,
    ),
    Sequence(
        "beam_search",
        "Beam search",
        asks="log_probs, start, end, num_beams, penalty, longest",
        example=(
            ((LOGARITHMS, 0, 1, 2, 1.0, 4), [3.0, 1.0, math.log(0.36) / 2]),
            ((LOGARITHMS, 0, 1, 1, 1.0, 4), [2.0, 1.0, math.log(0.24) / 2]),
        ),
    ),
    Sequences(
        "diverse_beam_search",
        "Diverse beam search",
        asks="log_probs, start, end, groups, beams, strength, longest",
        example=(
            ((LOGARITHMS, 0, 1, 2, 1, 1.0, 4), [2, 1, 3, 1]),
            ((LOGARITHMS, 0, 1, 2, 1, 0.0, 4), [2, 1, 2, 1]),
            ((LOGARITHMS, 0, 1, 2, 1, 3.0, 4), [2, 1, 3, 2, 1]),
        ),
    ),
    Task(
        "train",
        "A model that writes backwards",
        asks="sources, targets",
        seconds=TRAINING_SECONDS,
        checks=(
            reverses("At least 95 % of new sequences are written backwards without a mistake", 4, coded=False),
            reverses("The logits do not depend on later symbols", 2, ahead=True),
            reverses("With the targets in a secret code and order, at least 95 %", 3),
            reverses("At least 95 % of shorter sequences, in a secret code and order, too", 4, shorter=True),
        ),
    ),
)
ASSIGNMENT = {task.name: task for task in SHOWN}
