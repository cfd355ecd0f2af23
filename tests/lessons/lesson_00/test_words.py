"""Word for word: what either architecture sees, and what is measured of it."""

import torch
from torch import nn

from course_lib.data.translation import translate
from course_lib.lessons.lesson_00 import words
from course_lib.training.translation import TranslationSplits, splits, vocabularies

ENGLISH, FRENCH = vocabularies()


class Echo(nn.Module):
    """Names a French word for each English one in the middle, by a table."""

    def __init__(self, table):
        super().__init__()
        self.table = table

    def forward(self, seen):
        middle = seen[:, seen.shape[1] // 2]
        return nn.functional.one_hot(torch.tensor([self.table[int(i)] for i in middle]), len(FRENCH)).float()


def build(reach, width):
    seen = (2 * reach + 1) * width
    return nn.Sequential(nn.Embedding(len(ENGLISH), width), nn.Flatten(), nn.Linear(seen, len(FRENCH)))


def test_each_word_stands_in_the_middle_of_its_neighbours_and_before_its_first_french_word():
    pair = translate("the ministers do not sign the new agreement .")
    rows = words.word_table([pair], 1)
    first = next(row for row in rows.tolist() if row[1] == ENGLISH.token_to_id("agreement"))
    assert first == [
        ENGLISH.token_to_id("new"), ENGLISH.token_to_id("agreement"), ENGLISH.token_to_id("."),
        FRENCH.token_to_id("accord"),
    ]  # fmt: skip
    answers = {row[1]: row[3] for row in rows.tolist()}
    assert answers[ENGLISH.token_to_id("not")] == FRENCH.token_to_id("ne")  # not the second of its two, "pas"
    assert ENGLISH.pad_id in rows[:, 0]  # nothing stands before the first word


def test_only_adjectives_of_new_pairs_are_kept_and_no_pair_of_the_test_was_trained():
    data = splits(4_000)
    met = set().union(*(pair.combinations for pair in data.train))
    assert all(pair.combinations and not pair.combinations & met for pair in data.test)
    adjectives = {ENGLISH.token_to_id(adjective) for pair in data.test[:20] for _, adjective in pair.combinations}
    assert set(words.new_pairs(data.test[:20], 0)[:, 0].tolist()) <= adjectives


def test_what_it_costs_and_how_often_it_is_right_is_measured():
    data = splits(4_000)
    few = TranslationSplits(train=data.train[:20], validation=(), test=data.test[:5])
    curves = words.compare(build, few, steps=2)
    assert list(curves) == list(words.REACHES)
    for reach, models in zip(words.REACHES.values(), curves.values(), strict=True):
        for width, model in zip(words.WIDTHS, models, strict=True):
            assert model.reach == reach and model.operations == (2 * reach + 1) * width * len(FRENCH)
            assert model.parameters == model.operations + len(FRENCH) + len(ENGLISH) * width
            assert 0 <= model.accuracy <= 1 and 0 <= model.new_pairs <= 1


def test_a_sentence_gets_one_french_word_for_each_of_its_own_in_its_order():
    pairs = {"the": "la", "european": "européenne", "area": "zone", ".": "."}
    echo = Echo({ENGLISH.token_to_id(english): FRENCH.token_to_id(french) for english, french in pairs.items()})
    for reach in (0, 3):
        model = words.Measured(model=echo, reach=reach, parameters=0, operations=0, accuracy=0, new_pairs=0)
        assert words.translate(model, "the european area .") == ["la", "européenne", "zone", "."]
