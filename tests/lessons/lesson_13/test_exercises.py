"""Lesson 13: the exercises' references, which the lesson runs on, do what the library does."""

import copy

import pytest
import torch

from course_lib.classroom.opening import compare, copy_weights
from course_lib.functional.cost import count_flops
from course_lib.layers.patches import patchify, random_mask
from course_lib.lessons.lesson_13 import icon_recipes as recipes
from course_lib.lessons.lesson_13 import models
from course_lib.lessons.lesson_13.tasks import TASKS, Tokens, positions_2d
from course_lib.models.mae import MAE
from course_lib.tasks import Draw

SETTINGS = recipes.PretrainingSettings(dim=16, depth=2, num_heads=2, decoder_dim=8, decoder_depth=1, normalised=True)
IMAGES, NOISE = Draw(0)(3, 3, 32, 32), Draw(1)(3, 64)


@pytest.fixture
def library() -> MAE:
    return recipes.build(SETTINGS).eval()


@pytest.fixture
def solution(library):
    mine = TASKS["mae"].module(**models.sizes(library)).eval()
    copy_weights(library, mine, models.NAMES)
    return mine


def test_masking_target_and_loss_are_those_of_the_library(library):
    mask = TASKS["random_mask"].reference(NOISE, 0.75)
    for mine, ours in zip(mask, random_mask(NOISE, 0.75), strict=True):
        assert torch.equal(mine, ours)
    predicted, masked = library(IMAGES, NOISE)
    target = TASKS["normalised_target"].reference(patchify(IMAGES, 4))
    torch.testing.assert_close(target, library.target(IMAGES))
    loss = TASKS["hidden_loss"].reference(predicted, target, masked)
    torch.testing.assert_close(loss, library.loss(IMAGES, NOISE))


def test_the_solution_opens_an_mae_of_the_library(library, solution):
    compare(library, solution, (IMAGES, NOISE), models.NAMES)
    with torch.no_grad():
        found, masked = solution(IMAGES, NOISE)
        wanted = library(IMAGES, NOISE)
    assert (found - wanted.patches).abs().max() < 1e-4 and torch.equal(masked, wanted.masked)


def test_the_shipped_sizes_have_as_many_parameters_as_the_page_computes():
    ours = recipes.build(recipes.SETTINGS)
    mine = TASKS["mae"].module(**models.sizes(ours))
    assert sum(p.numel() for p in mine.parameters()) == 203_200 + 62_160
    assert sum(p.numel() for p in ours.parameters()) == 203_200 + 62_160 + 64 * (64 + 48)


def test_the_classifier_is_the_library_s(library, solution):
    with torch.no_grad():
        ours = recipes.encoder_of(library, num_classes=6)
        mine = TASKS["fine_tune"].module(solution.encoder, 16, 6)
        torch.nn.init.normal_(mine.head.weight)
        ours.head.load_state_dict(mine.head.state_dict())
        torch.testing.assert_close(mine(IMAGES), ours(IMAGES), atol=1e-4, rtol=1e-4)


def test_a_linear_probe_learns_and_leaves_the_encoder_as_it_is():
    torch.manual_seed(0)
    encoder, labels = Tokens(3, 16, 4), torch.arange(120) % 3
    before = copy.deepcopy(encoder.state_dict())
    images = 0.3 * torch.randn(120, 3, 8, 8)
    for channel in range(3):
        images[labels == channel, channel] += 1
    logits = TASKS["linear_probe"].reference(encoder, images[:60], labels[:60], images[60:], 3, 50, 0.5)
    assert (logits.argmax(dim=1) == labels[60:]).float().mean() > 0.9
    assert all(torch.equal(before[name], value) for name, value in encoder.state_dict().items())


def with_batch_norm(encoder, images, labels, new, num_classes, steps, lr):
    norm = torch.nn.BatchNorm1d(encoder.mlp.out_features, affine=False, momentum=None)
    with torch.no_grad():
        known, asked = norm(encoder(images).mean(dim=1)), encoder(new).mean(dim=1)
        rows = norm.eval()(asked)
    head = torch.nn.Linear(known.shape[1], num_classes)
    torch.nn.init.zeros_(head.weight)
    torch.nn.init.zeros_(head.bias)
    optimizer = torch.optim.SGD(head.parameters(), lr=lr)
    for _ in range(steps):
        loss = torch.nn.functional.cross_entropy(head(known), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return head(rows).detach()


def test_a_linear_probe_may_standardise_in_each_of_the_usual_ways():
    task = TASKS["linear_probe"]
    over_n = task.reference.changed((("known.std(dim=0)", "known.std(dim=0, correction=0)"),))
    assert task.run(over_n).passed and task.run(with_batch_norm).passed


def test_old_gradients_may_be_cleared_anywhere_before_the_new_ones():
    task = TASKS["pretrain_step"]
    first = "    optimizer.zero_grad()\n"
    earlier = task.reference.changed(((first, ""), ("    noise =", f"{first}    noise =")))
    assert task.run(earlier).passed


def test_the_formula_of_the_cost_counts_the_operations_that_the_encoder_does(library):
    library.requires_grad_(False)
    patches = library.embed(IMAGES[:1])
    for ratio, visible in ((0.0, 64), (0.5, 32), (0.75, 16)):
        counted = count_flops(lambda visible=visible: library.encode(patches[:, :visible]))
        assert TASKS["encoder_cost"].reference(64, ratio, 16, 2, 64) == counted


def test_the_derivation_of_the_page_gives_the_factor_of_the_paper():
    cost = TASKS["encoder_cost"].reference
    visible, whole, decoder = cost(196, 0.75, 1024, 24, 4096), cost(196, 0, 1024, 24, 4096), cost(196, 0, 512, 8, 2048)
    assert whole / visible == pytest.approx(4.1, abs=0.05)
    assert (whole + decoder) / (visible + decoder) == pytest.approx(3.3, abs=0.05)
    assert cost(64, 0, 64, 4, 256) / cost(64, 0.75, 64, 4, 256) == pytest.approx(4.5, abs=0.05)


def test_a_mask_of_numbers_is_told_what_it_is():
    def with_numbers(noise, ratio):
        keep, restore, masked = TASKS["random_mask"].reference(noise, ratio)
        return keep, restore, masked.float()

    assert TASKS["random_mask"].run(with_numbers).misconceptions == ["mask of numbers"]


def test_positions_tell_all_patches_apart():
    codes = positions_2d(8, 48)
    assert codes.shape == (64, 48) and torch.cdist(codes, codes).add(torch.eye(64)).min() > 0.5
