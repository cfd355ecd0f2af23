import math
import random
import warnings

import numpy as np
import pytest
import sacrebleu
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats
from sklearn import metrics

from course_lib.functional.metrics import (
    accuracy,
    alignment_error_rate,
    argmax_alignment,
    bits_per_byte,
    bleu_by_length,
    corpus_bleu,
    f1_per_class,
    f1_score,
    matthews_correlation,
    pearson_correlation,
    perplexity,
    spearman_correlation,
)


def random_corpus(seed, *, sentences=20, shortest=1, longest=15):
    """Hypotheses that share part of their words with their references, over a small vocabulary."""
    rng = random.Random(seed)
    hypotheses, references = [], []
    for _ in range(sentences):
        reference = [rng.choice("a b c d e f".split()) for _ in range(rng.randint(shortest, longest))]
        hypothesis = [word if rng.random() < 0.8 else "z" for word in reference]
        hypothesis = hypothesis[: max(1, len(hypothesis) - rng.randint(0, 2))] + ["q"] * rng.randint(0, 1)
        hypotheses.append(hypothesis)
        references.append(reference)
    return hypotheses, references


def official(hypotheses, references, smoothing):
    """sacrebleu wants one stream per reference."""
    streams = [[" ".join(r) for r in stream] for stream in zip(*references, strict=True)]
    return sacrebleu.corpus_bleu(
        [" ".join(h) for h in hypotheses], streams, smooth_method=smoothing, tokenize="none", force=True
    )


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("smoothing", ["none", "exp"])
def test_bleu_equals_sacrebleu(seed, smoothing):
    hypotheses, references = random_corpus(seed)
    wanted = official(hypotheses, [[r] for r in references], smoothing)
    actual = corpus_bleu(hypotheses, references, smoothing=smoothing)
    assert wanted.score > 10
    assert actual.score == pytest.approx(wanted.score, abs=1e-9)
    assert actual.brevity_penalty == pytest.approx(wanted.bp, abs=1e-9)
    assert list(actual.precisions) == pytest.approx(wanted.precisions, abs=1e-9)
    assert (actual.hypothesis_length, actual.reference_length) == (wanted.sys_len, wanted.ref_len)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("smoothing", ["none", "exp"])
def test_bleu_of_one_short_sentence_equals_sacrebleu(seed, smoothing):
    hypotheses, references = random_corpus(seed, sentences=1, longest=6)
    wanted = official(hypotheses, [[r] for r in references], smoothing).score
    assert corpus_bleu(hypotheses, references, smoothing=smoothing).score == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize("seed", range(5, 10))
@pytest.mark.parametrize("smoothing", ["none", "exp"])
def test_bleu_of_a_corpus_with_empty_lines_and_several_references_equals_sacrebleu(seed, smoothing):
    hypotheses, first = random_corpus(seed)
    hypotheses[3], hypotheses[8], first[12] = [], [], []
    references = [[r, ["b", *r, "b"], [*reversed(r), "a"]] for r in first]
    wanted = official(hypotheses, references, smoothing)
    actual = corpus_bleu(hypotheses, references, smoothing=smoothing)
    assert wanted.score > 10 and wanted.bp < 1
    assert actual.score == pytest.approx(wanted.score, abs=1e-9)
    assert (actual.hypothesis_length, actual.reference_length) == (wanted.sys_len, wanted.ref_len)


def test_bleu_of_the_paper_s_example_is_clipped():
    hypothesis = "the the the the the the the".split()
    references = ["the cat is on the mat".split(), "there is a cat on the mat".split()]
    assert corpus_bleu([hypothesis], [references]).precisions[0] == pytest.approx(100 * 2 / 7)


def test_bleu_knows_perfect_and_empty_translations():
    reference = "a b c d e".split()
    assert corpus_bleu([reference], [reference]).score == pytest.approx(100)
    assert corpus_bleu([[]], [reference]).score == 0
    assert corpus_bleu([["z"] * 5], [reference], smoothing="exp").score == 0
    assert corpus_bleu([["a"]], [[]]).score == 0


def test_bleu_by_length_is_the_bleu_of_each_bucket():
    hypotheses, references = random_corpus(0, sentences=40)
    lengths = [len(r) for r in references]
    buckets = bleu_by_length(hypotheses, references, lengths, [1, 8, 16, 30])
    assert [(b.low, b.high) for b in buckets] == [(1, 8), (8, 16)]
    assert sum(b.count for b in buckets) == 40
    long = [i for i, length in enumerate(lengths) if 8 <= length < 16]
    assert buckets[1].bleu == corpus_bleu([hypotheses[i] for i in long], [references[i] for i in long])


