import pytest
import torch

from course_lib.data.checkpoints import load_trained
from course_lib.data.labelled import MinimalPair, minimal_pair_splits
from course_lib.lessons.lesson_07 import learner, results, small
from course_lib.lessons.lesson_07.recipes.pretraining import PretrainingSettings, build, vocabulary


@pytest.fixture(autouse=True)
def few_sentences(monkeypatch):
    monkeypatch.setattr(small, "TRAIN", 200)


@pytest.fixture(scope="module")
def bert():
    return load_trained("bert")


def test_short_sentences_are_short_and_of_both_languages():
    sentences = [
        vocabulary().decode(one.ids, strip_specials=True).split() for one in small.short_sentences("validation")
    ]
    assert max(map(len, sentences)) == small.LONGEST
    assert {"the", "les"} <= {word for words in sentences for word in words}


def test_half_of_the_pairs_are_translations():
    pairs = small.sentence_pairs("validation")
    assert 0.4 < pairs.answers.float().mean() < 0.6
    assert len(pairs.first) == len(pairs.second) == len(pairs.answers)


def test_the_right_word_is_preferred_where_it_is_the_likelier_one():
    model = build(PretrainingSettings(dim=16, depth=1, num_heads=2)).eval()
    with torch.no_grad():
        model.head.bias[vocabulary().token_to_id("law")] = 10.0
    pair = MinimalPair(good=("the", "law"), bad=("the", "laws"), kind="verb", features=(False, False))
    turned = MinimalPair(good=pair.bad, bad=pair.good, kind="verb", features=(False, False))
    assert small.prefers_good(model, [pair, turned]).tolist() == [True, False]


def test_what_the_card_says_holds_with_a_bet_and_without(bert):
    for predicted in (None, 40.0):
        for result in (results.few_labels, results.zero_shot):
            assert not result(bert.card, predicted=predicted).failed()


def test_an_attractor_stands_between_subject_and_verb():
    pairs = minimal_pair_splits(kinds=("verb",), train=0, validation=0, test=8).test
    assert {pair.features for pair in pairs} == {(a, b) for a in (False, True) for b in (False, True)}


def test_the_loss_curve_ends_between_its_two_lines(bert):
    assert not results.training({0: 5.0, 750: 3.0, 1499: 2.5}, bert.model).failed()


def test_fine_tuning_is_better_than_training_from_scratch_in_all_draws():
    assert not results.fine_tuning(learner.measured()).failed()
