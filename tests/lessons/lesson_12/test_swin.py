from dataclasses import replace

import pytest
import torch

from course_lib.data.checkpoints import load_trained
from course_lib.lessons.lesson_12 import swin as task
from course_lib.lessons.lesson_12.swin import DigitRecipe, build, score, train_swin
from course_lib.models.swin import Swin
from course_lib.training import vision
from course_lib.training.history import History
from course_lib.training.registry import find_recipe

TINY = DigitRecipe(size=8, patch_size=2, window_size=2, dim=4, depths=(2,), num_heads=(1,), steps=4, batch_size=4)


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(task, "SETTINGS", TINY)
    monkeypatch.setattr(task, "COMPARED", replace(TINY, positions=False))
    monkeypatch.setattr(task, "CONTESTANTS", {"shifted": 1e-3, "unshifted": 2e-3})
    monkeypatch.setattr(task, "SPLIT_IMAGES", {"validation": 40, "test": 60})


def shifts(model):
    return [block.attn.shift for stage in model.stages for block in stage]


def test_the_contestants_differ_in_their_shifts_alone():
    shifted, unshifted = (build(replace(task.COMPARED, shifted=flag)) for flag in (True, False))
    assert max(shifts(shifted)) > 0 and max(shifts(unshifted)) == 0
    assert shifted.state_dict().keys() == unshifted.state_dict().keys()
    assert all(torch.equal(tensor, unshifted.state_dict()[name]) for name, tensor in shifted.state_dict().items())


def test_between_the_contestants_windows_only_shifts_lead_from_one_to_the_next():
    model = build(replace(task.COMPARED, shifted=False)).eval()
    side = task.COMPARED.window_size * task.COMPARED.patch_size
    image = torch.rand(1, 1, task.COMPARED.size, task.COMPARED.size, requires_grad=True)
    model.feature_maps(image)[-1][0, :, 0, 0].square().sum().backward()
    assert side < task.COMPARED.size / 2 and len(model.merges) == 0 and model.pos_embed is None
    assert (
        image.grad[..., :side, :side].any() and not image.grad[..., side:].any() and not image.grad[..., side:, :].any()
    )


def test_first_weights_depend_on_the_seed_alone():
    one, other = build(TINY), build(replace(TINY, steps=9))
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))
    assert not torch.equal(one.head.weight, build(replace(TINY, seed=1)).head.weight)


def test_no_image_is_seen_twice_nor_by_two_seeds(few, monkeypatch):
    seen = []

    def fit(model, batch_at, *, steps, **others):
        seen.extend(batch_at(step) for step in range(steps))
        assert vision.STEPS_OF_A_SEED > steps
        return History.blank(steps, [])

    monkeypatch.setattr(task, "fit_classifier", fit)
    for seed in (0, 1):
        train_swin(replace(TINY, seed=seed))
    pixels = torch.cat([pixels for pixels, _ in seen]).flatten(1)
    assert len(pixels) == 2 * 4 * 4 == len(pixels.unique(dim=0)) and pixels.shape[1] == 64
    assert all(labels.shape == (4,) and labels.min() >= 0 and labels.max() <= 9 for _, labels in seen)


def test_a_score_is_that_of_its_split(few):
    answers = task.CleanDigits(split="test", size=8).batch(60, seed=0).labels

    class Knows(torch.nn.Module):
        """Gives every image of the test split its label, and others another one."""

        def forward(self, image):
            return 2.0 * torch.nn.functional.one_hot(answers, 10)[: len(image)]

    assert score(Knows(), TINY, "test") == 1.0 and score(Knows(), TINY, "validation") < 0.5


def test_the_recipe_ships_what_it_scored(few, tmp_path):
    trained = find_recipe("swin").train(3, tmp_path, None)
    assert isinstance(trained.model, Swin) and max(shifts(trained.model)) == 1
    recipe = DigitRecipe(**trained.extra["recipe"])
    assert recipe == replace(TINY, seed=3) and len(trained.history.losses) == 4
    assert trained.test == {"accuracy": score(trained.model, recipe, "test")}
    assert trained.validation == {"accuracy": score(trained.model, recipe, "validation")}
    again = find_recipe("swin").train(3, tmp_path, None)  # goes on where it ended
    assert again.history.cpu_seconds[-1] == trained.history.cpu_seconds[-1] and again.test == trained.test


def test_the_comparison_scores_both_and_ships_the_shifted_one(few, tmp_path):
    trained = find_recipe("shifted_windows").train(2, tmp_path, None)
    recipe = DigitRecipe(**trained.extra["recipe"])
    assert recipe == replace(TINY, positions=False, seed=2, learning_rate=1e-3) and max(shifts(trained.model)) == 1
    other = train_swin(replace(recipe, shifted=False, learning_rate=2e-3)).model
    for split, scores in (("validation", trained.validation), ("test", trained.test)):
        assert scores["accuracy, shifted"] == score(trained.model, recipe, split)
        assert scores["accuracy, unshifted"] == score(other, recipe, split)
    assert {name for name in trained.test if name.startswith("CPU")} == {
        "CPU seconds, shifted",
        "CPU seconds, unshifted",
    }
    assert len(trained.validation) == 2 and len(trained.test) == 4


def test_the_shipped_model_reads_digits_that_nothing_was_chosen_by():
    trained = load_trained("swin")
    images = task.CleanDigits(split="test", size=trained.extra["recipe"]["size"]).batch(500, seed=1)
    assert task.accuracy(trained.model, images.pixels, images.labels) >= 0.95
    assert all(seed["test"]["accuracy"] >= 0.95 for seed in trained.card["seeds"])


def test_shifts_paid_with_every_seed_and_both_contestants_had_learned():
    for seed in load_trained("shifted_windows").card["seeds"]:
        shifted, unshifted = (seed["test"][f"accuracy, {name}"] for name in ("shifted", "unshifted"))
        assert shifted > unshifted + 0.05 and unshifted > 0.5  # chance is 0.1


def test_the_shipped_contestant_scores_what_its_card_says():
    trained = load_trained("shifted_windows")
    assert score(trained.model, task.COMPARED, "test") == pytest.approx(
        trained.card["test"]["accuracy, shifted"], abs=0.002
    )
