"""What the units of lesson 04's character model are searched for, and graded by."""

import pytest
import torch

from course_lib.data.checkpoints import load_trained
from course_lib.layers.recurrent import scan
from course_lib.lessons.lesson_04 import units


@pytest.fixture(scope="module")
def model():
    return load_trained("lstm_characters").model.eval()


def test_cells_and_gates_are_those_of_the_network_step_by_step(model):
    text = "It's a 'test'."
    reading = units.read_text(model, text)
    ids = torch.tensor([units.tokenized_prose().tokenizer.encode("\n" + text)])
    cell, x = model.rnn.cells[0], model.embed(ids)
    with torch.no_grad():
        _, final = scan(cell, x, cell.initial_state(1))
        gates = model.rnn.gates(x)
    torch.testing.assert_close(reading.inside[:, -1], final.c, atol=1e-4, rtol=1e-4)
    assert reading.inside.shape == (1, len(text), 344)
    for ours, theirs in zip(reading.gates, gates, strict=True):
        torch.testing.assert_close(ours, theirs[:, 1:], atol=1e-4, rtol=1e-4)


def test_a_sentence_ends_with_its_full_stop_and_a_paragraph_with_its_line():
    assert units.since_sentence("Ab. C\nd 1.5").tolist() == [0, 1, 2, 0, 1, 2, 0, 1, 2, 3, 4]


def test_an_apostrophe_is_no_quotation_mark():
    text = "it's 'one two' and 'x' isn't\nhere"
    quoted = "".join(letter for letter, inside in zip(text, units.quoted(text), strict=True) if inside)
    behind = "".join(letter for letter, after in zip(text, units.behind_quotation(text), strict=True) if after)
    assert quoted == "'one two'x" and behind == "' and ' isn"
    assert not (units.quoted(text) & units.behind_quotation(text)).any()


def test_correlation_and_auc_are_those_of_the_textbook():
    count, noise = torch.arange(100), torch.randn(100, generator=torch.Generator().manual_seed(0))
    r = units.correlation(torch.stack([2 * count + 1.0, -count + 3.0, noise], dim=1), count)
    assert r[:2].tolist() == pytest.approx([1, -1]) and r[2] == pytest.approx(
        torch.corrcoef(torch.stack([noise, count.float()]))[0, 1].item(), abs=1e-5
    )
    label = torch.tensor([False, True, False, True])
    found = units.auc(torch.tensor([[1.0, 4], [2, 3], [3, 2], [4, 1]]), label)
    assert found.tolist() == pytest.approx([0.75, 0.25])


def test_a_unit_is_chosen_on_validation_text_and_graded_on_test_text(model, monkeypatch):
    texts = ["a" * 70 + ". " + "b" * 30, "c" * 90 + ". " + "d" * 10]
    count = torch.stack([units.since_sentence(text) for text in texts]).float()
    noise = torch.randn(2, 102, generator=torch.Generator().manual_seed(0))
    inside = {"validation": [count, noise], "test": [noise, count]}

    def read_split(_, split, characters):
        return units.Reading(texts, torch.stack(inside[split], dim=-1), None)

    monkeypatch.setattr(units, "read_split", read_split)
    found = units.search(model, units.since_sentence, units.correlation)
    assert found.unit == 0 and found.validation == pytest.approx(1) and abs(found.test) < 0.5


def test_the_distance_from_a_mark_begins_anew_at_each_of_them():
    text = "say 'ab' to us"
    assert units.since_mark(text).tolist()[4:11] == [0, 1, 2, 0, 1, 2, 3]
    assert not units.since_mark(text)[:4].any()
