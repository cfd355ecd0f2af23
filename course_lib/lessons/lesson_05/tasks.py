"""Lesson 05, Attention: what its exercises are tried with; what they say and how they go wrong stands in tasks.md."""

from pathlib import Path

import torch
from torch import Tensor, nn

from course_lib.tasks import Case, Draw, TaskInput
from course_lib.tasks.markdown import read_tasks


def rows_apart(draw: Draw) -> tuple[Tensor]:
    """In each row about -1000, 0 and 1000, in some order; and one row far above, another far below the rest."""
    rows = torch.stack([torch.tensor([-1000.0, 0.0, 1000.0])[draw(3).argsort()] for _ in range(6)]).view(2, 3, 3)
    return (rows + torch.tensor([-1e4, 0.0, 1e4])[draw(2, 3).argsort()][..., None] + draw(2, 3, 3),)


def qkv(draw: Draw, *, blind: bool | None = None) -> tuple[Tensor, ...]:
    """Queries, keys and values of drawn sizes; unless `blind` is None a mask, under which one query may see nothing."""
    T_q, T_k, d, d_v = draw.sizes(4)
    B = draw.integers(1, 4, 1).item()
    given = draw(B, T_q, d), draw(B, T_k, d), draw(B, T_k, d_v)
    return given if blind is None else (*given, draw.mask(B, T_q, T_k, blind=blind))


def queries_and_keys(draw: Draw, *, masked: bool = False) -> TaskInput:
    """Queries and keys of different widths, and the sizes of an additive attention."""
    T_q, T_k, d_q, d_k, A = draw.sizes(5)
    B = draw.integers(1, 4, 1).item()
    given = 2 * draw(B, T_q, d_q), 2 * draw(B, T_k, d_k)
    return TaskInput((*given, draw.mask(B, T_q, T_k, blind=False)) if masked else given, build=(d_q, d_k, A))


def lengths(draw: Draw, B: int, T: int, padded: bool) -> Tensor:
    """Which words are real: in the first sentence all of them, in the others all unless `padded`."""
    count = draw.integers(1, T, B) if padded else torch.full((B,), T)
    count[0] = T
    return torch.arange(T) < count[:, None]


def some_sentences(draw: Draw, *, padded: bool) -> TaskInput:
    """Words of some sentences, which of them are real, and the sizes of an encoder."""
    B, T, V, D = draw.sizes(4, 3, 7)
    return TaskInput((draw.integers(0, V, B, T), lengths(draw, B, T, padded)), build=(V, D))


def one_step(draw: Draw, *, padded: bool) -> TaskInput:
    """What a step of the decoder gets, and the sizes of the decoder."""
    B, T, V, D = draw.sizes(4, 3, 7)
    given = draw.integers(0, V, B), torch.tanh(2 * draw(B, D)), torch.tanh(2 * draw(B, T, 2 * D))
    return TaskInput((*given, lengths(draw, B, T, padded)), build=(V, D))


def some_pairs(draw: Draw) -> TaskInput:
    """Padded source sentences, target words, and the sizes of a translator."""
    B, T, T_q, V, D = draw.sizes(5, 3, 8)
    given = draw.integers(0, V, B, T), lengths(draw, B, T, True), draw.integers(0, V + 1, B, T_q)
    return TaskInput(given, build=(V, V + 1, D))


class CountingDecoder(nn.Module):
    """Its next state, and the word that it prefers, follow from the last state and the last word."""

    def __init__(self, vocab_size: int):
        super().__init__()
        self.vocab_size = vocab_size

    def forward(self, word: Tensor, state: Tensor, states: Tensor, valid: Tensor) -> tuple[Tensor, Tensor]:
        state = (3 * state + word[:, None] + 1) % 31
        return -(torch.arange(self.vocab_size) - state % self.vocab_size).abs() / 2, state


