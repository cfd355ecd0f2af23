import pytest
import torch

from course_lib.data.digits import LabelledImages
from course_lib.layers import windows
from course_lib.layers.windows import WindowAttention
from course_lib.lessons.lesson_12 import learner, looking


def layer(size, shift, bias_std=0.5):
    torch.manual_seed(0)
    attn = WindowAttention(8, 2, size, shift=shift)
    for parameter in attn.parameters():
        torch.nn.init.normal_(parameter, std=bias_std)
    return attn


@pytest.mark.parametrize(
    ("size", "shift", "height", "width", "count"), [(4, 2, 8, 8, 9), (4, 1, 8, 12, 12), (3, 1, 6, 6, 9)]
)
def test_a_roll_with_its_mask_equals_padding_every_window(size, shift, height, width, count):
    attn, x = layer(size, shift), torch.randn(2, height, width, 8)
    naive, found = looking.padded(attn, x)
    torch.testing.assert_close(naive, attn(x).detach())
    assert found == count


def test_a_roll_without_the_mask_does_not_equal_padding(monkeypatch):
    attn, x = layer(4, 2), torch.randn(1, 8, 8, 8)
    naive, _ = looking.padded(attn, x)
    monkeypatch.setattr(windows, "hidden_pairs", lambda *_: torch.zeros(4, 16, 16, dtype=torch.bool))
    assert not torch.allclose(naive, attn(x), atol=1e-3)


def test_an_offset_map_shows_where_the_key_lies_as_seen_from_the_query():
    attn = layer(2, 0)
    found, bias = looking.offset_maps(attn), attn.position_bias(2).detach()[0]
    below, above = bias[:, 0, 2], bias[:, 2, 0]  # the key's place is 2, then 0: a row below the query, a row above
    torch.testing.assert_close(found[:, 2, 1], below)
    torch.testing.assert_close(found[:, 0, 1], above)
    torch.testing.assert_close(found[:, 1, 2], bias[:, 0, 1])


def test_news_stays_in_a_window_that_never_moves_and_travels_with_one_that_does():
    for moved, expected in ((False, [4, 4, 4, 4]), (True, [4, 16, 36, 64])):
        assert [int(looking.reach(count, shifted=moved).sum()) for count in (1, 2, 3, 4)] == expected


def test_the_price_of_swin_is_linear_in_the_pixels_and_that_of_a_vit_is_not():
    operations, seconds = looking.price([32, 64])
    assert operations["Swin"][1] == pytest.approx(4 * operations["Swin"][0], rel=0.01)
    assert operations["ViT"][1] > 5 * operations["ViT"][0]
    assert len(seconds["ViT"]) == 2


def test_every_switch_changes_the_answer_and_none_touches_the_model_of_the_next():
    digits = learner.test_digits(60)
    model = looking.load_trained("swin").model
    for name, change in looking.SWITCHES.items():
        other = looking.load_trained("swin").model
        change(other)
        with torch.no_grad():
            same = torch.allclose(other(digits.pixels), model(digits.pixels), atol=1e-4)
        assert same == (name == "as trained"), name


def test_an_effective_field_sums_to_100_and_has_most_in_its_own_patch():
    field = looking.effective_field(looking.load_trained("swin").model, learner.test_digits(20).pixels, 0, (4, 4))
    assert field.shape == (8, 8) and float(field.sum()) == pytest.approx(100, abs=0.01)
    assert divmod(int(field.argmax()), 8) == (4, 4)


def test_an_empty_picture_stirs_nothing_and_a_digit_both_stages():
    model, digits = looking.load_trained("swin").model, learner.test_digits(1)
    assert [float(stage.max()) for stage in looking.stirred(model, torch.zeros(1, 1, 32, 32))] == [0, 0]
    found = looking.stirred(model, digits.pixels)
    assert [tuple(stage.shape) for stage in found] == [(8, 8), (4, 4)]
    assert all(stage.max() > 0 for stage in found)


def test_switched_is_a_share_for_each_switch():
    digits = learner.test_digits(40)
    found = looking.switched(LabelledImages(digits.pixels, digits.labels))
    assert list(found) == list(looking.SWITCHES)
    assert all(0 <= value <= 1 for value in found.values())
