from dataclasses import replace

import pytest
import torch

from course_lib.lessons.lesson_11 import recipes as task
from course_lib.lessons.lesson_11.recipes import ImageSettings, batches, build, right, source, train
from course_lib.models.mixer import Mixer
from course_lib.models.resnet import ResNet
from course_lib.models.vit import ViT

TINY = ImageSettings(size=14, depth=1, steps=4, batch_size=8)


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(task, "SPLIT_IMAGES", {"validation": 30, "test": 40})


def test_every_net_names_ten_digits_and_an_unknown_one_is_refused():
    kinds = {"vit": ViT, "hybrid": ViT, "mixer": Mixer, "resnet": ResNet}
    for net, kind in kinds.items():
        model = build(replace(TINY, net=net, patch_size=2))
        assert type(model) is kind and model.eval()(torch.randn(3, 1, 14, 14)).shape == (3, 10)
        assert net != "hybrid" or model.config.stem == "conv"
    with pytest.raises(ValueError, match="net must be one of vit, hybrid, mixer, resnet, got 'swin'"):
        build(replace(TINY, net="swin"))


def test_first_weights_depend_on_the_seed_alone_and_positions_are_as_large_as_patches():
    one, other = build(replace(TINY, depth=2)), build(replace(TINY, depth=2, steps=9, images=50))
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))
    assert not torch.equal(one.pos_embed, build(replace(TINY, depth=2, seed=1)).pos_embed)
    assert build(replace(TINY, size=28)).pos_embed.std().item() == pytest.approx(1.0, rel=0.1)


def test_new_images_come_in_every_step_of_every_seed():
    seen = [batches(replace(TINY, seed=seed))(step)[0] for seed in (0, 1) for step in range(3)]
    pixels = torch.cat(seen).flatten(1)
    assert len(pixels.unique(dim=0)) == len(pixels) == 2 * 3 * 8


def test_fixed_images_come_once_an_epoch():
    batch_at = batches(replace(TINY, images=20))
    first, second = (torch.cat([batch_at(3 * epoch + step)[0] for step in range(3)]).flatten(1) for epoch in (0, 1))
    assert len(first.unique(dim=0)) == 20
    assert torch.equal(first.unique(dim=0), second.unique(dim=0)) and not torch.equal(first, second)
    other = batches(replace(TINY, images=20, seed=1))(0)[0].flatten(1)
    assert not (other[:, None] == first).all(dim=-1).any()


def test_scenes_are_scored_at_three_strengths_of_clutter():
    recipe = replace(TINY, scenes=True, size=32)
    roughness = []
    for clutter in (None, *task.CLUTTER.values()):
        pixels, labels = source(recipe, "test", clutter)(200, 0)
        assert labels.shape == (200,)
        roughness.append(pixels.var(dim=(1, 2, 3)).median().item())
    assert roughness[1] < roughness[2] < roughness[3] and roughness[1] < roughness[0] < roughness[3]


def test_a_score_is_that_of_its_split(few):
    class Knows(torch.nn.Module):
        """Gives every image of the test split its label."""

        def forward(self, image):
            return torch.nn.functional.one_hot(answers, 10)[: len(image)].float()

    answers = source(TINY, "test")(40, 0).labels
    assert right(Knows(), TINY, "test") == {"accuracy": 1.0}
    assert right(Knows(), TINY, "validation")["accuracy"] < 0.5


def test_a_trained_net_has_the_weights_that_validated_best(few, monkeypatch):
    values = iter([0.1, 0.9, 0.3, 0.2])
    snapshots = []

    def fake_score(model, settings, split):
        snapshots.append(model.head.weight.detach().clone())
        return {"accuracy": next(values)}

    monkeypatch.setattr(task, "right", fake_score)
    run = train(TINY)
    assert torch.equal(run.model.head.weight, snapshots[1]) and not torch.equal(run.model.head.weight, snapshots[3])
    assert run.history.best_value == 0.9