class Counting(nn.Module):
    """A model without parameters that writes sentences of different lengths: what a decoding loop is tried on."""

    def __init__(self, vocab_size: int):
        super().__init__()
        self.decoder = CountingDecoder(vocab_size)

    def encode(self, source: Tensor, valid: Tensor) -> tuple[Tensor, Tensor]:
        return source[..., None].float(), (source * valid).sum(dim=1, keepdim=True).float() % 31

    def forward(self, source: Tensor, valid: Tensor, target: Tensor) -> Tensor:
        states, state = self.encode(source, valid)
        logits = []
        for word in target.unbind(dim=1):
            step, state = self.decoder(word, state, states, valid)
            logits.append(step)
        return torch.stack(logits, dim=1)


def to_be_written(draw: Draw, *, most: int = 40) -> tuple:
    """A model, sentences, the start and end symbols, and how many words may be written."""
    B, T = draw.sizes(2, 4, 7)
    return Counting(5), draw.integers(0, 31, B, T), lengths(draw, B, T, True), 1, 2, most


def heads_and_vectors(draw: Draw, *, context: bool = False, mask: str = "") -> TaskInput:
    """A width that so many heads divide, vectors of that width, and perhaps a context and a mask."""
    B, T_q, T_k, d = draw.sizes(4, 2, 7)
    heads = draw.integers(2, 5, 1).item()
    x = 2 * draw(B, T_q, heads * d)
    other = 2 * draw(B, T_k, heads * d) if context else None
    hidden = {
        "": None,
        "causal": torch.ones(T_q, T_q, dtype=torch.bool).tril(),
        "padding": lengths(draw, B, T_k, True)[:, None, None],
    }[mask]
    given = (x, other, hidden) if mask else (x, other) if context else (x,)
    return TaskInput(given, build=(heads * d, heads))


def length_and_width(draw: Draw) -> tuple[int, int]:
    """A length, and an even width."""
    length, pairs = draw.sizes(2, 4, 9)
    return length, 2 * pairs


CASES = {
    "softmax": (
        Case("the results sum to one along the last axis", lambda draw: (draw(*draw.sizes(3)),)),
        Case("large numbers do no harm", lambda draw: (1000 + draw(*draw.sizes(3)),)),
        Case("numbers far apart do no harm", rows_apart),
    ),
    "attention": (
        Case("the values' average, weighted by how well each key fits", qkv),
        Case("hidden keys get no weight", lambda draw: qkv(draw, blind=False)),
        Case("a query that sees nothing gets zeros", lambda draw: qkv(draw, blind=True)),
        Case("more axes in front", lambda draw: (draw(2, 3, 4, 5), draw(2, 3, 6, 5), draw(2, 3, 6, 2))),
    ),
    "additive": (
        Case("the keys' average, weighted by the additive score", queries_and_keys),
        Case("hidden keys get no weight", lambda draw: queries_and_keys(draw, masked=True)),
    ),
    "encoder": (
        Case("sentences of one length", lambda draw: some_sentences(draw, padded=False)),
        Case("sentences of several lengths", lambda draw: some_sentences(draw, padded=True)),
    ),
    "decoder": (
        Case("sentences of one length", lambda draw: one_step(draw, padded=False)),
        Case("sentences of several lengths", lambda draw: one_step(draw, padded=True)),
    ),
    "seq2seq": (Case("the logits of all steps, under teacher forcing", some_pairs),),
    "greedy": (
        Case("rows that end at different steps", to_be_written),
        Case("at most so many words", lambda draw: to_be_written(draw, most=2)),
    ),
    "multi_head": (
        Case("self-attention", heads_and_vectors),
        Case("cross-attention to a sequence of another length", lambda draw: heads_and_vectors(draw, context=True)),
        Case("causal mask", lambda draw: heads_and_vectors(draw, mask="causal")),
        Case("padding of the context", lambda draw: heads_and_vectors(draw, context=True, mask="padding")),
    ),
    "positions": (Case("PE(pos, 2i) and PE(pos, 2i+1)", length_and_width, tolerance=1e-3),),
}


def attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """What a learner's modules take if she has no attention of her own."""
    return TASKS["attention"].reference(q, k, v, mask)


def part(name: str):
    """What a learner's module takes if she has no such part of her own: that of the solution."""
    return lambda *sizes: TASKS[name].module(*sizes)


PARTS = {"attention": attention, "Encoder": part("encoder"), "Decoder": part("decoder")}
TASKS = read_tasks(Path(__file__).with_name("tasks.md"), CASES, PARTS)
