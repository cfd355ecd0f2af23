import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.functional.positions import interpolate_positions
from course_lib.models.swin import Swin, SwinConfig, swin_base, swin_small, swin_tiny
from course_lib.weights import own

PRESETS = {  # build -> millions in the paper, as counted
    swin_tiny: (28, 28_288_354),
    swin_small: (50, 49_606_258),
    swin_base: (88, 87_768_224),
}


def make(seed=0, std=0.3, **overrides):
    """A tiny model with large random weights, in double precision and evaluation mode."""
    sizes = {"patch_size": 2, "in_channels": 2, "num_classes": 5, "window_size": 2}
    sizes |= {"dim": 6, "depths": (2, 2), "num_heads": (2, 3), "mlp_ratio": 2.0}
    torch.manual_seed(seed)
    model = Swin(SwinConfig(**sizes | overrides)).double().eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=std)
    return model


def images(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("build", PRESETS, ids=lambda build: build.__name__)
def test_presets_have_the_parameters_of_the_paper(build):
    millions, counted = PRESETS[build]
    with torch.device("meta"):
        model = build()
        assert sum(p.numel() for p in model.parameters()) == counted and round(counted / 1e6) == millions
        assert build(num_classes=None).head is None and build(window_size=12).config.window_size == 12


def test_presets_differ_as_in_section_3_3():
    with torch.device("meta"):
        configs = [build().config for build in PRESETS]
    assert [c.dim for c in configs] == [96, 96, 128]
    assert [c.depths for c in configs] == [(2, 2, 6, 2), (2, 2, 18, 2), (2, 2, 18, 2)]
    assert all(c.dim * 2**i / heads == 32 for c in configs for i, heads in enumerate(c.num_heads))  # d of a head


def test_the_model_is_its_parts_one_after_the_other():
    model, image = make(), images(2, 2, 8, 12)
    x = F.conv2d(image, model.patch_embed.proj.weight, model.patch_embed.proj.bias, stride=2)
    x = model.patch_norm(x.permute(0, 2, 3, 1))
    for block in model.stages[0]:
        x = block(x)
    x = model.merges[0](x)
    for block in model.stages[1]:
        x = block(x)
    expected = model.head(model.norm(x).mean(dim=(1, 2)))
    torch.testing.assert_close(model(image), expected, rtol=0, atol=1e-12)
    assert torch.equal(model.features(image), model.norm(x).flatten(1, 2))


def test_every_second_block_shifts_by_half_a_window_unless_told_not_to():
    for shifted, expected in ((True, [0, 2, 0]), (False, [0, 0, 0])):
        model = make(depths=(3, 3), window_size=5, shifted=shifted)
        assert [[block.attn.shift for block in stage] for stage in model.stages] == [expected, expected]


def test_stochastic_depth_grows_from_block_to_block():
    model = make(depths=(2, 3), drop_path=0.4)
    rates = [block.drop_path.rate for stage in model.stages for block in stage]
    assert rates == pytest.approx([0, 0.1, 0.2, 0.3, 0.4])
    assert make(depths=(1,), num_heads=(2,), drop_path=0.4).stages[0][0].drop_path.rate == 0


def reached(model, row, column):
    """Which patches of 8 x 8 the first stage's output at one place depends on."""
    image = images(1, 2, 16, 16).requires_grad_()
    model.feature_maps(image)[0][0, :, row, column].sum().backward()
    return image.grad[0].abs().sum(0).unfold(0, 2, 2).unfold(1, 2, 2).sum((2, 3)) > 0


def test_without_shifts_no_window_hears_of_another():
    inside = torch.zeros(8, 8, dtype=torch.bool)
    inside[4:, :4] = True
    assert torch.equal(reached(make(window_size=4, shifted=False, depths=(4, 1)), 5, 2), inside)


def test_with_shifts_windows_hear_of_their_neighbours_but_not_across_the_edge():
    seen = reached(make(window_size=4, depths=(2, 1)), 0, 0)
    inside = torch.zeros(8, 8, dtype=torch.bool)
    inside[:4, :4] = True  # the corner's displaced window is 2 x 2, all of it in the first window
    assert torch.equal(seen, inside)
    assert reached(make(window_size=4, depths=(2, 1)), 3, 3).all()  # that in the middle touches all four
    assert reached(make(window_size=4, depths=(4, 1)), 3, 0).all()


@pytest.mark.parametrize("size", [(8, 8), (7, 13), (1, 1), (2, 30), (19, 3)])
def test_feature_maps_halve_from_stage_to_stage_for_images_of_any_size(size):
    model = make(depths=(2, 1, 2), num_heads=(2, 3, 4), window_size=3)
    patches = [-(-length // 2) for length in size]
    maps = model.feature_maps(images(2, 2, *size))
    for i, given in enumerate(maps):
        assert given.shape == (2, 6 * 2**i, *(-(-length // 2**i) for length in patches)) and given.isfinite().all()
    assert model(images(2, 2, *size)).isfinite().all() and len(maps) == 3


def test_an_image_is_padded_with_zeros_to_whole_patches():
    model, image = make(), images(1, 2, 7, 9)
    padded = torch.zeros(1, 2, 8, 10, dtype=torch.float64)
    padded[:, :, :7, :9] = image
    assert torch.equal(model(image), model(padded))


def test_absolute_positions_are_added_and_resized_for_other_images():
    model, plain = make(image_size=(8, 12)), make()
    plain.load_state_dict({k: v for k, v in model.state_dict().items() if k != "pos_embed"})
    positions = model.pos_embed.view(4, 6, 6)
    for size, expected in (((8, 12), positions), ((6, 20), interpolate_positions(positions, 3, 10))):
        image = images(2, 2, *size)
        torch.testing.assert_close(model.embed(image) - plain.embed(image), expected.expand(2, *expected.shape))


def test_an_image_in_a_batch_is_treated_as_alone():
    model, image = make(), images(3, 2, 10, 14)
    torch.testing.assert_close(model(image), torch.cat([model(one[None]) for one in image]), rtol=0, atol=1e-12)


def test_without_a_head_the_features_of_all_places_come_out():
    model, image = make(num_classes=None), images(2, 2, 8, 8)
    assert model(image).shape == (2, 4, 12) and torch.equal(model(image), model.features(image))
    headed = make()
    headed.load_state_dict(model.state_dict() | {k: v for k, v in headed.state_dict().items() if k.startswith("head")})
    expected = headed.head(model(image).mean(dim=1))
    torch.testing.assert_close(headed(image), expected, rtol=0, atol=1e-12)


def test_first_weights_are_small_and_norms_begin_as_identities():
    torch.manual_seed(0)
    model = Swin(SwinConfig(dim=32, depths=(2, 2), num_heads=(2, 4), num_classes=10))
    for name, parameter in model.named_parameters():
        if "norm" in name:
            assert (parameter == (1 if name.endswith("weight") else 0)).all(), name
        elif name.endswith(".bias"):
            assert (parameter == 0).all(), name
        elif not name.startswith("patch_embed"):
            assert 0.015 < parameter.std() < 0.025, name


def test_a_small_model_learns_a_batch_by_heart():
    torch.manual_seed(0)
    sizes = {"patch_size": 2, "in_channels": 1, "num_classes": 4, "dim": 16, "depths": (2, 1), "num_heads": (2, 2)}
    model = Swin(SwinConfig(**sizes, window_size=4, drop_path=0.0))
    image, labels = torch.randn(8, 1, 16, 16), torch.arange(8) % 4
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(40):
        loss = F.cross_entropy(model(image), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss < 0.05


def test_a_saved_model_comes_back(tmp_path):
    model = make(image_size=(8, 12), shifted=False).float()
    own.save(model, tmp_path / "swin.safetensors")
    again = own.load(tmp_path / "swin.safetensors")
    image = images(1, 2, 8, 12).float()
    assert again.config == model.config
    torch.testing.assert_close(again(image), model(image), rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"depths": (2, 2, 2)}, r"depths=\(2, 2, 2\) and num_heads=\(2, 3\)"),
        ({"depths": (2, 0)}, "depths of at least 1"),
        ({"depths": (), "num_heads": ()}, r"depths=\(\)"),
        ({"num_heads": (4, 4)}, "dim=6, num_heads=4"),
        ({"window_size": 0}, "window_size=0"),
        ({"patch_size": 0}, "patch_size=0"),
        ({"image_size": 7}, "image_size=7 is no whole number of patches of 2"),
        ({"image_size": (4, 0)}, r"image_size=\(4, 0\)"),
        ({"drop_path": 1.0}, "got 1.0"),
        ({"mlp_ratio": 0.1}, "mlp_ratio=0.1"),
    ],
)
def test_settings_that_do_not_fit_together_are_named(overrides, message):
    with pytest.raises(ValueError, match=message):
        make(**overrides)


def test_an_image_of_other_channels_is_refused():
    with pytest.raises(ValueError, match="2 channel"):
        make()(images(1, 3, 8, 8))
