"""What lesson 15 measures, on the shipped models and on stand-ins; its diagrams beside the models that they draw."""

import re
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from course_lib.classroom.texts import read_results
from course_lib.data.checkpoints import by_seed, load_trained
from course_lib.functional.ctc import collapse, ctc_loss, forward_variables, greedy_decode, with_blanks
from course_lib.functional.positions import relative_buckets
from course_lib.lessons.lesson_15 import results
from course_lib.lessons.lesson_15.diagrams import DIAGRAMS
from course_lib.lessons.lesson_15.recipes import speech
from course_lib.models.conformer import Conformer, ConformerConfig
from course_lib.models.t5 import T5, T5Config

TEXTS = read_results(Path(results.__file__).parent / "results.md")
SIZES = {"B": 2, "S": 5, "T": 7, "D": 12, "V": 23, "H": 3}


@pytest.fixture(scope="module")
def t5():
    return load_trained("text_to_text")


@pytest.fixture(scope="module")
def tones():
    return load_trained("tones")


def told(name, *arguments, **options):
    """A result in its words; no slot is left."""
    result = results.RESULTS[name](*arguments, **options).told(name, TEXTS)
    assert not re.search(r"\{\w+(:[^}]*)?\}", re.sub(r"\$[^$]*\$", "", result.alt + result.outcome))
    return result


def holds(result):
    return all(all(conditions) for _, conditions in result.conditions())


def one_row_loss(log_probs, labels):
    return ctc_loss(log_probs[None], labels[None], torch.tensor([len(log_probs)]), torch.tensor([len(labels)]))[0]


def test_every_result_has_its_words_and_there_are_ten_claims_at_most():
    assert TEXTS.keys() == results.RESULTS.keys()
    assert sum(len(text.claims) for text in TEXTS.values()) <= 10


def test_the_opening_shows_five_correct_answers_and_two_wrong_ones(t5):
    result = told("opening", t5.model, t5.card, predicted=50)
    shown = [text.get_text() for text in result.figure.axes[0].texts if text.get_text().startswith("→")]
    assert ["correct" in text for text in shown] == 5 * [False] + 2 * [True]
    assert result.came == pytest.approx(100 * sum(by_seed(t5.card, "exact, pre-trained, 1000 examples")) / 3)


def test_the_cards_of_the_shipped_models_hold_what_the_lesson_says(t5):
    assert holds(told("gaps", t5.card, predicted=60))
    assert holds(told("stacks", load_trained("t5_layouts").card, predicted=60))


def test_one_head_has_learned_the_previous_token_and_wrong_buckets_do_not_show_it(t5):
    assert holds(told("buckets", relative_buckets, t5.model))

    def mirrored(distance, **sizes):
        return relative_buckets(-distance, **sizes)

    assert not holds(told("buckets", mirrored, t5.model))


def test_a_melody_has_its_peaks(tones):
    assert holds(told("spikes", tones.model, speech.TONES.melody("CEGcc")))


def test_the_lattice_knows_right_losses_and_wrong_ones():
    result = told("lattice", one_row_loss)
    assert holds(result)

    def without_repeats(log_probs, labels):  # as if the blank between equal labels could be skipped
        return one_row_loss(log_probs, labels.unique_consecutive())

    assert not holds(told("lattice", without_repeats))
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
    assert holds(told("heard", tones.model, tones.card, collapse, predicted=1.0))

    def blanks_first(path, blank=0):
        return collapse([symbol for symbol in path if symbol != blank], blank=-1)

    assert not holds(told("heard", tones.model, tones.card, blanks_first))


def test_a_beam_finds_the_text_and_greedy_decoding_does_not(tones, monkeypatch):
    monkeypatch.setattr(results, "MELODIES", 20)
    assert holds(told("beam", tones.model, predicted=5))

    def greedy(log_probs, width):
        return [(greedy_decode(log_probs[None], torch.tensor([len(log_probs)]))[0], 0.0)]

    assert not holds(told("beam", tones.model, greedy))


def shapes_of(model, *inputs, **named):
    """The shapes of everything that goes into or comes out of a part of a model."""
    made = {tuple(x.shape) for x in inputs}

    def note(_, given, output):
        made.update(tuple(x.shape) for x in (*given, output) if isinstance(x, torch.Tensor))

    for module in model.modules():
        module.register_forward_hook(note)
    with torch.no_grad():
        model.eval()(*inputs, **named)
    return made


def drawn_shapes(fig, sizes):
    """The shapes on a diagram as numbers."""
    texts = {shape for text in fig.axes[0].texts for shape in re.findall(r"\(\w+(?:, [\w/]+)+\)", text.get_text())}

    def number(factor):
        whole, _, divisor = factor.partition("/")
        times, letter = re.fullmatch(r"(\d*)(\w)", whole).groups()
        return int(times or 1) * (sizes[letter] if letter.isalpha() else int(letter)) // int(divisor or 1)

    return {tuple(number(factor) for factor in text[1:-1].split(", ")) for text in texts}


def test_t5_is_drawn_with_the_shapes_that_it_makes():
    model = T5(T5Config(vocab_size=23, dim=12, depth=1, num_heads=3, head_dim=4, mlp_dim=8))
    made = shapes_of(model, torch.randint(23, (2, 5)), torch.randint(23, (2, 7)))
    shown = drawn_shapes(DIAGRAMS["t5"]()[0], SIZES)
    assert shown <= made | {(1, 3, 5, 5), (1, 3, 7, 7)} and {(2, 5, 12), (2, 7, 23)} <= shown
    assert model.encoder_bias(5).shape == (1, 3, 5, 5) and model.decoder_bias(7).shape == (1, 3, 7, 7)


def test_the_conformer_is_drawn_with_the_shapes_that_it_makes():
    sizes = {"B": 2, "T": 16, "F": 8, "D": 12, "V": 9}
    config = ConformerConfig(frame_dim=8, num_classes=9, dim=12, depth=1, num_heads=3, mlp_dim=48, kernel_size=5)
    made = shapes_of(Conformer(config), torch.randn(2, 16, 8))
    shown = drawn_shapes(DIAGRAMS["conformer"]()[0], sizes)
    assert shown <= made and {(2, 12, 8, 4), (2, 12, 4, 2), (2, 4, 24), (2, 4, 9)} <= shown


@pytest.mark.parametrize("name", DIAGRAMS)
def test_a_diagram_lies_inside_its_sheet_and_its_words_are_short_sentences(name):
    fig, alt = DIAGRAMS[name]()
    assert max(len(sentence.split()) for sentence in re.split(r"(?<=[.:;])\s", alt)) <= 32
    width, height = fig.get_size_inches()
    assert width <= 12 and height <= 5.5
    fig.draw_without_rendering()
    texts = [text for axes in fig.axes for text in axes.texts if text.get_text()]
    assert min(text.get_fontsize() for text in texts) >= 12
    for inner in (part.get_window_extent() for part in texts):
        assert fig.bbox.x0 <= inner.x0 and inner.x1 <= fig.bbox.x1
        assert fig.bbox.y0 <= inner.y0 and inner.y1 <= fig.bbox.y1


def test_pytorchs_loss_is_the_measure():
    log_probs, labels = torch.randn(9, 4).log_softmax(dim=1), torch.tensor([1, 1, 3])
    theirs = F.ctc_loss(log_probs[:, None], labels[None], torch.tensor([9]), torch.tensor([3]), reduction="sum")
    torch.testing.assert_close(one_row_loss(log_probs, labels), theirs)
