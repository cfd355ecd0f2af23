"""Lesson 07, BERT: what its exercises are tried with; their text and their mistakes are in tasks.md."""

from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn

from course_lib.layers.transformer import FeedForward, MultiHeadAttention, TransformerBlock
from course_lib.tasks import Case, Draw, TaskInput
from course_lib.tasks.markdown import read_tasks


class Attention(MultiHeadAttention):
    """What a learner's block takes if she has none of her own."""

    def forward(self, x: Tensor, context: Tensor | None = None, mask: Tensor | None = None) -> Tensor:
        return super().forward(x, context, mask=mask)


class EncoderBlock(TransformerBlock):
    """What a learner's BERT takes if she has none of her own."""

    def __init__(self, dim: int, num_heads: int):
        norm = partial(nn.LayerNorm, dim, eps=1e-12)
        ffn = FeedForward(dim, 4 * dim, activation="gelu")
        super().__init__(MultiHeadAttention(dim, num_heads), ffn, norm, pre_norm=False)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return super().forward(x, mask=mask)


class BERT(nn.Module):
    """What a learner's masked language model takes if she has none of her own."""

    def __init__(self, vocab_size: int, context_length: int, dim: int, depth: int, num_heads: int):
        super().__init__()
        self.token_embed, self.segment_embed = nn.Embedding(vocab_size, dim), nn.Embedding(2, dim)
        self.pos_embed, self.norm = nn.Embedding(context_length, dim), nn.LayerNorm(dim, eps=1e-12)
        self.blocks = nn.ModuleList(EncoderBlock(dim, num_heads) for _ in range(depth))

    def forward(self, tokens: Tensor, segments: Tensor | None = None, valid: Tensor | None = None) -> Tensor:
        segments = torch.zeros_like(tokens) if segments is None else segments
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.norm(self.token_embed(tokens) + self.segment_embed(segments) + self.pos_embed(positions))
        for block in self.blocks:
            x = block(x, None if valid is None else valid[:, None, None])
        return x


class SmallHead(nn.Module):
    """A network of two layers whose gradients are long, with drawn weights: what a fine-tuning loop is tried on."""

    def __init__(self, draw: Draw, dim: int, num_classes: int):
        super().__init__()
        self.hidden, self.out = nn.Linear(dim, dim), nn.Linear(dim, num_classes)
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.copy_(2 * draw(*parameter.shape) / dim**0.5)

    def forward(self, x: Tensor, scale: Tensor) -> Tensor:
        return self.out(torch.tanh(self.hidden(scale[..., None] * x)))


def heads_and_vectors(draw: Draw, *, padded: bool = False) -> TaskInput:
    """A width that so many heads divide, vectors of that width, and perhaps a mask of padding."""
    B, T, d = draw.sizes(3, 2, 7)
    heads = draw.integers(2, 5, 1).item()
    x = 4 * draw(B, T, heads * d)
    given = (x, lengths(draw, B, T)[:, None, None]) if padded else (x,)
    return TaskInput(given, build=(heads * d, heads))


def lengths(draw: Draw, B: int, T: int) -> Tensor:
    """Which tokens are real: in the first row all of them."""
    count = draw.integers(1, T, B)
    count[0] = T
    return torch.arange(T) < count[:, None]


def sizes_and_tokens(draw: Draw, *, pairs: bool = False) -> TaskInput:
    """The sizes of a BERT, and tokens for it; as `pairs` with segments and padding."""
    B, T, d, V = draw.sizes(4, 3, 8)
    heads = draw.integers(2, 4, 1).item()
    tokens = draw.integers(0, V, B, T)
    second = (torch.arange(T) >= draw.integers(1, T, B, 1)).long()
    given = (tokens, second, lengths(draw, B, T)) if pairs else (tokens,)
    return TaskInput(given, build=(V, T + 3, heads * d, 2, heads))


def features_of_rows(draw: Draw) -> TaskInput:
    """Features of some rows, and the sizes of a head; there are not as many rows as tokens."""
    B, D, C = draw.sizes(3, 2, 7)
    return TaskInput((2 * draw(B, B + 2, D),), build=(D, C))


