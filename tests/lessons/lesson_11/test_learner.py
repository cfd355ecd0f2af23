import pytest
import torch

from course_lib.data.checkpoints import load_trained
from course_lib.functional.positions import fit_positions
from course_lib.layers.patches import patchify
from course_lib.lessons.lesson_11 import learner, official, recipes
from course_lib.lessons.lesson_11.tasks import TASKS
from course_lib.models.vit import ViT


def tokens(patches, cls_token, pos_embed):
    return torch.cat([cls_token.expand(len(patches), -1, -1), patches], dim=1) + pos_embed


def test_a_network_through_the_learners_functions_says_what_the_librarys_says():
    model, image = load_trained("vit_digits").model, torch.randn(3, 1, 28, 28)
    expected = model(image)
    found = learner.with_learner_block(model, patchify, tokens)(image)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    wrong = learner.with_learner_block(model, lambda image, size: patchify(image, size).flip(1), tokens)
    assert not torch.allclose(wrong(image), expected, atol=1e-2)


def test_a_mixer_goes_the_learners_way():
    model, image = recipes.build(learner.settings("Mixer")).eval(), torch.randn(2, 1, 28, 28)
    torch.nn.init.normal_(model.head.weight)
    expected = model(image)
    torch.testing.assert_close(learner.mixed(model, TASKS["mixer_block"].reference)(image), expected)
    assert not torch.allclose(learner.mixed(model, lambda x, *parts: x)(image), expected)


def test_both_nets_learn_from_the_same_digits_and_the_vit_through_the_learners_cut(monkeypatch):
    monkeypatch.setattr(learner, "STEPS", 2)
    seen = []

    def cut(image, size):
        seen.append(image)
        return patchify(image, size)

    for name in ("ViT", "Mixer"):
        model = learner.fresh(name, cut, tokens)
        before = [parameter.clone() for parameter in model.parameters()]
        learner.learn(model, name)
        assert any(not torch.equal(new, old) for new, old in zip(model.parameters(), before, strict=True))
    assert len(seen) == 2 and isinstance(model, recipes.Mixer)
    ours, theirs = (recipes.batches(learner.settings(name))(1)[0] for name in ("ViT", "Mixer"))
    assert torch.equal(ours, theirs)


def test_an_example_shows_what_a_network_takes_each_digit_for():
    pictures = learner.test_digits(9)
    figure = learner.showing(pictures)(load_trained("vit_digits").model)
    said = [axes.get_xlabel() for axes in figure.axes]
    right = [f"{label}:" in text for text, label in zip(said, pictures.labels.tolist(), strict=False)]
    assert len(said) == 8 and sum(right) >= 7
    nothing = learner.showing(pictures)(recipes.build(learner.settings("ViT")))  # one that knows nothing
    assert any("wrong" in axes.get_xlabel() for axes in nothing.axes)


def test_at_its_own_size_fitted_positions_change_nothing_and_new_ones_do_harm():
    model = load_trained("vit_digits").model
    assert learner.at_size(model, 28, fit_positions, count=60) > 0.9
    assert learner.at_size(model, 28, learner.drawn_anew, count=60) < 0.6


def test_new_positions_have_the_size_of_the_learned_ones_and_the_class_token_keeps_its_own():
    table = 3 * torch.randn(1, 17, 64)
    drawn = learner.drawn_anew(table, (4, 4), (6, 6))
    assert drawn.shape == (1, 37, 64) and torch.equal(drawn[:, 0], table[:, 0])
    assert drawn[:, 1:].std().item() == pytest.approx(table.std().item(), rel=0.1)


def test_the_official_library_opens_ours():
    assert official.opened_by_both().count("True") == 2


def test_positions_are_compared_inside_and_at_the_border():
    model = ViT(recipes.ViTConfig(image_size=20, patch_size=4, in_channels=1, num_classes=10, dim=32, depth=1,
                                  num_heads=2, mlp_dim=4))  # fmt: skip
    grid = torch.zeros(5, 5, 32)
    grid[..., 31] = 1.0  # one code for all of the border
    for number, (row, column) in enumerate((r, c) for r in (1, 2, 3) for c in (1, 2, 3)):
        grid[row, column] = torch.eye(32)[number]
    grid[1, 2] = grid[1, 1]  # one pair of twelve that lie side by side
    with torch.no_grad():
        model.pos_embed[0, 1:] = grid.flatten(0, 1)
    found = recipes.likeness(model)
    assert found["likeness, border"] == pytest.approx(1)
    assert found["likeness, side by side"] == pytest.approx(1 / 12)
    assert found["likeness, farther apart"] == pytest.approx(0)
