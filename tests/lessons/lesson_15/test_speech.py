from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from course_lib.data.checkpoints import load_trained
from course_lib.data.tones import NAMES
from course_lib.functional.ctc import prefix_beam_search
from course_lib.lessons.lesson_15.recipes import speech
from course_lib.training.vision import seed_of_step

VARIANTS = speech.RECIPE.variants
TINY = replace(speech.SETTINGS, dim=8, depth=1, num_heads=2, mlp_dim=8)


@pytest.fixture(scope="module")
def model():
    return speech.build(TINY).eval()


@pytest.fixture(scope="module")
def melodies():
    return speech.TONES.batch(5, 3)


def test_variants_have_the_same_size_within_a_hundredth_and_the_same_budget():
    first, second = (sum(p.numel() for p in speech.build(each).parameters()) for each in VARIANTS.values())
    assert first == pytest.approx(second, rel=0.01)
    budgets = {(each.steps, each.batch_size, each.weight_decay, each.dropout) for each in VARIANTS.values()}
    assert len(budgets) == 1


def test_no_melody_of_a_training_is_held_out():
    last = seed_of_step(2, max(each.steps for each in VARIANTS.values()))
    assert last < min(speech.HELD_OUT.values()) and len(set(speech.HELD_OUT.values())) == 2


def test_long_melodies_have_more_tones_than_any_in_training(monkeypatch):
    monkeypatch.setattr(speech, "SPLIT_MELODIES", {"test": 30})
    speech.held_out.cache_clear()
    try:
        usual, long = (speech.held_out("test", long=each).num_labels for each in (False, True))
    finally:
        speech.held_out.cache_clear()
    assert usual.max() <= 8 < 12 <= long.min() and long.max() <= 16


def test_the_loss_is_pytorchs_per_tone(model, melodies):
    log_probs, lengths = speech.log_probs_of(model, melodies)
    theirs = F.ctc_loss(log_probs.transpose(0, 1), melodies.labels, lengths, melodies.num_labels, reduction="sum")
    torch.testing.assert_close(speech.speech_loss(model, melodies), theirs / melodies.num_labels.sum())


def test_a_batch_is_read_row_by_row_up_to_its_end(model, melodies):
    log_probs, lengths = speech.log_probs_of(model, melodies)
    expected = [list(prefix_beam_search(log_probs[i, :n], width=4)[0][0]) for i, n in enumerate(lengths.tolist())]
    assert speech.labels_of(model, melodies, width=4) == expected


def test_labels_are_written_as_names(monkeypatch, model, melodies):
    monkeypatch.setattr(speech, "labels_of", lambda model, batch, width: [[1, 3, 8, 8], []])
    assert speech.written(model, melodies) == ["C E c c", ""]


def test_scores_of_melodies_that_are_read_without_an_error_and_with_some(monkeypatch, model, melodies):
    said = melodies.spoken()
    wrong = [[*said[0], 1], *said[1:]]
    monkeypatch.setattr(speech, "labels_of", lambda model, batch, width: wrong if width == 1 else said)
    one = 1 / int(melodies.num_labels.sum())
    found = speech.error_rates(model, melodies)
    assert found == pytest.approx(
        {"token error, greedy": one, "token error, beam": 0.0, "melodies without an error": 0.8}
    )


@pytest.mark.parametrize("width", [1, speech.WIDTH])
def test_the_shipped_conformer_writes_down_a_melody_that_nobody_drew(width):
    model = load_trained("tones").model
    tune = ["C", "E", "G", "c", "c", "G", "E", "C"]
    assert set(tune) <= set(NAMES)
    clear = replace(speech.TONES, noise=0.3).melody(tune)
    assert speech.written(model, clear, width=width) == [" ".join(tune)]