def model_and_batches(draw: Draw, *, of_tokens: bool = False) -> tuple:
    """A network, batches of two inputs with labels of rows or of tokens, of which some are not scored, and a peak."""
    B, T, D, C = draw.sizes(4, 3, 7)
    model, batches = SmallHead(draw, D, C), []
    shape = (B, T) if of_tokens else (B,)
    for _ in range(22):
        labels = draw.integers(0, C, *shape)
        hidden = draw.mask(B, T) if of_tokens else torch.zeros(B, dtype=torch.bool)
        hidden[0] = False
        inputs = 3 * draw(*shape, D), 1 + draw(*shape).abs()
        batches.append((inputs, labels.masked_fill(hidden, -100)))
    return model, batches, 0.02


def span_logits(draw: Draw, *, longest: int = 4) -> tuple[Tensor, Tensor, Tensor, int]:
    """Logits of both ends of an answer, and where a question of some tokens, the passage and padding are."""
    B, T = draw.integers(6, 9, 1).item(), draw.integers(9, 12, 1).item()
    first, last = draw.integers(1, 4, B, 1), T - 1 - draw.integers(0, 4, B, 1)
    where = torch.arange(T)
    return 2 * draw(B, T) - 1, 2 * draw(B, T) - 1, (where >= first) & (where <= last), longest


def sentences_and_noise(draw: Draw) -> tuple[Tensor, Tensor, Tensor, int, tuple[int, int]]:
    """Sentences in which about half of the words are chosen, and each fate comes as often as the others."""
    B, T = draw.sizes(2, 9, 16)
    first, size = draw.sizes(2, 20, 60)
    uniform = torch.rand(5, B, T, generator=draw.generator)
    fate = torch.stack([0.8 * uniform[1], 0.8 + 0.1 * uniform[1], 0.9 + 0.1 * uniform[1]])
    fate = fate.gather(0, (3 * uniform[2]).long()[None])[0].clamp(0.001, 0.999)
    word = ((uniform[3] * size).long() + torch.where(uniform[4] < 0.5, 0.25, 0.75)) / size
    tokens = draw.integers(first, first + size, B, T)
    signs = draw.integers(0, 4, B, T) == 0
    tokens = torch.where(signs, draw.integers(0, 5, B, T), tokens)
    return tokens, torch.stack([0.3 * uniform[0], fate, word]), ~signs, first // 2, (first, first + size)


def guesses(draw: Draw, *, large: float = 1.0) -> tuple[Tensor, Tensor, Tensor]:
    """Logits, the true words, and which of them are hidden: in one row all but one, in the others about half."""
    B, T, V = draw.sizes(3, 3, 9)
    masked = draw.mask(B, T)
    masked[0, :-1] = True
    return large * draw(B, T, V), draw.integers(0, V, B, T), masked


def word_and_pieces(draw: Draw, *, known: str = "letters") -> tuple[str, set[str]]:
    """A word, and pieces that fit at some of its places, single letters among them; or a word with a strange letter."""
    length = draw.integers(7, 12, 1).item()
    word = "".join("abc"[i] for i in draw.integers(0, 3, length).tolist())
    spans = [word[i:j] for i in range(length) for j in range(i + 2, min(i + 5, length))]
    kept = (torch.rand(2, len(spans), generator=draw.generator) < 0.5).tolist()
    vocabulary = {"[UNK]", *"abc", "##a", "##b", "##c"}
    for inside, row in zip(("", "##"), kept, strict=True):
        vocabulary |= {inside + span for span, keep in zip(spans, row, strict=True) if keep}
    if known == "whole":
        vocabulary.add(word)
    if known == "strange":
        position = draw.integers(2, length, 1).item()
        word = f"{word[:position]}z{word[position:]}"
    return word, vocabulary


def dead_end(draw: Draw) -> tuple[str, set[str]]:
    """A word whose longest first piece leaves a rest without a piece, and whose shorter one would not."""
    word = "".join("abcdefgh"[i] for i in torch.randperm(8, generator=draw.generator).tolist())
    k = draw.integers(3, 6, 1).item()
    return word, {
        "[UNK]",
        word[:k],
        word[: k - 1],
        f"##{word[k - 1 :]}",
        f"##{word[k - 1 : k + 1]}",
        f"##{word[k - 2 :]}",
    }


