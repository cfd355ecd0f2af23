"""The first network, trained on letters of the learner's choice, and what one plays with."""

import pytest
import torch
from torch import nn

from course_lib.lessons.lesson_00 import letters, playground
from course_lib.training.translation import splits


def shares(words, chosen):
    text = "".join(words)
    return [10 * text.count(letter) / len(text) for letter in chosen]


@pytest.fixture(scope="module")
def explorer():
    return playground.choose(shares, "ehiostuw")


def reached(explorer, text):
    return [goal({"letters": text}) for goal in explorer.goals]


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


def test_each_goal_can_be_reached_and_none_is_at_the_start(explorer):
    assert reached(explorer, "ehiostuw") == [False, False, False]
    assert reached(explorer, "htwy") == [True, False, False]
    assert reached(explorer, "fghotwy") == [False, True, False]
    assert reached(explorer, "cer") == [False, False, True]


@pytest.mark.parametrize("text", ["", "12 .", "abcdefghi"])
def test_no_letter_or_too_many_are_refused_with_a_sentence(explorer, text):
    assert "Choose 1 to 8 letters" in explorer.frame({"letters": text}).alt
    assert reached(explorer, text) == [False, False, False]


def test_what_is_no_letter_or_comes_twice_is_left_out():
    assert playground.tidy("Hé, Hw!") == "héw"


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
