"""Lesson 13: the exercises' references, which the lesson runs on, do what the library does."""

import torch

from course_lib.functional.cost import count_flops
from course_lib.layers.patches import patchify, random_mask
from course_lib.lessons.lesson_13 import recipes
from course_lib.lessons.lesson_13.tasks import TASKS
from course_lib.tasks import Draw

SETTINGS = recipes.PretrainingSettings(dim=16, depth=2, num_heads=2, decoder_dim=8, normalised=True)
DRAW = Draw(0)
IMAGE, NOISE = DRAW(3, 1, 28, 28), DRAW(3, 49)


def test_a_model_goes_on_as_before_with_masking_order_target_and_loss_of_the_exercises():
    model = recipes.build(SETTINGS)
    keep, restore, masked = TASKS["random_mask"].reference(NOISE, 0.75)
    for ours, theirs in zip((keep, restore, masked), random_mask(NOISE, 0.75), strict=True):
        assert torch.equal(ours, theirs)
    patches, decoder = model.embed(IMAGE), model.decoder
    seen = decoder.embed(model.encode(patches.gather(1, keep[..., None].expand(-1, -1, 16))))
    x = TASKS["restore_order"].reference(seen, decoder.mask_token, restore) + decoder.pos_embed
    for block in decoder.blocks:
        x = block(x)
    painted, target = decoder.pred(decoder.norm(x)), TASKS["normalised_target"].reference(patchify(IMAGE, 4))
    torch.testing.assert_close(painted, model(IMAGE, NOISE).patches)
    torch.testing.assert_close(target, model.target(IMAGE))
    loss = TASKS["hidden_loss"].reference(painted, target, masked)
    torch.testing.assert_close(loss, model.loss(IMAGE, NOISE))


def test_the_formula_of_the_cost_counts_the_operations_that_the_encoder_does():
    model = recipes.build(SETTINGS).requires_grad_(False)
    patches = model.embed(IMAGE[:1])
    for ratio, visible in ((0.0, 49), (0.5, 24), (0.75, 12)):
        counted = count_flops(lambda visible=visible: model.encode(patches[:, :visible]))
        assert TASKS["encoder_cost"].reference(49, ratio, 16, 2, 64) == counted
