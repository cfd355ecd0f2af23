"""The exercises of lesson 11 ask for what the library does, and what passes runs inside the lesson's models."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from course_lib.classroom.opening import compare, copy_weights
from course_lib.functional import attention_maps, positions
from course_lib.layers import patches
from course_lib.lessons.lesson_11 import learner, official
from course_lib.lessons.lesson_11.models import NAMES, large_images, sizes
from course_lib.lessons.lesson_11.tasks import TASKS
from course_lib.models.vit import ViT, ViTConfig, vit_base_patch16
from course_lib.tasks import Draw

SIZES = {"image_size": 12, "patch_size": 4, "in_channels": 3, "num_classes": 5, "dim": 8, "depth": 2, "mlp_dim": 16}


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("patchify", patches.patchify),
        ("unpatchify", patches.unpatchify),
        ("attention_distance", attention_maps.attention_distance),
        ("fit_positions", positions.fit_positions),
    ],
)
def test_the_references_do_what_the_library_does(name, ours):
    for case in TASKS[name].cases:
        for seed in (1, 2):
            given = case.inputs(Draw(seed))
            torch.testing.assert_close(TASKS[name].reference(*given), ours(*given))


@pytest.fixture
def vit():
    torch.manual_seed(0)
    model = ViT(ViTConfig(**SIZES, num_heads=2)).eval()
    torch.nn.init.normal_(model.cls_token)
    torch.nn.init.normal_(model.head.weight)
    return model


def test_the_kernel_makes_the_tokens_of_the_matrix():
    pixels, E = torch.randn(2, 3, 8, 12), torch.randn(48, 5)
    cut = TASKS["patchify"].reference(pixels, 4) @ E
    slid = F.conv2d(pixels, TASKS["kernel"].reference(E, 4), stride=4).flatten(2).transpose(1, 2)
    torch.testing.assert_close(cut, slid, rtol=1e-4, atol=1e-4)


def test_the_solution_opens_a_vit_of_the_library_and_a_released_one(vit):
    pixels = torch.randn(2, 3, 12, 12)
    for ours, images in ((vit, pixels), (official.in_its_layout().eval(), large_images()[0])):
        mine = TASKS["vit"].module(**sizes(ours)).eval()
        assert copy_weights(ours, mine, NAMES) == sum(p.numel() for p in ours.parameters())
        compare(ours, mine, (images,), NAMES)


def test_vit_base_of_the_solution_has_as_many_parameters_as_the_library_s():
    with torch.device("meta"):
        mine, ours = TASKS["vit"].module(224, 16, 3, 1000, 768, 12, 12, 3072), vit_base_patch16()
    assert sum(p.numel() for p in mine.parameters()) == sum(p.numel() for p in ours.parameters()) == 86_567_656


def test_an_effective_number_is_one_for_one_token_and_all_for_equal_weights():
    effective = TASKS["effective"].reference
    assert effective(torch.eye(5)[None]).item() == pytest.approx(1)
    assert effective(torch.full((1, 5, 5), 0.2)).item() == pytest.approx(5)


def test_positions_that_fit_make_the_model_of_another_size(vit):
    pixels = torch.randn(2, 3, 20, 16)
    larger = ViT(replace(vit.config, image_size=(20, 16))).eval()
    fitted = TASKS["fit_positions"].reference(vit.pos_embed.detach(), (3, 3), (5, 4))
    larger.load_state_dict(vit.state_dict() | {"pos_embed": fitted})
    torch.testing.assert_close(larger(pixels), vit(pixels))


def test_a_block_runs_inside_a_mixer():
    assert learner.agrees(TASKS["mixer_block"].reference)
    assert not learner.agrees(lambda x, *parts: x)