def late_dead_end(draw: Draw) -> tuple[str, set[str]]:
    """The same after a first piece that is right: the second one is too long, and two shorter ones would fit."""
    word = "".join("abcdefgh"[i] for i in torch.randperm(8, generator=draw.generator).tolist())
    k = draw.integers(5, 7, 1).item()
    return word, {"[UNK]", word[:2], f"##{word[2:k]}", f"##{word[2 : k - 1]}", f"##{word[k - 1 :]}", f"##{word[2:4]}"}


def two_texts(draw: Draw, *, lengths: str = "any") -> tuple[list[int], list[int], int, int, int]:
    """Two texts, the signs, and a length into which they fit; or with too long ones, of different or equal lengths."""
    short, long = draw.integers(3, 8, 1).item(), draw.integers(12, 16, 1).item()
    if draw.integers(0, 2, 1).item():
        short, long = long, short
    if lengths == "equal":
        long = short
    first, second = (draw.integers(10, 100, size).tolist() for size in (short, long))
    most = {"any": short + long + 3, "too long": 14, "equal": 2 * short}[lengths]
    return first, second, *draw.sizes(2, 1, 9), most + draw.integers(0, 2, 1).item() * (lengths != "equal")


def padded(draw: Draw, *, empty: bool = False, wild: float = 0.0) -> tuple[Tensor, Tensor]:
    """Features of sentences of several lengths, in the padding numbers, infinity or NaN; one may have no token."""
    B, T, D = draw.sizes(3, 3, 9)
    lengths = draw.integers(1, T, B)
    lengths[-1] = 0 if empty else 1
    features, valid = draw(B, T, D) + 2, torch.arange(T) < lengths[:, None]
    return features.masked_fill(~valid[..., None], wild) if wild else features, valid


CASES = {
    "longest_match": (
        Case("the longest sub-word, then the longest of the rest", word_and_pieces),
        Case("a word of the vocabulary stays whole", lambda draw: word_and_pieces(draw, known="whole")),
        Case("a rest that has no sub-word", lambda draw: word_and_pieces(draw, known="strange")),
        Case("the search never goes back", dead_end),
        Case("nor does it go back by two steps", late_dead_end),
    ),
    "block": (
        Case("attention and MLP, each added to x and then normalised", heads_and_vectors, tolerance=1e-5),
        Case("nobody attends to masked keys", lambda draw: heads_and_vectors(draw, padded=True), tolerance=1e-5),
    ),
    "bert": (
        Case("one text: embeddings, norm, blocks", sizes_and_tokens),
        Case("two texts with padding", lambda draw: sizes_and_tokens(draw, pairs=True)),
    ),
    "masked_lm": (
        Case("one text: features, transform, tied matrix", sizes_and_tokens),
        Case("two texts with padding", lambda draw: sizes_and_tokens(draw, pairs=True)),
    ),
    "mask_words": (Case("of the chosen tokens 80 % are masked, 10 % replaced, 10 % kept", sentences_and_noise),),
    "hidden_loss": (
        Case("the mean loss of the chosen tokens", guesses),
        Case("logits of some hundreds do no harm", lambda draw: guesses(draw, large=200.0)),
    ),
    "sentence_head": (Case("one prediction for each row", features_of_rows),),
    "fine_tune": (
        Case("the losses of 22 batches, a label for each row", model_and_batches),
        Case("a label for each token, some of them not scored", lambda draw: model_and_batches(draw, of_tokens=True)),
    ),
    "best_span": (
        Case("the best allowed pair of each row", span_logits),
        Case("answers of one token", lambda draw: span_logits(draw, longest=1)),
    ),
    "pack_pair": (
        Case("[CLS] first [SEP] second [SEP], with segments", two_texts),
        Case("the longer text loses its last tokens", lambda draw: two_texts(draw, lengths="too long")),
        Case("two texts of the same length", lambda draw: two_texts(draw, lengths="equal")),
    ),
    "mean_pooling": (
        Case("the mean over the real tokens", padded),
        Case("a row without tokens gets zeros", lambda draw: padded(draw, empty=True)),
        Case("infinity in the padding does no harm", lambda draw: padded(draw, wild=torch.inf)),
        Case("nor does NaN", lambda draw: padded(draw, wild=torch.nan)),
    ),
}
PARTS = {"MultiHeadAttention": Attention, "EncoderBlock": EncoderBlock, "BERT": BERT}
TASKS = read_tasks(Path(__file__).with_name("tasks.md"), CASES, PARTS)
