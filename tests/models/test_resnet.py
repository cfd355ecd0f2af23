from itertools import product

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.models import resnet
from course_lib.models.resnet import ResNet, ResNetConfig, resnet8, resnet50, small_resnet
from course_lib.weights import own


def num_parameters(build):
    with torch.device("meta"):
        return sum(parameter.numel() for parameter in build().parameters())


def tiny(seed=0, **overrides):
    settings = {"in_channels": 1, "num_classes": 3, "stem": "small", "stem_channels": 4, "block": "basic"}
    torch.manual_seed(seed)
    return ResNet(ResNetConfig(**settings | {"widths": (4, 8), "depths": (1, 2)} | overrides))


@pytest.mark.parametrize(
    "name, parameters",
    {
        "resnet18": 11_689_512,
        "resnet34": 21_797_672,
        "resnet50": 25_557_032,
        "resnet101": 44_549_160,
        "resnet152": 60_192_808,
    }.items(),
)
def test_presets_have_the_published_number_of_parameters(name, parameters):
    assert num_parameters(getattr(resnet, name)) == parameters


def test_presets_have_as_many_layers_as_they_are_called():
    """Table 1 counts convolutions, but those of shortcuts, and the linear layer."""
    with torch.device("meta"):
        for layers in (18, 34, 50, 101, 152):
            model = getattr(resnet, f"resnet{layers}")()
            names = [name for name, part in model.named_modules() if isinstance(part, nn.Conv2d)]
            assert sum("shortcut" not in name for name in names) + 1 == layers


@pytest.mark.parametrize("layers, millions", {20: 0.27, 32: 0.46, 44: 0.66, 56: 0.85, 110: 1.73}.items())
def test_small_nets_have_the_size_of_table_6_and_plain_ones_exactly_the_same(layers, millions):
    count = num_parameters(lambda: small_resnet(layers, in_channels=3))
    assert count / 1e6 == pytest.approx(millions, abs=0.01)
    assert num_parameters(lambda: small_resnet(layers, in_channels=3, residual=False)) == count


def test_sizes_of_the_maps_are_those_of_table_1():
    with torch.device("meta"):
        maps = resnet50().feature_maps(torch.empty(1, 3, 224, 224))
    assert [tuple(each.shape[1:]) for each in maps] == [(256, 56, 56), (512, 28, 28), (1024, 14, 14), (2048, 7, 7)]


def test_sizes_of_small_maps_are_those_of_section_4_2():
    maps = resnet8(in_channels=1)(torch.zeros(1, 1, 32, 32)), resnet8(in_channels=1).feature_maps
    assert maps[0].shape == (1, 10)
    assert [tuple(each.shape[1:]) for each in maps[1](torch.zeros(1, 1, 32, 32))] == [
        (16, 32, 32),
        (32, 16, 16),
        (64, 8, 8),
    ]


def test_any_size_of_image_is_taken():
    for size in ((1, 1), (7, 30), (33, 18)):
        assert tiny().eval()(torch.randn(2, 1, *size)).shape == (2, 3)


def test_logits_are_those_of_the_last_map_and_features_come_without_a_head():
    model, image = tiny().eval(), torch.randn(2, 1, 9, 11)
    *_, last = model.feature_maps(image)
    features = last.sum(dim=(2, 3)) / (last.shape[2] * last.shape[3])
    torch.testing.assert_close(model(image), F.linear(features, model.head.weight, model.head.bias))
    headless = tiny(num_classes=None).eval()
    headless.load_state_dict({name: tensor for name, tensor in model.state_dict().items() if "head" not in name})
    torch.testing.assert_close(headless(image), features)
    assert headless.head is None


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


def test_gradients_reach_the_stem_of_a_deep_residual_net_better_than_of_a_plain_one():
    norms = {}
    for residual in (True, False):
        torch.manual_seed(0)
        model = small_resnet(56, in_channels=1, stem_channels=4, widths=(4, 4, 4), residual=residual)
        model.eval()  # as the first weights are, without batch statistics
        model(torch.randn(4, 1, 8, 8)).logsumexp(dim=1).sum().backward()
        norms[residual] = model.stem.conv.weight.grad.norm().item()
    assert norms[True] > 100 * norms[False]


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


def test_a_saved_model_comes_back_whole(tmp_path):
    model, image = tiny(residual=False).eval(), torch.randn(2, 1, 8, 8)
    own.save(model, tmp_path / "model.safetensors")
    again = own.load(tmp_path / "model.safetensors")
    assert again.config == model.config and torch.equal(again(image), model(image))


def test_it_learns_one_batch_by_heart():
    torch.manual_seed(0)
    model, image, labels = tiny(), torch.randn(12, 1, 8, 8), torch.arange(12) % 3
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(40):
        optimizer.zero_grad()
        F.cross_entropy(model(image), labels).backward()
        optimizer.step()
    assert F.cross_entropy(model(image), labels) < 0.05


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"depths": (1,)}, r"widths \(4, 8\) and depths \(1,\)"),
        ({"depths": (1, 0)}, "each at least 1"),
        ({"widths": (), "depths": ()}, "each at least 1"),
        ({"stem": "large"}, "stem must be 'imagenet' or 'small'.*'large'"),
        ({"block": "wide"}, "block 'basic' or 'bottleneck'.*'wide'"),
        ({"block": "bottleneck", "widths": (4, 6)}, "multiple of 4, got 6"),
        ({"shortcut": "zeros"}, "shortcut must be"),
    ],
)
def test_settings_that_do_not_fit_are_named(changes, message):
    with pytest.raises(ValueError, match=message):
        tiny(**changes)


@pytest.mark.parametrize("layers", [2, 9, 18])
def test_a_small_net_has_6n_plus_2_layers(layers):
    with pytest.raises(ValueError, match=f"6n \\+ 2.*got {layers}"):
        small_resnet(layers)
