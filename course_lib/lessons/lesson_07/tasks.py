"""Lesson 07, BERT: what its exercises are tried with; their text and their mistakes are in tasks.md."""

from pathlib import Path

import torch
from torch import Tensor

from course_lib.tasks import Case, Draw
from course_lib.tasks.markdown import read_tasks


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


def padded(draw: Draw, *, empty: bool = False, wild: bool = False) -> tuple[Tensor, Tensor]:
    """Features of sentences of several lengths, in the padding numbers or infinity; one may have no token."""
    B, T, D = draw.sizes(3, 3, 9)
    lengths = draw.integers(1, T, B)
    lengths[-1] = 0 if empty else 1
    features, valid = draw(B, T, D) + 2, torch.arange(T) < lengths[:, None]
    return features.masked_fill(~valid[..., None], torch.inf) if wild else features, valid


CASES = {
    "mask_words": (Case("of the chosen words 80 % are hidden, 10 % replaced, 10 % left", sentences_and_noise),),
    "hidden_loss": (
        Case("the mean surprise over the hidden words", guesses),
        Case("scores of some hundreds do no harm", lambda draw: guesses(draw, large=200.0)),
    ),
    "longest_match": (
        Case("the longest piece, then the longest of the rest", word_and_pieces),
        Case("a word of the vocabulary stays whole", lambda draw: word_and_pieces(draw, known="whole")),
        Case("a rest that has no piece", lambda draw: word_and_pieces(draw, known="strange")),
        Case("what is cut off stays cut off", dead_end),
    ),
    "pack_pair": (
        Case("[CLS] first [SEP] second [SEP], with segments", two_texts),
        Case("the longer text loses its last tokens", lambda draw: two_texts(draw, lengths="too long")),
        Case("two texts of the same length", lambda draw: two_texts(draw, lengths="equal")),
    ),
    "mean_pooling": (
        Case("the mean over the real tokens", padded),
        Case("a row without tokens gets zeros", lambda draw: padded(draw, empty=True)),
        Case("infinity in the padding does no harm", lambda draw: padded(draw, wild=True)),
    ),
}
TASKS = read_tasks(Path(__file__).with_name("tasks.md"), CASES)
