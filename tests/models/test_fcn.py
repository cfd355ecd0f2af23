from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from course_lib.models.cnn import CNN, CNNConfig
from course_lib.models.fcn import fcn_from_classifier
from course_lib.models.resnet import ResNet, ResNetConfig, resnet8

SMALL = {"image_size": 16, "widths": (4, 6, 8), "depths": (1, 1, 1)}
PLACE_BY_PLACE = CNNConfig(pool="none", **SMALL)
LARGE_STEM = ResNetConfig(
    in_channels=1, num_classes=10, block="basic", widths=(4, 6, 8), depths=(1, 1, 1), stem_channels=4
)
CONFIGS = {
    "fully connected": PLACE_BY_PLACE,
    "mean": CNNConfig(**SMALL),
    "ResNet": replace(resnet8(in_channels=1).config, stem_channels=4, widths=(4, 6, 8)),
    "ResNet, large stem": LARGE_STEM,
    "ResNet, odd stride": replace(LARGE_STEM, stem="small", stride_in_first_stage=True),
}


def build(config, seed=0):
    torch.manual_seed(seed)
    classifier = (CNN if isinstance(config, CNNConfig) else ResNet)(config)
    for tensor in classifier.state_dict().values():
        if tensor.is_floating_point():
            torch.nn.init.normal_(tensor, std=0.4)
    for module in classifier.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            torch.nn.init.uniform_(module.running_var, 0.5, 1.5)
            torch.nn.init.uniform_(module.weight, 0.5, 1.5)
    return classifier.eval()


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@pytest.mark.parametrize("size", [16, 22])
def test_at_its_own_size_it_answers_as_the_classifier_and_on_larger_images_with_a_map(config, size):
    if isinstance(config, CNNConfig):
        config = replace(config, image_size=size)
    classifier = build(config)
    model = fcn_from_classifier(classifier, image_size=size).eval()
    image = torch.randn(3, 1, size, size)
    answers = model.score_map(image)
    assert answers.shape == (3, 10, 1, 1)
    torch.testing.assert_close(answers[:, :, 0, 0], classifier(image), rtol=1e-5, atol=1e-5)
    assert classifier(image).std(dim=0).min() > 1e-2  # else the comparison would say little
    wider = F.pad(image, (0, 2 * model.stride, 0, model.stride))
    assert model.score_map(wider).shape == (3, 10, 2, 3)


def test_a_map_is_what_the_classifier_says_of_every_window():
    classifier = CNN(replace(PLACE_BY_PLACE, widths=(4,), depths=(1,), image_size=5)).eval()  # one 3 x 3 convolution
    model, image = fcn_from_classifier(classifier).eval(), torch.randn(1, 1, 9, 12)
    answers, features = model.score_map(image), classifier.feature_maps(image)[-1]
    assert answers.shape == (1, 10, 5, 8)
    for row, column in ((0, 0), (2, 3), (4, 7)):
        window = features[:, :, row : row + 5, column : column + 5]
        torch.testing.assert_close(answers[:, :, row, column], classifier.head(window.flatten(1)), rtol=0, atol=1e-6)


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@pytest.mark.parametrize("num_skips", [0, 1, 2])
def test_every_pixel_of_any_image_gets_its_logits(config, num_skips):
    model = fcn_from_classifier(build(config), image_size=16, num_classes=4, num_skips=num_skips)
    for size in ((16, 16), (7, 19), (33, 8)):
        assert model(torch.randn(2, 1, *size)).shape == (2, 4, *size)


def test_the_middle_of_a_window_gets_the_classifier_s_answer():
    model = fcn_from_classifier(build(PLACE_BY_PLACE)).eval()  # a window of 4 x 4, stride 4
    image, answers = torch.randn(1, 1, 16, 16), []
    model.last_up.register_forward_pre_hook(lambda _, inputs: answers.append(inputs[0]))
    model(image)
    assert answers[0].shape == (1, 10, 4, 4)
    torch.testing.assert_close(answers[0][:, :, 1, 1], model.score_map(image)[:, :, 0, 0], rtol=0, atol=1e-6)


def test_a_classifier_that_averages_is_the_mean_of_what_it_says_everywhere():
    classifier = build(CONFIGS["ResNet"])
    model, scores = fcn_from_classifier(classifier, image_size=16).eval(), []
    model.last_up.register_forward_pre_hook(lambda _, inputs: scores.append(inputs[0]))
    image = torch.randn(2, 1, 24, 20)
    model(image)
    torch.testing.assert_close(scores[0].mean(dim=(2, 3)), classifier(image), rtol=0, atol=1e-5)


def test_skips_begin_as_bilinear_interpolation_and_change_nothing():
    classifier, image = build(CONFIGS["ResNet"]), torch.randn(1, 1, 24, 24)
    logits = [fcn_from_classifier(classifier, image_size=16, num_skips=n).eval()(image) for n in (0, 2)]
    inside = (..., slice(6, -6), slice(6, -6))
    scores = classifier.head(classifier.feature_maps(image)[-1].permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
    wanted = F.interpolate(scores, scale_factor=4, mode="bilinear", align_corners=False)
    torch.testing.assert_close(logits[0][inside], wanted[inside], rtol=1e-5, atol=1e-5)
    twice = F.interpolate(scores, scale_factor=2, mode="bilinear", align_corners=False)
    twice = F.interpolate(twice, scale_factor=2, mode="bilinear", align_corners=False)
    torch.testing.assert_close(logits[1][inside], twice[inside], rtol=1e-5, atol=1e-5)


def test_new_classes_start_at_zero_and_all_parts_learn():
    model = fcn_from_classifier(build(CONFIGS["ResNet"]), image_size=16, num_classes=3, num_skips=2)
    image = torch.randn(2, 1, 16, 16)
    assert not model(image).any()
    torch.nn.init.normal_(model.score.weight)
    model(image).square().sum().backward()
    assert all(p.grad is not None and p.grad.abs().max() > 0 for p in model.parameters())


def test_the_classifier_stays_as_it_is():
    classifier = build(PLACE_BY_PLACE).train()
    model = fcn_from_classifier(classifier)
    with torch.no_grad():
        for p in model.parameters():
            p.zero_()
    assert classifier.training and all(p.any() for p in classifier.parameters() if p.ndim > 1)
