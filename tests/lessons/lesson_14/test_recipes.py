from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from course_lib.functional.segmentation import boundary_f_score, dice_loss, mean_iou
from course_lib.lessons.lesson_14 import recipes as task
from course_lib.models.unet import UNet

TINY = task.SegmentationSettings(steps=3, batch_size=4)


def count(model):
    return sum(p.numel() for p in model.parameters())


@pytest.fixture
def few_scenes(monkeypatch):
    """Every split has a handful of scenes."""
    small = {split: task.scenes(split).batch(12, seed=0) for split in ("validation", "test")}
    monkeypatch.setattr(task, "held_out", small.get)


def test_all_nets_have_about_equal_parameters_and_u_net_the_fewest():
    counts = {name: count(task.build(name, seed=0)) for name in task.NETS}
    assert min(counts.values()) == counts["U-Net"] and max(counts.values()) < 1.06 * counts["U-Net"]
    with_skips, without = task.NETS["U-Net"], task.NETS["U-Net without skips"]

    def scaled(widest):  # all widths by one factor
        widths = tuple(round(width * widest / max(with_skips.widths)) for width in with_skips.widths)
        return replace(with_skips, skips=False, widths=widths)

    widest = max(without.widths)
    assert without == scaled(widest)
    assert count(UNet(scaled(widest - 1))) < count(UNet(with_skips)) <= count(UNet(without))


def test_the_loss_is_weighted_cross_entropy_and_dice():
    model, batch = task.build("U-Net", seed=0).eval(), task.scenes("train").batch(3, seed=1)
    logits = model(task.standardise(batch.pixels))
    nats = F.cross_entropy(logits, batch.semantic, reduction="none")
    weights = torch.where(batch.semantic == 0, 0.3, 1.0)
    wanted = (weights * nats).sum() / weights.sum() + dice_loss(logits, batch.semantic)
    torch.testing.assert_close(task.segmentation_loss(model, batch, background=0.3), wanted)


def test_training_scenes_are_new_at_every_step_and_seed_and_never_the_held_out_ones():
    seeds = [task.batch_seed(seed, step) for seed in range(3) for step in range(5000)]
    assert len(set(seeds)) == len(seeds) and min(seeds) > 10_000  # 0 and 1: held out; 500 ...: the few masks


def test_scores_are_those_of_the_likeliest_classes():
    asked = task.scenes("validation").batch(6, seed=0)
    model = task.build("U-Net", seed=0).eval()
    predicted = model(task.standardise(asked.pixels)).argmax(dim=1)
    assert task.quality(model, asked) == (
        pytest.approx(mean_iou(predicted, asked.semantic, 11)),
        pytest.approx(boundary_f_score(predicted, asked.semantic)),
    )


class Oracle(torch.nn.Module):
    """Knows the scenes it will be asked about."""

    def __init__(self, asked):
        super().__init__()
        self.asked, self.done = asked, 0

    def forward(self, images):
        semantic = self.asked.semantic[self.done : self.done + len(images)]
        self.done += len(images)
        return 20 * F.one_hot(semantic, task.NUM_CLASSES).movedim(-1, 1).float()


def test_even_perfect_pixels_miss_digits_that_touch():
    asked = task.scenes("test", size=64, digits=(4, 4)).batch(40, seed=1)
    (value,) = task.instance_scores(Oracle(asked), count=40).values()
    assert 0.6 < value < 1


def test_few_masks_start_from_the_classifier_unless_from_scratch(few_scenes):
    classifier = task.train_backbone(task.BackboneSettings(steps=2)).model
    labelled = task.scenes("train").batch(5, seed=500)
    recipe = task.FewMasksSettings(steps=2, learning_rate=1e-3)
    nets = {
        backbone: task.learn_from_few(classifier, labelled, replace(recipe, backbone=backbone, seed=1))
        for backbone in ("frozen", "tuned", "scratch")
    }
    moved = {
        backbone: max(
            (ours - theirs).abs().max().item()
            for ours, theirs in zip(net.backbone.parameters(), classifier.parameters(), strict=False)
        )
        for backbone, net in nets.items()
    }
    assert moved["frozen"] == 0 < moved["tuned"] < 5e-3 < moved["scratch"]
    assert torch.equal(nets["frozen"].backbone.stem.norm.running_mean, classifier.stem.norm.running_mean)


def test_only_the_few_labelled_images_are_seen(few_scenes, monkeypatch):
    seen = []

    def remember(model, batch, **settings):
        seen.append(batch.pixels)
        return task.dice_loss(model(batch.pixels), batch.semantic)

    monkeypatch.setattr(task, "segmentation_loss", remember)
    labelled = task.scenes("train").batch(5, seed=500)
    recipe = task.FewMasksSettings(steps=6, learning_rate=1e-3, batch_size=3)
    task.learn_from_few(task.train_backbone(task.BackboneSettings(steps=1)).model, labelled, recipe)
    known = {image.numpy().tobytes() for image in labelled.pixels}
    assert {image.numpy().tobytes() for batch in seen for image in batch} == known
    assert [len(batch) for batch in seen] == [3] * 6
