import pytest
import torch

from course_lib.lessons.lesson_08 import induction
from course_lib.lessons.lesson_08.induction import Repeats


def test_rows_hold_different_symbols_that_begin_again_after_a_period_of_their_own():
    rows = induction.repeats(200, 5)
    for tokens, period in zip(rows.tokens.tolist(), rows.period.tolist(), strict=True):
        assert len(set(tokens[:period])) == period
        assert all(tokens[i] == tokens[i - period] for i in range(period, induction.LENGTH))
    assert set(rows.period.tolist()) == set(range(induction.SHORTEST, induction.LONGEST + 1))


def test_what_can_be_looked_up_begins_with_the_second_time():
    rows = Repeats(torch.tensor([[3, 1, 2, 3, 1, 2]]), torch.tensor([3]))
    assert rows.known().tolist() == [[False, False, False, True, True]]


class Copies(torch.nn.Module):
    """Names the symbol that stood one period before the next."""

    def __init__(self, period):
        super().__init__()
        self.period = period

    def forward(self, tokens):
        return torch.nn.functional.one_hot(tokens.roll(self.period - 1, dims=1), 64).float()


def test_one_who_copies_is_right_the_second_time_alone():
    rows = induction.repeats(50, 1)
    rows = Repeats(rows.tokens[rows.period == 15], rows.period[rows.period == 15])
    assert induction.accuracy(Copies(15), rows) == 1
    assert induction.accuracy(Copies(15), rows, second=False) < 0.2


def test_weights_on_previous_and_on_following_symbols_are_measured():
    rows = Repeats(torch.tensor([[3, 1, 2, 3, 1, 2]]), torch.tensor([3]))
    back, copy = torch.zeros(5, 5), torch.zeros(5, 5)
    for t in range(1, 5):
        back[t, t - 1] = 1
    copy[3, 1], copy[4, 2] = 1, 0.5
    weights = torch.stack([back, copy])[None, :, None]  # (B, L, H, T, T)
    assert induction.at_previous(weights, rows)[:, 0].tolist() == [1, 0]
    assert induction.at_followers(weights, rows)[:, 0].tolist() == [0, 0.75]


def test_a_head_that_is_switched_off_hands_on_nothing_and_comes_back():
    model, rows = induction.build(induction.VARIANTS["two layers"]), induction.repeats(3, 0)
    before = model(rows.tokens)
    with induction.switched_off(model, 0), induction.switched_off(model, 1):
        alone = model(rows.tokens)
    torch.testing.assert_close(alone, model.head(model.norm(model.embed(rows.tokens))))
    assert torch.equal(model(rows.tokens), before)


@pytest.mark.parametrize("head", [0, 1])
def test_only_the_head_that_is_named_is_switched_off(head):
    model = induction.build(induction.InductionSettings(depth=1, num_heads=2, head_dim=4))
    rows, seen = induction.repeats(2, 0), []
    model.layers[0].o_proj.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    with induction.switched_off(model, 0, head):
        model(rows.tokens)
    halves = seen[0].unflatten(-1, (2, 4)).abs().amax(dim=(0, 1, 3))
    assert halves[head] == 0 and halves[1 - head] > 0


def test_the_figure_of_the_training_does_not_tell_the_result_that_is_bet_on():
    model = induction.build(induction.InductionSettings(head_dim=4))
    texts = [panel.get_title("left") for panel in induction.example(model).axes]
    assert texts == ["attention of layer 1", "attention of layer 2"]
