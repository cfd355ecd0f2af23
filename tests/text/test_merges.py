from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib.text import ByteLevelBPE, merges
from course_lib.text.merges import Corpus, MergeRules, learn_merges, learn_merges_naive, replace_pair
from course_lib.text.splitting import split_like_gpt2
from tests.text.samples import language

WORDS = st.dictionaries(st.text("aabc#é", min_size=1, max_size=9), st.integers(1, 5), max_size=12)
TOYS = {"low": 5, "lower": 2, "newest": 6, "widest": 3}  # Sennrich et al., fig. 1 and its program


def test_the_merges_of_the_paper():
    learned = learn_merges(Corpus.from_counts(TOYS, suffix="</w>"), 100, min_frequency=2)
    assert learned.merges[:5] == [("e", "s"), ("es", "t</w>"), ("l", "o"), ("e", "w"), ("n", "ew")]
    assert {"low</w>", "newest</w>", "widest</w>"} <= set(learned.tokens)


@settings(deadline=None)
@given(WORDS, st.integers(1, 3), st.integers(0, 25), st.sampled_from([("", ""), ("##", ""), ("", "</w>")]))
def test_the_fast_trainer_finds_the_merges_of_the_naive_one(words, min_frequency, room, marks):
    corpus = Corpus.from_counts(words, specials=["[UNK]"], prefix=marks[0], suffix=marks[1])
    size = len(corpus.tokens) + room
    fast = learn_merges(corpus, size, min_frequency=min_frequency)
    assert fast == learn_merges_naive(corpus, size, min_frequency=min_frequency)
    assert len(fast.tokens) <= size and len(set(fast.tokens)) == len(fast.tokens)


def test_the_alphabet_stands_in_order_special_then_letters_then_marked_letters():
    corpus = Corpus.from_counts({"ba": 2, "ab": 1}, specials=["<unk>"], alphabet="z", suffix="</w>")
    assert corpus.tokens == ("<unk>", "a", "b", "z", "a</w>", "b</w>")
    assert corpus.words == ((2, 4), (1, 5)) and corpus.counts == (2, 1)


def test_a_limited_alphabet_keeps_the_frequent_letters_and_words_lose_the_others():
    corpus = Corpus.from_counts({"abc": 3, "ad": 1, "e": 1}, limit_alphabet=3, prefix="##")
    assert corpus.tokens == ("a", "b", "c", "##b", "##c")
    assert corpus.words == ((0, 3, 4), (0,), ())


def test_training_is_deterministic_and_refuses_what_it_cannot_do():
    corpus = Corpus.from_counts(TOYS)
    assert learn_merges(corpus, 15) == learn_merges(Corpus.from_counts(dict(reversed(TOYS.items()))), 15)
    for learn in (learn_merges, learn_merges_naive):
        with pytest.raises(ValueError, match="vocabulary of 9 tokens.*already 10"):
            learn(corpus, 9)
        with pytest.raises(ValueError, match="at least once.*min_frequency 0"):
            learn(corpus, 20, min_frequency=0)


def test_the_fast_trainer_reads_again_only_the_words_that_hold_the_pair(monkeypatch):
    corpus = Corpus.from_counts(Counter(" ".join(language(0, words=1500, sentences=800)).split()))
    read = []
    join_in_word = merges._join_in_word
    monkeypatch.setattr(merges, "_join_in_word", lambda word, *given: read.append(word) or join_in_word(word, *given))
    merged = learn_merges(corpus, len(corpus.tokens) + 80).merges
    assert len(merged) <= len(read) < len(corpus.words) * len(merged) / 5  # the naive one reads all for each merge


PIECES = {letter: i for i, letter in enumerate(["a", "b", "ab", "ba", "aab", "aa", "abab"])}
RULES = [("a", "a"), ("a", "b"), ("b", "a"), ("a", "ab"), ("ab", "ab")]


def test_pairs_are_joined_from_left_to_right_and_in_the_order_of_learning():
    rules = MergeRules(RULES, PIECES)
    assert rules.apply([0, 0, 0, 1]) == [5, 2]  # aa ab, and not a aa b or aab
    assert rules.apply([1, 0, 1, 0, 1]) == [1, 6]
    assert replace_pair([0, 0, 0, 0, 0], (0, 0), 5) == [5, 5, 0]
    assert rules.apply([]) == [] and rules.apply([1]) == [1]


@settings(deadline=None)
@given(st.lists(st.integers(0, 1), max_size=60))
def test_the_heap_joins_the_same_pairs_as_one_merge_after_the_other(pieces):
    rules = MergeRules(RULES, PIECES)
    given, naive = list(pieces), list(pieces)
    for pair, joined in zip(rules.ranks, rules.joined, strict=True):
        naive = replace_pair(naive, pair, joined)
    assert rules.apply(pieces) == naive and pieces == given


class CountedRanks(dict):
    """Ranks of pairs that count how often they are looked up."""

    looked_up = 0

    def get(self, pair):
        self.looked_up += 1
        return super().get(pair)


def test_a_word_of_100000_letters_takes_no_quadratic_time():
    tokenizer = ByteLevelBPE.train(language(0), 800)
    word = "".join(filter(str.isalpha, "".join(language(0, sentences=3000))))
    assert len(word) > 100_000 and split_like_gpt2(word) == [word]
    tokenizer._rules.ranks = ranks = CountedRanks(tokenizer._rules.ranks)
    ids = tokenizer.encode(word, specials=False)
    # A lookup for each pair of neighbours, one when it leaves the heap, and two for each pair that is joined.
    assert len(word) <= ranks.looked_up <= 5 * len(word.encode()) and len(ids) < len(word)


@pytest.mark.parametrize(
    ("merges", "message"),
    [
        ([("a", "c")], "'a', 'c'.*'c'"),
        ([("b", "b")], "'bb'"),
        ([("a", "b", "a")], "pair of tokens"),
        ([("a", "b"), ("a", "b")], "once.*again"),
    ],
)
def test_unusable_merges_are_refused(merges, message):
    with pytest.raises(ValueError, match=message):
        MergeRules(merges, PIECES)
