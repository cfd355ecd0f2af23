"""Lesson 08, GPT: what its exercises are tried with; what they say and how they go wrong stands in tasks.md."""

from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn

from course_lib.layers.transformer import FeedForward, MultiHeadAttention, TransformerBlock
from course_lib.tasks import Case, Check, Draw, Finding, TaskInput
from course_lib.tasks.core import Probe
from course_lib.tasks.markdown import read_tasks


def logits_and_tokens(draw: Draw, *, size: float = 2.0) -> tuple[Tensor, Tensor]:
    """Logits of drawn sizes, and tokens among so many."""
    B, T, V = draw.sizes(3, 3, 9)
    return size * draw(B, T, V), draw.integers(0, V, B, T)


class CausalSelfAttention(MultiHeadAttention):
    """What a learner's block takes if she has none of her own."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x, causal=True)


class Block(TransformerBlock):
    """What a learner's GPT takes if she has none of her own."""

    def __init__(self, dim: int, num_heads: int):
        ffn = FeedForward(dim, 4 * dim, activation="gelu_tanh")
        super().__init__(CausalSelfAttention(dim, num_heads), ffn, partial(nn.LayerNorm, dim))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.norm1(x))
        return x + self.ffn(self.norm2(x))


def heads_and_vectors(draw: Draw) -> TaskInput:
    """A width that so many heads divide, and vectors of that width."""
    B, T, d = draw.sizes(3, 2, 7)
    heads = draw.integers(2, 5, 1).item()
    return TaskInput((3 * draw(B, T, heads * d),), build=(heads * d, heads))


def sizes_and_tokens(draw: Draw) -> TaskInput:
    """The sizes of a GPT, and tokens for it."""
    B, T, d, V = draw.sizes(4, 2, 7)
    heads = draw.integers(2, 4, 1).item()
    return TaskInput((draw.integers(0, V, B, T),), build=(V, T + 3, heads * d, 2, heads))


def odds(draw: Draw) -> tuple[Tensor, float]:
    """Logits of a vocabulary, and a p between 0.3 and 0.9."""
    B, T, V = draw.sizes(3, 2, 6)
    return 2 * draw(B, T, V + 8), 0.3 + 0.6 * torch.rand((), generator=draw.generator).item()


def one_for_all(draw: Draw) -> tuple[Tensor, float]:
    """In each row one token has nearly all of the probability."""
    logits, p = odds(draw)
    logits[..., draw.integers(0, logits.shape[-1], 1)] += 30
    return logits, p


def fewest_of_equals(probe: Probe) -> list[Finding]:
    """Of tokens that are equally likely any will do, but no more than are needed."""
    logits = torch.tensor([[2.0, 1, 1, 1, 1, 0], [0, 3, 0, 3, 3, 0]])
    actual = probe.tensor(logits, 0.5, shape=logits.shape, finite=False)
    kept, needed = actual.isfinite(), torch.tensor([[2, 1], [3, 3]])  # the two most probable of each row
    if not torch.equal(actual[kept], logits[kept]):
        return [TASKS["top_p"].finding("another set of tokens")]
    found = [row[some].sort(descending=True).values for row, some in zip(logits, kept, strict=True)]
    if all(row.tolist() == right for row, right in zip(found, needed.tolist(), strict=True)):
        return []
    ties = all(len(row) >= 2 for row in found)
    return [TASKS["top_p"].finding("all of equally likely tokens kept" if ties else "another set of tokens")]


FEWEST = Check(
    name="of equally likely tokens no more than are needed",
    detects=("all of equally likely tokens kept", "another set of tokens"),
    run=fewest_of_equals,
)


def new_and_cached(draw: Draw, *, new: int | None = None, past: int | None = None) -> tuple[Tensor, ...]:
    """Queries, keys and values of new tokens, and the keys and values of those in the cache."""
    B, H, T, T_past, d = draw.sizes(5)
    T, T_past = T if new is None else new, T_past if past is None else past
    return *(draw(B, H, T, d) for _ in range(3)), *(draw(B, H, T_past, d) for _ in range(2))


def losses_and_bytes(draw: Draw, *, padded: bool = False) -> tuple:
    """The nats of some tokens, the number of bytes they stand for, and where they are real."""
    B, T = draw.sizes(2, 3, 8)
    given = draw(B, T).abs(), B * T + draw.integers(5, 30, 1).item()
    return (*given, torch.arange(T) < draw.integers(1, T, B, 1)) if padded else given


CASES = {
    "shifted_loss": (
        Case("each token is scored by the logits one place before it", logits_and_tokens),
        Case("large logits do no harm", lambda draw: logits_and_tokens(draw, size=300.0)),
    ),
    "attention": (Case("each position attends to itself and to those before it, in every head", heads_and_vectors),),
    "block": (Case("attention, then the MLP, each normalised before and added to x", heads_and_vectors),),
    "gpt": (Case("embeddings, blocks, final norm, and the tied head", sizes_and_tokens),),
    "top_p": (
        Case("the fewest tokens whose probabilities reach p", odds),
        Case("a token that reaches p by itself stays", one_for_all),
        Case("p = 1 leaves all", lambda draw: (odds(draw)[0] / 4, 1.0)),
    ),
    "cached_step": (
        Case("a new token reads all cached ones, the new ones before it, and itself", new_and_cached),
        Case("a single new token needs no mask", lambda draw: new_and_cached(draw, new=1)),
        Case("the cache may still be empty", lambda draw: new_and_cached(draw, past=0)),
    ),
    "perplexity": (
        Case("one over the token's geometric mean probability, and bits of a byte", losses_and_bytes),
        Case("padding does not count", lambda draw: losses_and_bytes(draw, padded=True)),
    ),
}
PARTS = {"CausalSelfAttention": CausalSelfAttention, "Block": Block}
TASKS = read_tasks(Path(__file__).with_name("tasks.md"), CASES, PARTS, top_p={"checks": (FEWEST,)})