def test_alignment_error_rate_follows_och_and_ney():
    predicted = [{(0, 0), (1, 1), (2, 2)}]
    sure, possible = [{(0, 0), (3, 3)}], [{(1, 1)}]
    # |A & S| = 1, |A & P| = 2, |A| = 3, |S| = 2
    assert alignment_error_rate(predicted, sure, possible) == pytest.approx(1 - 3 / 5)
    assert alignment_error_rate(predicted, sure) == pytest.approx(1 - 2 / 5)


def test_alignment_error_rate_adds_up_links_before_it_divides():
    predicted, sure = [{(0, 0)}, {(0, 1), (1, 1), (2, 2)}], [{(0, 0)}, {(0, 0)}]
    assert alignment_error_rate(predicted, sure) == pytest.approx(1 - 2 / 6)


def test_argmax_alignment_links_each_target_word_to_its_best_source_word():
    weights = torch.tensor([[0.1, 0.2, 0.7], [0.5, 0.4, 0.1]])  # rows: target words
    assert argmax_alignment(weights) == {(2, 0), (0, 1)}


def pairs(values, *, least=1):
    return st.lists(st.tuples(values, values), min_size=least, max_size=30).map(
        lambda rows: list(zip(*rows, strict=True))
    )


LABELS = pairs(st.integers(0, 4))
BINARY = pairs(st.integers(0, 1))
WORDS = pairs(st.sampled_from(["noun", "verb", "adjective"]))
FEW = pairs(st.integers(-3, 3), least=2)
NUMBERS = pairs(st.floats(-100, 100).map(lambda x: round(x, 3)), least=2)


def quietly(function, *args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*args, **kwargs)


@given(LABELS | WORDS | BINARY)
def test_class_scores_equal_scikit_learn(rows):
    predicted, true = rows
    assert accuracy(predicted, true) == pytest.approx(metrics.accuracy_score(true, predicted), abs=1e-12)
    wanted = quietly(metrics.matthews_corrcoef, true, predicted)
    assert matthews_correlation(predicted, true) == pytest.approx(wanted, abs=1e-12)
    for average in ("macro", "micro"):
        wanted = quietly(metrics.f1_score, true, predicted, average=average)
        assert f1_score(predicted, true, average=average) == pytest.approx(wanted, abs=1e-12)
    per_class = f1_per_class(predicted, true)
    assert list(per_class) == sorted(set(predicted) | set(true))
    wanted = quietly(metrics.f1_score, true, predicted, average=None)
    assert list(per_class.values()) == pytest.approx(list(wanted), abs=1e-12)


@given(BINARY)
def test_binary_f1_equals_scikit_learn_even_without_a_positive(rows):
    predicted, true = rows
    wanted = quietly(metrics.f1_score, true, predicted)
    assert f1_score(predicted, true) == pytest.approx(wanted, abs=1e-12)
    wanted = quietly(metrics.f1_score, true, predicted, pos_label=0)
    assert f1_score(predicted, true, positive=0) == pytest.approx(wanted, abs=1e-12)


@given(FEW | NUMBERS)
def test_correlations_equal_scipy_ties_included(rows):
    x, y = rows
    assume(len(set(x)) > 1 and len(set(y)) > 1)
    assert pearson_correlation(x, y) == pytest.approx(quietly(stats.pearsonr, x, y).statistic, abs=1e-9)
    assert spearman_correlation(x, y) == pytest.approx(quietly(stats.spearmanr, x, y).statistic, abs=1e-9)


def test_tensors_and_arrays_are_welcome():
    predicted, true = torch.tensor([0, 1, 1]), np.array([0, 1, 0])
    assert accuracy(predicted, true) == pytest.approx(2 / 3)
    assert f1_score(predicted, true) == pytest.approx(2 / 3)
    assert pearson_correlation(torch.tensor([1.0, 2.0, 3.0]), [2, 4, 6]) == pytest.approx(1)


def test_a_model_that_knows_nothing_has_the_vocabulary_s_perplexity():
    nats = 50 * math.log(1000)
    assert perplexity(nats, 50) == pytest.approx(1000)
    assert bits_per_byte(nats, 200) == pytest.approx(50 * math.log2(1000) / 200)
    assert bits_per_byte(100 * math.log(256), 100) == pytest.approx(8)
