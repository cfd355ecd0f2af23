"""What language models are asked to guess: hidden words, the next sentence, missing spans. And a vector for a sentence.

Devlin et al., "BERT: pre-training of deep bidirectional Transformers for language understanding", arXiv 1810.04805.
Raffel et al., "Exploring the limits of transfer learning with a unified text-to-text Transformer", JMLR 2020,
arXiv 1910.10683, sections 3.1.4 and 3.3.4 (spans). Reimers & Gurevych, "Sentence-BERT", EMNLP 2019, arXiv 1908.10084.
The noise comes from outside, uniform in [0, 1), so that a test or a lesson can replay it.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
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


class Corrupted(NamedTuple):
    """A text with holes, and what was in them."""

    source: Int[Tensor, " T_k"]
    target: Int[Tensor, " T_q"]


def corrupt_spans(tokens: Int[Tensor, " T"], dropped: Bool[Tensor, " T"], *, first_sentinel: int) -> Corrupted:
    """Replaces each run of dropped tokens by one sentinel; the target has the sentinels, each before its tokens.

    Section 3.1.4, figure 2: the target ends with one more sentinel. As in the released vocabulary the sentinels count
    down from `first_sentinel`. Pure: who draws `dropped` (see `random_spans`) can replay it.
    Raises ValueError if there are not enough ids below `first_sentinel` that are no token here.
    """
    starts = dropped & ~torch.cat([dropped.new_zeros(1), dropped[:-1]])
    sentinels = first_sentinel - (starts.cumsum(0) - 1)  # of the span that a token is in
    last = first_sentinel - int(starts.sum())
    if last < 0 or ((tokens >= last) & (tokens <= first_sentinel)).any():
        raise ValueError(
            f"{first_sentinel - last + 1} sentinels count down from {first_sentinel} to {last}: they must not be "
            "negative, nor tokens of the text"
        )
    source = torch.where(starts, sentinels, tokens)[starts | ~dropped]
    both = torch.stack([sentinels, tokens], dim=1)[dropped]  # (dropped tokens, 2)
    target = both[torch.stack([starts, torch.ones_like(starts)], dim=1)[dropped]]
    return Corrupted(source, torch.cat([target, target.new_full((1,), last)]))


def random_spans(
    length: int, *, rate: float = 0.15, mean_span: float = 3.0, generator: torch.Generator | None = None
) -> Bool[Tensor, " T"]:
    """True at the tokens to drop: a share `rate`, in spans of `mean_span` tokens on average, section 3.3.4.

    Both the spans and the gaps between them are drawn uniformly among all ways to cut their totals into pieces of one
    token or more; the text begins with a gap, as in the released code.
    Raises ValueError if `length` is under 2, or `rate` or `mean_span` is out of range.
    """
    if length < 2 or not 0 < rate < 1 or mean_span < 1:
        raise ValueError(
            "random spans need 2 tokens or more, a rate between 0 and 1 and a mean span of 1 or more, "
            f"got length={length}, rate={rate}, mean_span={mean_span}"
        )
    num_dropped = min(max(round(length * rate), 1), length - 1)
    num_spans = min(max(round(num_dropped / mean_span), 1), length - num_dropped)
    gaps, spans = (_pieces(total, num_spans, generator) for total in (length - num_dropped, num_dropped))
    lengths = torch.stack([gaps, spans], dim=1).flatten()
    return torch.tensor([False, True]).repeat(num_spans).repeat_interleave(lengths)


def _pieces(total: int, count: int, generator: torch.Generator | None) -> Int[Tensor, " count"]:
    cuts = torch.randperm(total - 1, generator=generator)[: count - 1].sort().values + 1
    edges = torch.cat([torch.tensor([0]), cuts, torch.tensor([total])])
    return edges.diff()


def mean_pool(features: Float[Tensor, "B T D"], valid: Bool[Tensor, "B T"]) -> Float[Tensor, "B D"]:
    """The mean over the real tokens, section 3; a row without any gets zeros."""
    kept = valid[:, :, None]
    return features.masked_fill(~kept, 0.0).sum(dim=1) / kept.sum(dim=1).clamp(min=1)


def sentence_embeddings(features: Float[Tensor, "B T D"], valid: Bool[Tensor, "B T"]) -> Float[Tensor, "B D"]:
    """`mean_pool` scaled to length 1, so that a dot product of two sentences is their cosine similarity."""
    return F.normalize(mean_pool(features, valid), dim=-1)
