from itertools import product

import pytest
import torch
from torch import nn

from course_lib.models.resnet import ResNet, ResNetConfig, resnet50


def tiny(seed=0, **overrides):
    settings = {"in_channels": 1, "num_classes": 3, "stem": "small", "stem_channels": 4, "block": "basic"}
    torch.manual_seed(seed)
    return ResNet(ResNetConfig(**settings | {"widths": (4, 8), "depths": (1, 2)} | overrides))


def test_sizes_of_the_maps_are_those_of_table_1():
    with torch.device("meta"):
        maps = resnet50().feature_maps(torch.empty(1, 3, 224, 224))
    assert [tuple(each.shape[1:]) for each in maps] == [(256, 56, 56), (512, 28, 28), (1024, 14, 14), (2048, 7, 7)]


def test_any_size_of_image_is_taken():
    for size in ((1, 1), (7, 30), (33, 18)):
        assert tiny().eval()(torch.randn(2, 1, *size)).shape == (2, 3)


def test_each_map_is_made_of_the_one_before():
    model, image = tiny(depths=(2, 1)).eval(), torch.randn(2, 1, 8, 8)
    first, second = model.feature_maps(image)
    torch.testing.assert_close(model.stages[0](model.stem(image)), first)
    torch.testing.assert_close(model.stages[1](first), second)


def test_without_what_its_blocks_learned_a_residual_net_passes_its_input_on_and_a_plain_one_does_not():
    for residual in (True, False):
        model, image = tiny(widths=(4,), depths=(3,), residual=residual).eval(), torch.randn(2, 1, 6, 6)
        for name, parameter in model.named_parameters():
            if "convs.1.norm" in name:
                nn.init.zeros_(parameter)
        (last,) = model.feature_maps(image)
        assert torch.equal(last, model.stem(image)) == residual
        assert (last == 0).all() != residual


def test_maps_have_one_order_in_memory_whatever_that_of_image_and_weights():
    for channels, order in product((1, 3), (torch.contiguous_format, torch.channels_last)):
        model, image = tiny(in_channels=channels).to(memory_format=order), torch.randn(2, channels, 8, 8)
        for each in model.feature_maps(image.to(memory_format=order)):
            assert each.is_contiguous(memory_format=torch.channels_last)


def state(model):
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


@pytest.mark.parametrize("frozen", [0, 1, 2, None])
def test_frozen_parts_keep_weights_and_statistics_in_training(frozen):
    model = tiny().train()
    assert model.freeze(frozen) is model and model.training
    before = state(model)
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.5)
    for _ in range(2):
        model.train()
        optimizer.zero_grad()
        model(torch.randn(8, 1, 8, 8)).square().sum().backward()
        optimizer.step()
    parts = ("stem.", "stages.0.", "stages.1.")
    kept = parts[:frozen]
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, before[name]) == name.startswith(kept or ("no part",))


def test_what_was_frozen_can_learn_again():
    model = tiny().freeze().freeze(0).train()
    assert all(parameter.requires_grad for parameter in model.parameters())
    assert all(module.training for module in model.modules())
