import random

import pytest
import sacrebleu
import torch

from course_lib.functional.metrics import alignment_error_rate, argmax_alignment, bleu_by_length, corpus_bleu


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


@pytest.mark.parametrize("seed", range(5))
def test_bleu_with_several_references_equals_sacrebleu(seed):
    hypotheses, first = random_corpus(seed)
    second = [list(reversed(r)) + ["a"] for r in first]
    references = [list(pair) for pair in zip(first, second, strict=True)]
    actual = corpus_bleu(hypotheses, references)
    assert actual.score == pytest.approx(official(hypotheses, references, "none").score, abs=1e-9)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("smoothing", ["none", "exp"])
def test_bleu_of_one_short_sentence_equals_sacrebleu(seed, smoothing):
    hypotheses, references = random_corpus(seed, sentences=1, longest=6)
    wanted = official(hypotheses, [[r] for r in references], smoothing).score
    assert corpus_bleu(hypotheses, references, smoothing=smoothing).score == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize("smoothing", ["none", "exp"])
def test_bleu_of_a_corpus_with_empty_lines_and_several_references_equals_sacrebleu(smoothing):
    hypotheses, first = random_corpus(7)
    hypotheses[3], hypotheses[8], first[12] = [], [], []
    references = [[r, ["b", *r, "b"]] for r in first]
    wanted = official(hypotheses, references, smoothing)
    actual = corpus_bleu(hypotheses, references, smoothing=smoothing)
    assert wanted.score > 10 and wanted.bp < 1
    assert actual.score == pytest.approx(wanted.score, abs=1e-9)
    assert (actual.hypothesis_length, actual.reference_length) == (wanted.sys_len, wanted.ref_len)


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


def test_a_perfect_alignment_has_no_error_and_a_disjoint_one_nothing_else():
    links = [[(0, 1), (1, 0)]]
    assert alignment_error_rate(links, links) == 0
    assert alignment_error_rate(links, [{(5, 5)}]) == 1


def test_argmax_alignment_links_each_target_word_to_its_best_source_word():
    weights = torch.tensor([[0.1, 0.2, 0.7], [0.5, 0.4, 0.1]])  # rows: target words
    assert argmax_alignment(weights) == {(2, 0), (0, 1)}
