"""Lesson 15: the learner's functions inside its models, and the training of a walker."""

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from textwrap import wrap
from types import MethodType

import torch
from jaxtyping import Float, Int
from matplotlib.figure import Figure
from torch import Tensor, nn

from course_lib.data import mazes
from course_lib.data.draws import generator
from course_lib.data.mazes import Walks
from course_lib.functional.language import random_spans
from course_lib.lessons.lesson_15 import figures
from course_lib.lessons.lesson_15.recipes import control, speech, text_to_text
from course_lib.lessons.lesson_15.recipes.efficient import attend_by
from course_lib.models.conformer import Conformer
from course_lib.models.flamingo import Flamingo
from course_lib.models.gpt import GPT
from course_lib.models.t5 import T5
from course_lib.training.loop import FitConfig, fit
from course_lib.training.progress import Progress

Spans = Sequence[tuple[int, int]]

# --------------------------------------------------------------------------------------------- language


def with_gaps(corrupt: Callable[..., tuple], *, count: int = 3) -> str:
    """Windows of held-out text with gaps by the learner's function, and what the small T5 writes into them."""
    words, text = text_to_text.tokenizer(), text_to_text.plain_text("test")
    first = words.token_to_id(text_to_text.SENTINELS[-1])
    model, lines = text_to_text_gaps(), []
    for number in range(count):
        ids = text[number * 500 : number * 500 + text_to_text.WINDOW]
        dropped = random_spans(len(ids), generator=generator("look", number))
        source, target = corrupt(ids.tolist(), spans_of(dropped.tolist()), first)
        written, closing = text_to_text.answers(model, [words.decode(list(source))])[0], target[-1]
        written = written[: written.index(closing) + 1] if closing in written else written
        for name, row in (("read", source), ("missing", target), ("written", written)):
            lines += wrap(words.decode(list(row)), 88, initial_indent=f"{name:9}", subsequent_indent=9 * " ")
        lines.append("")
    return "\n".join(lines[:-1])


def text_to_text_gaps() -> T5:
    """The T5 that has only filled gaps."""
    from course_lib.data.checkpoints import load_trained

    return load_trained("gaps").model


def spans_of(dropped: Sequence[bool]) -> list[tuple[int, int]]:
    """The runs of True, as (first, one behind the last)."""
    edges = [i for i, (a, b) in enumerate(zip([False, *dropped], [*dropped, False], strict=True)) if a != b]
    return list(zip(edges[::2], edges[1::2], strict=True))


# --------------------------------------------------------------------------------------------- speech


@torch.no_grad()
def transcripts(model: Conformer, melodies, collapse: Callable[..., Sequence[int]]) -> list[list[int]]:
    """The likeliest symbol of each frame, made into labels by the learner's function."""
    log_probs, lengths = speech.log_probs_of(model, melodies)
    best = log_probs.argmax(dim=-1)
    return [list(collapse(row[:n].tolist())) for row, n in zip(best, lengths.tolist(), strict=True)]


# --------------------------------------------------------------------------------------------- control


@dataclass(frozen=True, kw_only=True)
class WalkerSettings(control.CloningSettings):
    """The Decision Transformer that learns while one looks on."""

    model: str = "transformer"
    returns: bool = True
    steps: int = 600


def train_walker(
    model: nn.Module, settings: WalkerSettings, to_go: Callable[[Tensor], Tensor], display: Progress
) -> None:
    """Learns from 1,600 walks of mixed quality which action was taken, given the return that was still to come."""
    fit(
        model,
        control.windows_at(control.demonstrations(settings.seed), settings, returns_to_go=to_go),
        control.cloning_loss,
        config=FitConfig(
            steps=settings.steps,
            learning_rate=settings.learning_rate,
            schedule="cosine",
            warmup=settings.steps // 10,
            weight_decay=settings.weight_decay,
            seed=settings.seed,
        ),
        progress=display,
    )


def walk(model: nn.Module, asked: float | None, *, pair: int = 0, greedy: bool = True) -> Walks:
    """The model's walk between a held-out start and goal."""
    pairs: Int[Tensor, "1 2"] = control.pairs()["test"][pair : pair + 1]
    with torch.no_grad():
        return mazes.rollout(
            control.maze(), control.policy_of(model, asked), pairs, length=control.LENGTH, greedy=greedy, seed=1
        )


def shows_walks(model: nn.Module) -> Figure:
    """An example for `page.watch`: asked for the best return, and for a poor one."""
    return figures.walking(control.maze(), [(f"asked for {asked}", walk(model, asked)) for asked in (-10, -28)])


# --------------------------------------------------------------------------------------------- pictures and words


def gated_by(flamingo: Flamingo, gate: Callable[..., Tensor]) -> Flamingo:
    """The same model, whose gates are the learner's `gate(x, seen, alpha)`."""

    def forward(self: nn.Module, y: Float[Tensor, "B T D"], x) -> Float[Tensor, "B T D"]:
        y = gate(y, self.attn(self.norm1(y), x), self.alpha_attn)
        return gate(y, self.ffn(self.norm2(y)), self.alpha_ffn)

    other = deepcopy(flamingo)
    for layer in other.gated:
        layer.forward = MethodType(forward, layer)
    return other


@torch.no_grad()
def opened(flamingo: Flamingo, share: float) -> Flamingo:
    """The same model with all alphas at a share of what was learned."""
    other = deepcopy(flamingo)
    for layer in other.gated:
        layer.alpha_attn.mul_(share)
        layer.alpha_ffn.mul_(share)
    return other


# --------------------------------------------------------------------------------------------- cheaper attention


def by_steps(step: Callable[..., tuple[Tensor, Tensor, Tensor]]) -> Callable[..., Tensor]:
    """Causal attention as a loop over the learner's `step(q, k, v, s, z)`, head by head."""

    def attend(q: Tensor, k: Tensor, v: Tensor, **settings) -> Tensor:
        heads = zip(q.flatten(0, 1), k.flatten(0, 1), v.flatten(0, 1), strict=True)
        return torch.stack([one_head(step, *head) for head in heads]).view(*q.shape[:-1], v.shape[-1])

    return attend


def one_head(step: Callable, q: Float[Tensor, "T K"], k: Float[Tensor, "T K"], v: Float[Tensor, "T V"]) -> Tensor:
    """A head that reads its tokens one after the other and keeps nothing but s and z."""
    s, z, outputs = k.new_zeros(k.shape[1], v.shape[1]), k.new_zeros(k.shape[1]), []
    for i in range(len(q)):
        output, s, z = step(q[i], k[i], v[i], s, z)
        outputs.append(output)
    return torch.stack(outputs)


@torch.no_grad()
def logits_both_ways(model: GPT, ids: Int[Tensor, "1 T"], step: Callable) -> tuple[Tensor, Tensor]:
    """What the linear GPT says of a text read at once, and read token by token by the learner's function.

    In double precision: small denominators make the rounding of single precision visible.
    """
    model = deepcopy(model).double()
    at_once = attend_by(model, "linear")(ids)
    for block in model.blocks:
        block.attn.attend = by_steps(step)
    return at_once, model(ids)
