"""What BERT is trained to guess: words that were hidden, and whether one sentence follows another.

Devlin et al., "BERT: pre-training of deep bidirectional Transformers for language understanding", arXiv 1810.04805.
The noise comes from outside, uniform in [0, 1), so that a test or a lesson can replay it.
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


class MaskedTokens(NamedTuple):
    """What the model reads, and where it is asked what stood there."""

    tokens: Int[Tensor, "B T"]
    masked: Bool[Tensor, "B T"]


def mask_tokens(
    tokens: Int[Tensor, "B T"],
    noise: Float[Tensor, "3 B T"],
    *,
    maskable: Bool[Tensor, "B T"],
    mask_id: int,
    word_ids: tuple[int, int],
    ratio: float = 0.15,
    hidden: float = 0.8,
    swapped: float = 0.1,
) -> MaskedTokens:
    """Hides 15 % of each row's `maskable` tokens, at least one of them: Devlin et al. 2019, section 3.1, task 1.

    Of those, a share of `hidden` becomes `mask_id`, a share of `swapped` a random word (an id from `word_ids[0]` up to,
    but not including, `word_ids[1]`) and the rest stays as it is. The three layers of `noise` decide which tokens
    (the smallest), what becomes of them, and the random words.
    Raises ValueError for shares that are no shares or an empty range of words.
    """
    if not (0 < ratio <= 1 and hidden >= 0 and swapped >= 0 and hidden + swapped <= 1):
        raise ValueError(
            "ratio must lie above 0 and up to 1, hidden and swapped at 0 or more and together at most 1; "
            f"got ratio={ratio}, hidden={hidden}, swapped={swapped}"
        )
    first, end = word_ids
    if not 0 <= first < end:
        raise ValueError(f"word_ids must be (first, end) with 0 <= first < end, got {word_ids}")
    choice, fate, word = noise
    count = (maskable.sum(dim=1) * ratio).round().clamp(min=1)  # as the released code does
    rank = choice.masked_fill(~maskable, torch.inf).argsort(dim=1).argsort(dim=1)
    masked = (rank < count[:, None]) & maskable
    words = first + (word * (end - first)).long()
    changed = torch.where(fate < hidden, mask_id, torch.where(fate < hidden + swapped, words, tokens))
    return MaskedTokens(torch.where(masked, changed, tokens), masked)


class SentencePairs(NamedTuple):
    """Numbers of the sentences A and B of each pair, and whether B really follows A."""

    first: Int[Tensor, " N"]
    second: Int[Tensor, " N"]
    follows: Bool[Tensor, " N"]


def next_sentence_pairs(document: Int[Tensor, " S"], noise: Float[Tensor, "2 S"]) -> SentencePairs:
    """Pairs of sentences of which half follow each other: Devlin et al. 2019, section 3.1, task 2.

    `document` says to which document each sentence belongs, in the order of the text. Every sentence but a document's
    last is once A; B is the next one, or, with probability 1/2, any sentence of another document. The layers of
    `noise` decide which of the two, and which sentence.
    Raises ValueError for fewer than two documents, or a document in several pieces.
    """
    names, sizes = document.unique_consecutive(return_counts=True)
    if len(names) < 2 or len(names.unique()) < len(names):
        raise ValueError(
            f"next_sentence_pairs needs two documents or more, each in one piece; got {len(names)} pieces "
            f"of {len(names.unique())} documents"
        )
    start, size = (per_document.repeat_interleave(sizes) for per_document in (sizes.cumsum(0) - sizes, sizes))
    elsewhere = (noise[1] * (len(document) - size)).long()  # counted among the sentences outside the document
    elsewhere = elsewhere + size * (elsewhere >= start)
    here = torch.arange(len(document), device=document.device)
    follows = noise[0] < 0.5
    second = torch.where(follows, here + 1, elsewhere)
    has_next = here + 1 < start + size
    return SentencePairs(here[has_next], second[has_next], follows[has_next])
