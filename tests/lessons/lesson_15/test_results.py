"""What lesson 15 measures, on the shipped models and on stand-ins."""

import pytest
import torch

from course_lib.data.checkpoints import by_seed, load_trained
from course_lib.functional.ctc import collapse, ctc_loss, forward_variables, greedy_decode, with_blanks
from course_lib.functional.positions import relative_buckets
from course_lib.lessons.lesson_15 import results
from course_lib.lessons.lesson_15.recipes import speech
from tests.lessons.modern import holds, in_words


@pytest.fixture(scope="module")
def t5():
    return load_trained("text_to_text")


@pytest.fixture(scope="module")
def tones():
    return load_trained("tones")


def one_row_loss(log_probs, labels):
    return ctc_loss(log_probs[None], labels[None], torch.tensor([len(log_probs)]), torch.tensor([len(labels)]))[0]


def test_the_opening_shows_five_correct_answers_and_two_wrong_ones(t5):
    result = in_words("15", "opening", t5.model, t5.card, predicted=50)
    shown = [text.get_text() for text in result.figure.axes[0].texts if text.get_text().startswith("→")]
    assert ["correct" in text for text in shown] == 5 * [False] + 2 * [True]
    assert result.came == pytest.approx(100 * sum(by_seed(t5.card, "exact, pre-trained, 1000 examples")) / 3)


def test_the_cards_of_the_shipped_models_hold_what_the_lesson_says(t5):
    assert holds(in_words("15", "gaps", t5.card, predicted=60))
    assert holds(in_words("15", "stacks", load_trained("t5_layouts").card, predicted=60))


def test_one_head_has_learned_the_previous_token_and_wrong_buckets_do_not_show_it(t5):
    assert holds(in_words("15", "buckets", relative_buckets, t5.model))

    def mirrored(distance, **sizes):
        return relative_buckets(-distance, **sizes)

    assert not holds(in_words("15", "buckets", mirrored, t5.model))


def test_a_melody_has_its_peaks(tones):
    assert holds(in_words("15", "spikes", tones.model, speech.TONES.melody("CEGcc")))


def test_the_lattice_knows_right_losses_and_wrong_ones():
    result = in_words("15", "lattice", one_row_loss)
    assert holds(result)

    def without_repeats(log_probs, labels):  # as if the blank between equal labels could be skipped
        return one_row_loss(log_probs, labels.unique_consecutive())

    assert not holds(in_words("15", "lattice", without_repeats))
    brute = sum(
        collapse(path) == list(results.TARGET)
        for path in torch.cartesian_prod(*[torch.arange(3)] * results.FRAMES).tolist()
    )
    assert result.came == brute


def test_forward_variables_and_the_best_path_are_those_of_the_library():
    probs = torch.randn(6, 3, dtype=torch.float64).softmax(dim=1)
    states = with_blanks(torch.tensor([[1, 1, 2]]))
    alpha, best, _ = results.forward(probs, states[0], results.steps(states[0]))
    torch.testing.assert_close(alpha, forward_variables(probs[None].log(), states)[0].exp())
    sharp = torch.full((6, 3), 0.01).scatter(1, torch.tensor([0, 1, 0, 1, 1, 2])[:, None], 0.98)
    path = results.forward(sharp, states[0], results.steps(states[0]))[1]
    assert states[0][path].tolist() == [0, 1, 0, 1, 1, 2]
    assert greedy_decode(sharp[None], torch.tensor([6])) == [[1, 1, 2]]


def test_heard_holds_with_the_right_collapse_only(tones, monkeypatch):
    monkeypatch.setattr(speech, "held_out", lambda split: speech.TONES.batch(60, 7))
    assert holds(in_words("15", "heard", tones.model, tones.card, collapse, predicted=1.0))

    def blanks_first(path, blank=0):
        return collapse([symbol for symbol in path if symbol != blank], blank=-1)

    assert not holds(in_words("15", "heard", tones.model, tones.card, blanks_first))


def test_a_beam_finds_the_text_and_greedy_decoding_does_not(tones, monkeypatch):
    monkeypatch.setattr(results, "MELODIES", 20)
    assert holds(in_words("15", "beam", tones.model, predicted=5))

    def greedy(log_probs, width):
        return [(greedy_decode(log_probs[None], torch.tensor([len(log_probs)]))[0], 0.0)]

    assert not holds(in_words("15", "beam", tones.model, greedy))
