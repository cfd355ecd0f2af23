import pytest

from course_lib.bench import tokenizers as bench_tokenizers
from course_lib.bench.tokenizers import docstrings, measure, measure_naive


def test_the_text_is_as_long_as_it_is_said_to_be_and_the_same_each_time():
    texts = docstrings()
    assert 1_000_000 <= sum(len(text.encode()) for text in texts) < 1_500_000
    assert texts == docstrings() and len(set(texts)) == len(texts)
    with pytest.raises(ValueError, match="bytes of docstrings, 1000000000 were wanted"):
        docstrings(10**9)


def test_the_races_are_run_and_reported(monkeypatch):
    monkeypatch.setattr(bench_tokenizers, "VOCAB_SIZE", 500)
    rows = [*measure(size=50_000, seconds=0), measure_naive(size=50_000, merges=3, rounds=1)]
    assert ["training" in rows[0].what, *("coding" in row.what for row in rows[1:4])] == [True] * 4
    assert all(row.ours > 0 and row.theirs > 0 and row.ratio > 0 for row in rows)
    assert rows[-1].target == 0.05 and rows[0].target is None


def test_a_race_between_different_results_is_off(monkeypatch):
    monkeypatch.setattr(bench_tokenizers, "learn_merges_naive", lambda corpus, vocab_size: None)
    with pytest.raises(RuntimeError, match="merges of the variants are not the same"):
        measure_naive(size=50_000, merges=3, rounds=1)
