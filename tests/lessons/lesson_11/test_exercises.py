"""The exercises of lesson 11 ask for what the library does, and what passes runs inside the lesson's models."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from course_lib.functional import attention_maps, positions
from course_lib.layers import patches
from course_lib.lessons.lesson_11.tasks import TASKS
from course_lib.models.mixer import Mixer, MixerConfig
from course_lib.models.vit import ViT, ViTConfig
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


def test_patches_and_tokens_run_inside_a_vit(vit):
    pixels, conv = torch.randn(2, 3, 12, 12), vit.patch_embed.proj
    wanted = vit(pixels)
    cut = TASKS["patchify"].reference(pixels, 4)
    x = TASKS["tokens"].reference(
        F.linear(cut, conv.weight.permute(0, 2, 3, 1).flatten(1), conv.bias), vit.cls_token, vit.pos_embed
    )
    for block in vit.blocks:
        x = block(x)
    torch.testing.assert_close(vit.head(vit.norm(x)[:, 0]), wanted)


def test_positions_that_fit_make_the_model_of_another_size(vit):
    pixels = torch.randn(2, 3, 20, 16)
    larger = ViT(replace(vit.config, image_size=(20, 16))).eval()
    fitted = TASKS["fit_positions"].reference(vit.pos_embed.detach(), (3, 3), (5, 4))
    larger.load_state_dict(vit.state_dict() | {"pos_embed": fitted})
    torch.testing.assert_close(larger(pixels), vit(pixels))


def test_a_block_runs_inside_a_mixer():
    mixer, pixels = Mixer(MixerConfig(**SIZES, token_mlp_dim=4)), torch.randn(2, 3, 12, 12)
    x = mixer.embed(pixels)
    for block in mixer.blocks:
        x = TASKS["mixer_block"].reference(x, block.norm1, block.token_mlp, block.norm2, block.channel_mlp)
    torch.testing.assert_close(mixer.norm(x), mixer.features(pixels))
