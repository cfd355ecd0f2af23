import itertools
import math
from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib.models.kneser_ney import KneserNey, KneserNeyConfig

VOCAB = 4
TEXTS = st.lists(st.integers(0, VOCAB - 1), min_size=1, max_size=40)


def fitted(text, *, order=3, vocab_size=VOCAB, modified=True):
    return KneserNey(KneserNeyConfig(vocab_size=vocab_size, order=order, modified=modified)).fit(text)


class BruteForce:
    """The definition, gram by gram, with dictionaries; the discounts are the model's own."""

    def __init__(self, text, *, order, vocab_size, discounts):
        self.order, self.vocab_size, self.discounts = order, vocab_size, discounts
        stream = ["<s>"] * (order - 1) + list(text)
        self.counts = {order: Counter(tuple(stream[t - order : t]) for t in range(order, len(stream) + 1))}
        for k in range(order - 1, 0, -1):
            self.counts[k] = Counter(gram[1:] for gram in self.counts[k + 1])

    def prob(self, context, word):
        if context is None:
            return 1 / self.vocab_size
        k = len(context) + 1
        shorter = self.prob(context[1:] if context else None, word)
        following = {gram[-1]: count for gram, count in self.counts[k].items() if gram[:-1] == context}
        if not following:
            return shorter
        freed = sum(self.discount(k, count) for count in following.values())
        kept = following[word] - self.discount(k, following[word]) if word in following else 0
        return (kept + freed * shorter) / sum(following.values())

    def discount(self, k, count):
        return self.discounts[k - 1][min(count, 3) - 1]

    def next_probs(self, context):
        padded = ("<s>",) * (self.order - 1) + tuple(context)
        context = padded[len(padded) - (self.order - 1) :]
        return [self.prob(context, word) for word in range(self.vocab_size)]


@settings(max_examples=60, deadline=None)
@given(TEXTS, TEXTS, st.integers(1, 4), st.booleans())
def test_probabilities_equal_the_brute_force_definition(text, other, order, modified):
    model = fitted(text, order=order, modified=modified)
    reference = BruteForce(text, order=order, vocab_size=VOCAB, discounts=model.discounts)
    for context in (other[:1], other[:3], other[-5:]):
        assert model.next_probs(context) == pytest.approx(reference.next_probs(context), abs=1e-12)
    wanted = [math.log(reference.next_probs(other[:t])[w]) for t, w in enumerate(other)]
    assert model.log_probs(other) == pytest.approx(wanted, abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(TEXTS, st.integers(1, 5), st.booleans())
def test_probabilities_are_positive_and_sum_to_one_after_any_context(text, order, modified):
    model = fitted(text, order=order, modified=modified)
    for context in itertools.chain([()], itertools.product(range(VOCAB), repeat=2), [text, text[:-1]]):
        probs = model.next_probs(list(context))
        assert probs.sum() == pytest.approx(1, abs=1e-12) and (probs > 0).all()


@pytest.fixture(scope="module")
def english():
    """A random text with structure: each token depends on the two before it."""
    rng = np.random.default_rng(0)
    table = rng.dirichlet([0.1] * 20, size=(20, 20))
    text = [0, 0]
    for _ in range(6000):
        text.append(int(rng.choice(20, p=table[text[-2], text[-1]])))
    return text


def test_discounts_follow_the_counts_of_counts(english):
    model = fitted(english, order=3, vocab_size=20)
    stream = [20, 20, *english]
    trigrams = Counter(Counter(zip(stream, stream[1:], stream[2:], strict=False)).values())
    n1, n2, n3, n4 = (trigrams[i] for i in (1, 2, 3, 4))
    y = n1 / (n1 + 2 * n2)
    assert model.discounts[2] == pytest.approx((1 - 2 * y * n2 / n1, 2 - 3 * y * n3 / n2, 3 - 4 * y * n4 / n3))
    assert fitted(english, order=3, vocab_size=20, modified=False).discounts[2] == pytest.approx((y, y, y))


def test_bits_per_byte_counts_the_bytes_of_the_text():
    text = [0, 1, 2, 3] * 5
    model = fitted(text, order=2)
    assert model.bits_per_byte(text) == pytest.approx(-model.log_prob(text) / math.log(2) / 20)
    assert model.bits_per_byte(text, num_bytes=40) == pytest.approx(model.bits_per_byte(text) / 2)


def test_samples_follow_the_distribution_and_the_seed():
    model = fitted([0, 1, 1, 2, 0, 1, 3, 0, 2, 2], order=1)
    drawn = model.sample(4000, generator=torch.Generator().manual_seed(0))
    shares = np.bincount(drawn, minlength=VOCAB) / len(drawn)
    assert np.abs(shares - model.next_probs([])).max() < 0.03
    assert drawn[:50] == model.sample(50, generator=torch.Generator().manual_seed(0))


def test_a_sample_continues_its_context():
    model = fitted([0, 1, 2, 3] * 200, order=3)
    assert model.sample(6, [1, 2], generator=torch.Generator().manual_seed(0)) == [3, 0, 1, 2, 3, 0]


def test_tensors_arrays_and_lists_are_the_same_text():
    text = [0, 1, 3, 2, 0, 1, 1]
    wanted = fitted(text).log_probs(text)
    for convert in (torch.tensor, np.array, tuple):
        assert (fitted(convert(text)).log_probs(convert(text)) == wanted).all()


def test_fitting_again_forgets_the_first_text():
    model = fitted([0, 1, 2, 3] * 3).fit([3, 3, 3, 2])
    assert (model.next_probs([3]) == fitted([3, 3, 3, 2]).next_probs([3])).all()
    assert len(model.discounts) == 3


def test_five_grams_of_many_tokens_do_not_overflow():
    text = [int(i) for i in np.random.default_rng(1).integers(0, 200_000, size=300)]
    model = fitted(text, order=5, vocab_size=200_000)
    assert math.exp(model.log_probs(text)[-1]) > 0.3
    assert model.next_probs(text[:4])[text[4]] > 0.3
