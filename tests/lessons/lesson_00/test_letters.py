"""The first network on letters, the networks on words, and what one plays with."""

import pytest
import torch
from torch import nn

from course_lib.data.translation import translate
from course_lib.lessons.lesson_00 import letters, playground, words
from course_lib.training.translation import TranslationSplits, splits, vocabularies


def shares(words, chosen):
    text = "".join(words)
    return [10 * text.count(letter) / len(text) for letter in chosen]


def test_a_sentence_is_told_by_the_shares_of_its_letters_english_first():
    pairs = splits(4_000).train[:3]
    seen, languages = letters.letter_table(shares, "eh", pairs)
    assert seen.shape == (6, 2) and languages.tolist() == [0, 1, 0, 1, 0, 1]
    assert seen[1].tolist() == pytest.approx(shares(pairs[0].french, "eh"))


def test_the_same_letters_give_the_same_network_and_leave_chance_alone():
    data = splits(4_000)
    torch.manual_seed(5)
    wanted = torch.rand(1)
    torch.manual_seed(5)
    one, other = (letters.train(shares, "hw", data.train[:50], data.test[:50], steps=3) for _ in range(2))
    assert torch.rand(1) == wanted
    assert all(torch.equal(a, b) for a, b in zip(one.network.parameters(), other.network.parameters(), strict=True))
    assert one.accuracy == other.accuracy and one.means.shape == (2, 2)


def test_small_networks_train_on_one_thread_and_give_the_others_back(monkeypatch):
    set_to = []
    monkeypatch.setattr(torch, "get_num_threads", lambda: 6)
    monkeypatch.setattr(torch, "set_num_threads", set_to.append)
    letters.train(shares, "h", splits(4_000).train[:5], splits(4_000).test[:5], steps=1)
    assert set_to == [1, 6]


def test_each_goal_can_be_reached_and_none_is_at_the_start_nor_with_no_letter_or_too_many():
    explorer, nothing = playground.choose(shares, "ehiostuw"), [False, False, False]
    goals = {"ehiostuw": nothing, "htwy": [True, False, False], "fghotwy": [False, True, False]}
    goals |= {"cer": [False, False, True], "": nothing, "12 .": nothing, "abcdefghi": nothing}
    assert {text: [goal({"letters": text}) for goal in explorer.goals] for text in goals} == goals
    for text in ("", "12 .", "abcdefghi"):
        assert "Choose 1 to 8 letters" in explorer.frame({"letters": text}).alt
    assert playground.tidy("Hé, Hw!") == "héw"  # what is no letter or comes twice is left out


def test_the_box_answers_by_the_softmax_that_it_is_given():
    network = nn.Linear(1, 2)
    with torch.no_grad():
        network.weight[:], network.bias[:] = torch.tensor([[0.0], [1.0]]), 0.0
    asked = []

    def softmax(x):
        asked.append(x.shape)
        return torch.tensor([[0.2, 0.8]])

    box = playground.language(network, shares, "u", softmax)
    assert box.answers["beliefs"]({"text": "Uuu"}).tolist() == pytest.approx([0.2, 0.8])
    assert box.frame({"text": "Uuu"}).alt == "“Uuu”: the network says French." and asked[0] == (1, 2)
    assert "Type at least one word." in box.frame({"text": "  "}).alt


ENGLISH, FRENCH = vocabularies()


def build(reach, width):
    seen = (2 * reach + 1) * width
    return nn.Sequential(nn.Embedding(len(ENGLISH), width), nn.Flatten(), nn.Linear(seen, len(FRENCH)))


def test_each_word_stands_in_the_middle_of_its_neighbours_and_before_its_first_french_word():
    pair = translate("the ministers do not sign the new agreement .")
    rows = words.word_table([pair], 1)
    new, agreement, stop, no = map(ENGLISH.token_to_id, ("new", "agreement", ".", "not"))
    assert [new, agreement, stop, FRENCH.token_to_id("accord")] in rows.tolist()
    answers = {row[1]: row[3] for row in rows.tolist()}
    assert answers[no] == FRENCH.token_to_id("ne")  # not the second of its two, "pas"
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


PAIRS = {"the": "la", "european": "européenne", "area": "zone", ".": "."}
TABLE = {ENGLISH.token_to_id(english): FRENCH.token_to_id(french) for english, french in PAIRS.items()}


class Echo(nn.Module):
    """Names a French word for each English one in the middle, by a table."""

    def forward(self, seen):
        middle = seen[:, seen.shape[1] // 2].tolist()
        return nn.functional.one_hot(torch.tensor([TABLE[i] for i in middle]), len(FRENCH)).float()


def test_a_sentence_gets_one_french_word_for_each_of_its_own_in_its_order():
    for reach in (0, 3):
        model = words.Measured(model=Echo(), reach=reach, parameters=0, operations=0, accuracy=0, new_pairs=0)
        assert words.translate(model, "the european area .") == ["la", "européenne", "zone", "."]
