from dataclasses import replace
from pathlib import Path
from statistics import fmean

import torch

from course_lib.data.checkpoints import load_trained
from course_lib.lessons.lesson_12 import recipes as task
from course_lib.lessons.lesson_12.recipes import SwinSettings, build, right

NETS = ("ResNet", "ViT")
TINY = SwinSettings(size=8, patch_size=2, window_size=2, dim=4, depths=(2,), num_heads=(1,), steps=4, batch_size=4)


def shifts(model):
    return [block.attn.shift for stage in model.stages for block in stage]


def test_the_variants_differ_in_their_shifts_alone():
    shifted, unshifted = (build(replace(task.COMPARED, shifted=flag)) for flag in (True, False))
    assert max(shifts(shifted)) > 0 and max(shifts(unshifted)) == 0
    assert shifted.state_dict().keys() == unshifted.state_dict().keys()
    assert all(torch.equal(tensor, unshifted.state_dict()[name]) for name, tensor in shifted.state_dict().items())


def test_between_the_variants_windows_only_shifts_lead_from_one_to_the_next():
    model = build(replace(task.COMPARED, shifted=False)).eval()
    side = task.COMPARED.window_size * task.COMPARED.patch_size
    image = torch.rand(1, 1, task.COMPARED.size, task.COMPARED.size, requires_grad=True)
    model.feature_maps(image)[-1][0, :, 0, 0].square().sum().backward()
    assert side < task.COMPARED.size / 2 and len(model.merges) == 0 and model.pos_embed is None
    assert (
        image.grad[..., :side, :side].any() and not image.grad[..., side:].any() and not image.grad[..., side:, :].any()
    )


def test_a_score_is_that_of_its_split(monkeypatch):
    monkeypatch.setattr(task, "SPLIT_IMAGES", {"validation": 40, "test": 60})
    answers = task.CleanDigits(split="test", size=8).batch(60, seed=0).labels

    class Knows(torch.nn.Module):
        """Gives every image of the test split its label, and others another one."""

        def forward(self, image):
            return 2.0 * torch.nn.functional.one_hot(answers, 10)[: len(image)]

    assert right(Knows(), TINY, "test") == 1.0 and right(Knows(), TINY, "validation") < 0.5


def test_the_shipped_model_reads_digits_that_nothing_was_chosen_by():
    trained = load_trained("swin")
    images = task.CleanDigits(split="test", size=trained.extra["recipe"]["size"]).batch(500, seed=1)
    assert task.accuracy(trained.model, images.pixels, images.labels) >= 0.95
    assert all(seed["test"]["accuracy"] >= 0.95 for seed in trained.card["seeds"])


def test_shifts_paid_with_every_seed_and_both_variants_had_learned():
    for seed in load_trained("shifted_windows").card["seeds"]:
        shifted, unshifted = (seed["test"][f"accuracy, {name}"] for name in ("shifted", "unshifted"))
        assert shifted > unshifted + 0.05 and unshifted > 0.5  # chance is 0.1


def test_a_prediction_quotes_the_accuracies_of_the_cards():
    card = load_trained("vit_icons_data").card
    resnet, vit = (fmean(seed["test"][f"accuracy, {net}, all drawings"] for seed in card["seeds"]) for net in NETS)
    asked = (Path(task.__file__).parent / "questions.md").read_text(encoding="utf-8")
    assert (
        f"The ResNet classifies {100 * resnet:.0f} % of new drawings correctly, and the ViT {100 * vit:.0f} %" in asked
    )
