"""Byte-pair encoding: which two neighbouring pieces are joined next. Sennrich et al. 2016, arXiv 1508.07909.

`learn_merges_naive` is section 3.2 as it stands there; `learn_merges` finds the same merges without counting anew.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import NamedTuple

from course_lib.text.tokenizer import most_frequent


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """What merges are learned from: each distinct word once, as ids of its letters, and how often it occurs.

    tokens: the vocabulary so far: special tokens, then letters in the order of Unicode, then letters with a mark.
    prefix: the mark of a piece that does not begin a word, such as `##`; a joined piece keeps only the first one.
    """

    tokens: tuple[str, ...]
    words: tuple[tuple[int, ...], ...]
    counts: tuple[int, ...]
    prefix: str = ""

    @classmethod
    def from_counts(
        cls,
        word_counts: Mapping[str, int],
        *,
        specials: Iterable[str] = (),
        alphabet: Iterable[str] = (),
        limit_alphabet: int | None = None,
        prefix: str = "",
        suffix: str = "",
    ) -> "Corpus":
        """Splits words into letters, all but the first marked by `prefix`, and the last by `suffix`.

        The letters of `alphabet` come first into the vocabulary, used or not, then the most frequent up to
        `limit_alphabet`; words lose the others.
        """
        letters: Counter[str] = Counter()
        for word, count in word_counts.items():
            for letter in word:
                letters[letter] += count
        letters.update(dict.fromkeys(alphabet, sum(letters.values())))
        kept = set(most_frequent(letters, limit_alphabet))
        words = [
            [
                prefix * (i > 0) + letter + suffix * (i == len(word) - 1)
                for i, letter in enumerate(word)
                if letter in kept
            ]
            for word in word_counts
        ]
        marked = {piece for word in words for piece in word}
        tokens = tuple(dict.fromkeys([*specials, *sorted(kept), *sorted(marked)]))
        ids = {token: i for i, token in enumerate(tokens)}
        return cls(
            tokens=tokens,
            words=tuple(tuple(ids[piece] for piece in word) for word in words),
            counts=tuple(word_counts.values()),
            prefix=prefix,
        )


class Learned(NamedTuple):
    """The vocabulary, and the pairs of pieces to join, the most important first."""

    tokens: list[str]
    merges: list[tuple[str, str]]


class _Growing:
    """The vocabulary while it grows."""

    def __init__(self, corpus: Corpus, vocab_size: int, min_frequency: int):
        if vocab_size < len(corpus.tokens):
            raise ValueError(
                f"A vocabulary of {vocab_size} tokens is too small: special tokens and letters are already "
                f"{len(corpus.tokens)}. Ask for more, or keep fewer letters."
            )
        if min_frequency < 1:
            raise ValueError(f"A pair must occur at least once to be joined, got min_frequency {min_frequency}.")
        self.tokens, self.prefix = list(corpus.tokens), corpus.prefix
        self.ids = {token: i for i, token in enumerate(self.tokens)}
        self.merges: dict[tuple[str, str], None] = {}  # an ordered set

    def join(self, left: int, right: int) -> int:
        """The id of the joined piece, a new one unless the vocabulary has it."""
        pair = self.tokens[left], self.tokens[right]
        self.merges[pair] = None
        joined = pair[0] + pair[1].removeprefix(self.prefix)
        if joined not in self.ids:
            self.ids[joined] = len(self.tokens)
            self.tokens.append(joined)
        return self.ids[joined]

    def learned(self) -> Learned:
        return Learned(self.tokens, list(self.merges))


def learn_merges_naive(corpus: Corpus, vocab_size: int, *, min_frequency: int = 2) -> Learned:
    """Counts all pairs of neighbours, joins the most frequent one everywhere, and begins again (section 3.2).

    Of pairs that are equally frequent, the one with the smallest ids. Stops at `vocab_size` tokens, or when no pair
    occurs `min_frequency` times. Raises ValueError if `vocab_size` has no room for the letters. Readable and slow:
    the twin of `learn_merges`.
    """
    growing = _Growing(corpus, vocab_size, min_frequency)
    words = [list(word) for word in corpus.words]
    while len(growing.tokens) < vocab_size:
        counts: Counter[tuple[int, int]] = Counter()
        for word, count in zip(words, corpus.counts, strict=True):
            for pair in pairwise(word):
                counts[pair] += count
        best = min(counts, key=lambda pair: (-counts[pair], pair), default=None)
        if best is None or counts[best] < min_frequency:
            break
        joined = growing.join(*best)
        words = [replace_pair(word, best, joined) for word in words]
    return growing.learned()


def replace_pair(word: list[int], pair: tuple[int, int], joined: int) -> list[int]:
    """`word` with `joined` in place of each `pair` of neighbours, from left to right."""
    result, i = [], 0
    while i < len(word):
        found = tuple(word[i : i + 2]) == pair
        result.append(joined if found else word[i])
        i += 2 if found else 1
    return result


def learn_merges(corpus: Corpus, vocab_size: int, *, min_frequency: int = 2) -> Learned:
    """The merges of `learn_merges_naive`, found in a fraction of the time.

    A merge changes only the words that hold the pair, and only the counts of its neighbours there: so keep the
    counts, and for each pair the words that (may) hold it. The heap keeps the most frequent pair on top. Its entries
    are not corrected when a count falls, but when they come up.
    """
    growing = _Growing(corpus, vocab_size, min_frequency)
    words = list(corpus.words)
    counts: defaultdict[tuple[int, int], int] = defaultdict(int)
    holders: defaultdict[tuple[int, int], set[int]] = defaultdict(set)
    for index, (word, count) in enumerate(zip(words, corpus.counts, strict=True)):
        for pair in pairwise(word):
            counts[pair] += count
            holders[pair].add(index)
    heap = [(-count, pair) for pair, count in counts.items() if count >= min_frequency]
    heapify(heap)

    while heap and len(growing.tokens) < vocab_size:
        promised, best = heappop(heap)
        count = counts.get(best, 0)
        if count != -promised:
            if count >= min_frequency:
                heappush(heap, (-count, best))
            continue
        joined = growing.join(*best)
        risen: set[tuple[int, int]] = set()
        for index in holders.pop(best):
            words[index], lost, won = _join_in_word(words[index], best, joined)
            for pair in lost:
                counts[pair] -= corpus.counts[index]
            for pair in won:
                counts[pair] += corpus.counts[index]
                holders[pair].add(index)
            risen.update(won)
        del counts[best]
        for pair in risen:
            if counts[pair] >= min_frequency:
                heappush(heap, (-counts[pair], pair))
    return growing.learned()


def _join_in_word(
    word: Sequence[int], pair: tuple[int, int], joined: int
) -> tuple[list[int], list[tuple[int, int]], list[tuple[int, int]]]:
    """`replace_pair`, and the pairs of neighbours that went and that came with it."""
    left, right = pair
    result, lost, won = [], [], []
    i, last = 0, len(word) - 1
    while i <= last:
        if i < last and word[i] == left and word[i + 1] == right:
            if result:
                lost.append((result[-1], left))
                won.append((result[-1], joined))
            if i + 2 <= last:
                lost.append((right, word[i + 2]))
                won.append((joined, word[i + 2]))
            result.append(joined)
            i += 2
        else:
            result.append(word[i])
            i += 1
    return result, lost, won


class MergeRules:
    """pair of ids -> the id of both joined, in the order in which merges were learned."""

    def __init__(self, merges: Iterable[Sequence[str]], ids: Mapping[str, int]):
        self.ranks: dict[tuple[int, int], int] = {}
        self.joined: list[int] = []
        for merge in merges:
            missing = [piece for piece in (*merge, "".join(merge)) if piece not in ids]
            if len(merge) != 2 or missing:
                raise ValueError(f"The merge {merge!r} is not a pair of tokens that make a third: {missing} are none.")
            pair = ids[merge[0]], ids[merge[1]]
            if pair in self.ranks:
                raise ValueError(f"Each merge may occur once, got {merge!r} again.")
            self.ranks[pair] = len(self.joined)
            self.joined.append(ids["".join(merge)])

    def apply(self, ids: list[int]) -> list[int]:
        """Joins the pair that was learned first, the leftmost of several, until no pair is left.

        In O(n log n) for n ids: a heap of the pairs, and links between neighbours in place of moves.
        """
        end, rank_of = len(ids), self.ranks.get
        pieces: list[int | None] = [*ids, None]  # None, also for a piece that was joined to its left: in no pair
        after, before = [*range(1, end + 1), end], [*range(-1, end)]
        heap = [(rank, i) for i, pair in enumerate(pairwise(pieces)) if (rank := rank_of(pair)) is not None]
        heapify(heap)
        while heap:
            rank, i = heappop(heap)
            right = after[i]
            if rank_of((pieces[i], pieces[right])) != rank:  # one of the two was joined with another in the meantime
                continue
            pieces[i], pieces[right] = self.joined[rank], None
            after[i] = after[right]
            before[after[i]] = i
            for left in (before[i], i):
                rank = rank_of((pieces[left], pieces[after[left]]))
                if rank is not None:
                    heappush(heap, (rank, left))
        return [piece for piece in pieces if piece is not None]
