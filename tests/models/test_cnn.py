import torch
import torch.nn.functional as F
from torch import nn

from course_lib.models.cnn import CNN, CNNConfig


def tiny(seed=0, **overrides):
    torch.manual_seed(seed)
    settings = {"image_size": 8, "num_classes": 3, "widths": (4, 6), "depths": (1, 2)}
    return CNN(CNNConfig(**settings | overrides))


def test_stages_halve_the_map_and_the_last_one_is_returned_last():
    maps = tiny(widths=(4, 6, 8), depths=(1, 1, 1)).feature_maps(torch.randn(2, 1, 12, 21))
    assert [tuple(each.shape) for each in maps] == [(2, 4, 12, 21), (2, 6, 6, 10), (2, 8, 3, 5)]


def test_each_stage_has_its_number_of_convolutions():
    model = tiny()
    assert [len([part for part in stage.modules() if isinstance(part, nn.Conv2d)]) for stage in model.stages] == [1, 2]


def test_it_computes_what_its_layers_say():
    model, image = tiny().eval(), torch.randn(2, 1, 8, 8)
    x = model.stages[0][0](image)
    x = model.stages[1](F.max_pool2d(x, 2))
    logits = F.linear(x.flatten(2).mean(dim=2), model.head.weight, model.head.bias)
    torch.testing.assert_close(model(image), logits)


def test_the_mean_takes_any_size_of_image():
    for size in ((2, 2), (9, 31)):
        assert tiny().eval()(torch.randn(2, 1, *size)).shape == (2, 3)


def test_without_pooling_the_head_sees_every_place():
    model, image = tiny(pool="none").eval(), torch.randn(2, 1, 8, 8)
    *_, last = model.feature_maps(image)
    assert model.head.weight.shape == (3, 6 * 4 * 4)
    torch.testing.assert_close(model(image), F.linear(last.flatten(1), model.head.weight, model.head.bias))
    assert tiny(pool="none", num_classes=None)(image).shape == (2, 6 * 4 * 4)
